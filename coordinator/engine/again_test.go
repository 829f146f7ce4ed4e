package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// TestWhatARetryCanChange: it is offered where it may help, taken where something was repaired meanwhile, and refused where it would take
// everything over and end the same way.
func TestWhatARetryCanChange(t *testing.T) {
	for name, tt := range map[string]struct {
		flow            string
		possible, helps bool
		why, next       string
	}{
		"completed":              {`return 1;`, false, false, "nothing of run", ""},
		"the script threw":       {`await generate({ model: "small:8b", prompt: "a", schema: Answer }); throw new Error("no");`, false, false, "every step of run", ""},
		"a goal not reached":     {`await until({ state: "a", rounds: 2, reached: () => false, round: async (s: string) => { await generate({ model: "small:8b", prompt: s, schema: Answer }); return s + "x"; } });`, false, false, "every step of run", ""},
		"a request that is none": {`await tool("nothing", {}).catch(() => 0);`, true, false, "the only failure of run", "loopkeeper tools"},
		"a model's bad luck":     {`await generate({ model: "small:8b", prompt: "luck", schema: Answer, retry: { attempts: 1 } }).catch(() => 0);`, true, true, "1 of 1 failure may not come again", "loopkeeper retry"},
		"too many calls":         {`for (let i = 0; i < 9; i++) await generate({ model: "small:8b", prompt: "a" + i, schema: Answer });`, true, true, "a limit", "--limit calls=10"},
		"too long":               {`await generate({ model: "small:8b", prompt: "slow", schema: Answer });`, true, true, "a limit", "--time-limit 20m0s"},
	} {
		p := flow(t, tt.flow)
		if strings.Contains(tt.flow, "until") {
			p = books(t, tt.flow)
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(1)
				f.answer = func(a Attempt) Result {
					if strings.Contains(string(a.Request), "luck") {
						return Result{Failure: &Failure{Kind: "schema_violation", Message: "no", Advice: run.Changed}}
					}
					return value(a)
				}
				f.takes = func(a Attempt) time.Duration {
					if strings.Contains(string(a.Request), "slow") {
						return time.Hour
					}
					return time.Second
				}
				r := newRig(t, f, Options{Tools: newBench(), DefaultLimits: run.Limits{Calls: 5, ActiveSeconds: 600}})
				id := r.submit(p, nil)
				v := r.wait(id)
				if want := map[string]run.Status{"a goal not reached": run.Incomplete, "the script threw": run.Failed}[name]; want != "" && v.Status != want {
					t.Fatalf("%s: %s", v.Status, v.Error)
				}
				if v.Retry == nil || v.Retry.Possible != tt.possible || v.Retry.Helps != tt.helps || !strings.Contains(v.Retry.Why, tt.why) {
					t.Fatalf("%s: %+v", v.Status, v.Retry)
				}
				if tt.next != "" && !slices.ContainsFunc(v.Retry.Next, func(n string) bool { return strings.Contains(n, tt.next) }) {
					t.Errorf("next is %q", v.Retry.Next)
				}
				_, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Failed: true})
				if refused := apierr.CodeOf(err) == apierr.InvalidArgument; refused == tt.possible {
					t.Errorf("a retry: %v", err)
				}
			})
		})
	}
}

// What a fork takes over is every step that succeeded before: calls and tools as well as what people said and time that has passed.
func TestEveryStepThatIsTakenOverCounts(t *testing.T) {
	child := flow(t, `return 1;`)
	p := flow(t, `
  await approve({ title: "go?" });
  await sleep(60);
  await tool("look", { text: "x" });
  await generate({ model: "small:8b", prompt: "a", schema: Answer });
  await spawn({ workflow: "child", input: {} });
  await question({ text: "which?" });
  return 1;`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Tools: newBench(), Workflows: library{"child": child}.find})
		id := r.submit(p, nil)
		for range 2 {
			r.until("somebody is asked", func() bool { return len(r.waits(id)) == 1 })
			if _, err := r.e.Settle(t.Context(), id, r.waits(id)[0].Step, 0, Answer{Outcome: run.Approved, Value: []byte(`"x"`)}); err != nil {
				t.Fatal(err)
			}
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatal(v.Status, v.Error)
		}
		for before, want := range map[int]int{0: 6, 1: 1, 2: 2, 5: 5} {
			if got, err := r.e.CheckFork(t.Context(), ForkRequest{Run: id, Before: before}); err != nil || got.Steps != want {
				t.Errorf("before step %d: %d, %v", before, got.Steps, err)
			}
		}
		again, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.wait(again); v.Status != run.Completed || v.Calls != 0 {
			t.Errorf("%s after %d calls", v.Status, v.Calls)
		}
	})
}
