package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// checkedScript has code look at every value: one is sent back once, one that opens a text first is answered later than others.
const checkedScript = `
  let sent = 0;
  const made = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer,
    check: async (v: any, item: any, i: number) => {
      if (i % 3 === 0) return (await read(input.file)).includes("rule") && v.of.includes(item) || "the text says otherwise";
      if (i % 3 === 1 && sent < 5) { sent++; return "no " + sent; }
      return true;
    } });
  log("sent back " + sent);
  const text = await generate({ model: "small:8b", prompt: "p", check: (text) => text.bytes > 3 });
  return { n: made.succeeded, sent, bytes: text.bytes };`

func checkFarm(n int) *farm {
	f := newFarm(n)
	f.answer = func(a Attempt) Result {
		r := value(a)
		if a.Body == nil {
			r.Value, r.Text = nil, "a text"
		}
		return r
	}
	return f
}

func withFile(r *rig, n int) map[string]any {
	r.t.Helper()
	art, err := r.store.PutArtifact(r.t.Context(), "rules.md", strings.NewReader("the rule"))
	if err != nil {
		r.t.Fatal(err)
	}
	in := items(n)
	in["file"] = map[string]any{"ref": art.SHA256, "name": "rules.md", "bytes": art.Size}
	return in
}

// A check is part of the order of what the script is given, so that a run which dies anywhere counts as an undisturbed one does.
func TestChecksKeepTheirPlaceOverCrashes(t *testing.T) {
	p := program(t, checkedScript)
	for seed := range seeds(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 5))
				r := newRig(t, checkFarm(2), Options{})
				id := r.submit(p, withFile(r, 20))
				crashes := 0
				for ended := false; !ended && crashes < 20; {
					r.store.before = rng.IntN(2) == 0
					r.store.left.Store(1 + rng.Int64N(8))
					select {
					case <-r.e.Done():
						crashes++
						r.store.left.Store(0)
						r.start()
					case <-time.After(time.Hour):
						ended = true
					}
				}
				r.store.left.Store(0)
				v := r.wait(id)
				if got := r.output(id, "result"); v.Status != run.Completed || got != `{"bytes":6,"n":20,"sent":5}` {
					t.Fatalf("after %d crashes %s: %s, %s %+v", crashes, v.Status, got, v.Error, v.Failures)
				}
				if v.Calls != 26 || crashes < 3 {
					t.Errorf("%d calls, want 21 and the 5 that were sent back; %d crashes", v.Calls, crashes)
				}
				checks := 0
				for _, ev := range r.events(id) {
					if _, ok := ev.Data.(*run.ItemChecked); ok {
						checks++
					}
				}
				if checks != 26 {
					t.Errorf("%d answers of checks are recorded, want one for each value", checks)
				}
				if again, err := r.e.Replay(t.Context(), id); err != nil || again.Divergence != nil {
					t.Errorf("its replay: %+v, %v", again.Divergence, err)
				}
			})
		})
	}
}

func TestACheckThatSaysOtherwiseDiverges(t *testing.T) {
	const made = `const made = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: 9 }, check: (v: any) => %s }); await generate({ model: "small:8b", prompt: "long" });`
	before := program(t, fmt.Sprintf(made, `!v.of.includes("item 002") || "not two"`))
	tests := []struct{ name, check, got string }{
		{"another answer", `true`, `{"passed":true}`},
		{"another reason", `!v.of.includes("item 002") || "no two"`, `"no two"`},
		{"no answer", `v.of.includes("item 002") ? new Promise<boolean>(() => {}) : true`, "the check failed"},
	}
	for _, tt := range tests {
		after := program(t, fmt.Sprintf(made, tt.check))
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(1)
				f.takes = func(a Attempt) time.Duration {
					if a.Body == nil {
						return time.Hour
					}
					return 100 * time.Millisecond
				}
				r := newRig(t, f, Options{})
				id := r.submit(before, items(4))
				time.Sleep(time.Minute)
				r.e.Stop()
				r.opts.Host = swapped{script.NewHost(script.Limits{}), after}
				r.start()
				v := r.wait(id)
				if v.Status != run.Diverged || !strings.Contains(v.Error, "position 0: expected the check of item 2 to say") ||
					!strings.Contains(v.Error, "not two") || !strings.Contains(v.Error, tt.got) {
					t.Errorf("%s: %s", v.Status, v.Error)
				}
			})
		})
	}
}

// A check with a mistake fails its item, spends no other try on it, and names its line.
func TestACheckWithAMistake(t *testing.T) {
	p := program(t, `return (await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer,
    check: (v: any) => v.of.includes("item 001") ? v.x.y : true })).failures.map((f: any) => f.kind + " " + f.message);`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, items(3))
		v := r.wait(id)
		got := r.output(id, "result")
		if v.Status != run.Incomplete || v.Calls != 3 || v.Items.Failed != 1 || !strings.Contains(got, "check_failed the check failed: flow.ts:4:") || !strings.Contains(got, "'y' of undefined") {
			t.Errorf("%s after %d calls: %s", v.Status, v.Calls, got)
		}
	})
}
