package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

func TestTools(t *testing.T) {
	p := flow(t, `
  const seen = await tool("look", { text: "around" });
  const wrote = await tool("file", { text: "page" });
  const lost = await tool("nothing", {}).catch((e: any) => e.kind);
  const shaky = await tool("mail", { text: "shaky" }, { retry: { attempts: 3 } });
  const no = await tool("mail", { text: "never" }).catch((e: any) => e.kind);
  return [seen.did, wrote.did, lost, shaky.did, no];`)
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		fails := 2
		b.fails = func(c ToolCall) *Failure {
			switch {
			case strings.Contains(string(c.Input), "never"):
				return &Failure{Kind: "not_allowed", Message: "no", Advice: run.Never}
			case strings.Contains(string(c.Input), "shaky") && fails > 0:
				fails--
				return &Failure{Kind: "io_error", Message: "hm", Advice: run.Again}
			}
			return nil
		}
		r := newRig(t, newFarm(1), Options{Tools: b})
		id := r.submit(p, nil)
		v := r.wait(id)
		if got := r.output(id, "result"); got != `["around","page","unknown_tool","shaky","not_allowed"]` || v.Status != run.Incomplete {
			t.Errorf("%s: %s", v.Status, got)
		}
		if did := b.did(); did["page"] != 1 || did["shaky"] != 1 || len(did) != 3 {
			t.Errorf("there was done %v", did)
		}
		external, evidence := map[string]bool{}, 0
		for _, ev := range r.events(id) {
			switch p := ev.Data.(type) {
			case *run.Placed:
				external[fmt.Sprint(p.Pos)] = p.External
			case *run.AttemptSucceeded:
				for _, sha := range []string{p.Prompt, p.Raw} {
					if has, err := r.store.HasArtifact(t.Context(), sha); err != nil || !has {
						t.Errorf("the evidence %q of step %d is not there, %v", sha, p.Pos, err)
					}
					evidence++
				}
			}
		}
		if external["0"] || !external["1"] || !external["3"] || evidence != 6 {
			t.Errorf("external are %v, %d pieces of evidence", external, evidence)
		}
	})
}

// TestToolsShareABoundedPool, and hold what they use together with calls of models: row 21 (caps and slots that are decided apart).
func TestToolsShareABoundedPool(t *testing.T) {
	p := flow(t, `
  const b: any = {};
  for (let i = 0; i < 12; i++) b["t" + i] = (async () => (await tool("mail", { text: "m" + i }, { uses: i < 6 ? ["door"] : [] })).did)();
  for (let i = 0; i < 4; i++) b["g" + i] = (async () => (await generate({ model: "small:8b", prompt: "g" + i, schema: Answer, uses: ["door"] })).of)();
  return Object.keys(await all(b)).length;`)
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.takes = func(ToolCall) time.Duration { return 10 * time.Second }
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 10 * time.Second }
		r := newRig(t, f, Options{Tools: b, MaxTools: 3, Resources: map[string]Resource{"door": {Cap: 1}}})
		id := r.submit(p, nil)
		time.Sleep(5 * time.Second)
		v := r.view(id)
		reasons := map[string]int{}
		for _, w := range v.Waiting {
			reasons[w.WaitingFor] += w.Count
		}
		if reasons["cap"] == 0 || reasons["tool"]+reasons["cap"] < 9 {
			t.Errorf("waiting is %+v", v.Waiting)
		}
		v = r.wait(id)
		if v.Status != run.Completed || b.most > 3 {
			t.Fatalf("%s, %d tools at once", v.Status, b.most)
		}
		held, most := 0, 0
		for _, ev := range r.events(id) {
			uses := func(pos int) int {
				for _, q := range r.events(id) {
					if q, ok := q.Data.(*run.Requested); ok && q.Pos == pos && strings.Contains(string(q.Body), `"door"`) {
						return 1
					}
				}
				return 0
			}
			switch p := ev.Data.(type) {
			case *run.Placed:
				held += uses(p.Pos)
			case *run.AttemptSucceeded:
				held -= uses(p.Pos)
			}
			most = max(most, held)
		}
		if most != 1 {
			t.Errorf("the door was held by %d at once", most)
		}
	})
}

// TestAWriteThatACrashInterrupts is done again only when the tool says that it did not happen; when nobody can tell, a person says.
func TestAWriteThatACrashInterrupts(t *testing.T) {
	p := flow(t, `const [a, b] = [await tool("mail", { text: "letter" }), await tool("look", { text: "x" })]; return [a, b];`)
	type test struct {
		name           string
		acted, blind   bool
		say            string
		effects, asked int
		result         string
	}
	for _, tt := range []test{
		{"it had not acted", false, false, "", 1, 0, `{"did":"letter"}`},
		{"it had acted", true, false, "", 1, 0, `{"did":"before"}`},
		{"nobody can tell and it had", true, true, Happened, 1, 1, `{"ok":1}`},
		{"nobody can tell and it had not", false, true, NotHappened, 1, 1, `{"did":"letter"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.takes = func(ToolCall) time.Duration { return time.Minute }
				b.blind, b.stubborn = tt.blind, tt.acted
				r := newRig(t, newFarm(1), Options{Tools: b})
				id := r.submit(p, nil)
				time.Sleep(30 * time.Second)
				r.e.Stop()
				time.Sleep(time.Hour)
				b.stubborn = false
				r.start()
				if tt.asked > 0 {
					r.until("somebody is asked", func() bool { return len(r.waits(id)) == 1 })
					time.Sleep(time.Hour)
					w := r.waits(id)[0]
					if v := r.view(id); v.Status != run.Waiting || w.Kind != WaitUnknown || b.calls != 1 {
						t.Errorf("%s, asked %+v, %d calls", v.Status, w, b.calls)
					}
					r.e.Stop() // it is still unknown after another restart
					r.start()
					r.until("somebody is asked again", func() bool { return len(r.waits(id)) == 1 }) // once the tool has looked again
					answer := Answer{Outcome: tt.say, By: "ada"}
					if tt.say == Happened {
						answer.Value = []byte(`{"ok":1}`)
					}
					if _, err := r.e.Settle(t.Context(), id, w.Step, w.Item, answer); err != nil {
						t.Fatal(err)
					}
				}
				v := r.wait(id)
				if got := r.output(id, "result"); v.Status != run.Completed || !strings.HasPrefix(got, "["+tt.result+",") {
					t.Errorf("%s: %s", v.Status, got)
				}
				if did := b.did(); did["letter"] != tt.effects-0 && !(tt.say == Happened) || did["letter"] > 1 {
					t.Errorf("it was done %d times", did["letter"])
				}
			})
		})
	}
}

// TestToolsEndWithTheirRun: the tool is cancelled; one that acts all the same leaves that in the books, and the run says unknown.
func TestToolsEndWithTheirRun(t *testing.T) {
	p := flow(t, `await tool("mail", { text: "letter" });`)
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.takes = func(ToolCall) time.Duration { return time.Minute }
		r := newRig(t, newFarm(1), Options{Tools: b, MaxTools: 1})
		id := r.submit(p, nil)
		time.Sleep(10 * time.Second)
		v, err := r.e.Cancel(t.Context(), id, "enough")
		if err != nil || v.Status != run.Cancelled || v.Steps[0].Status != run.StepUnknown {
			t.Fatalf("%s, %+v, %v", v.Status, v.Steps, err)
		}
		synctest.Wait()
		if b.running > 0 {
			t.Error("the tool still runs")
		}
		if next := r.wait(r.submit(p, nil)); next.Status != run.Completed {
			t.Errorf("its place is not free: %s", next.Status)
		}
		late := 0
		for _, ev := range r.events(id) {
			if _, ok := ev.Data.(*run.AttemptLate); ok {
				late++
			}
		}
		if late != 1 {
			t.Errorf("what became of it is kept %d times", late)
		}
	})
}
