package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// TestToolsAreAllowedFirst: what a ruling refuses or asks for is not done before a person says so, over a restart too, and a yes is for
// one step.
func TestToolsAreAllowedFirst(t *testing.T) {
	p := flow(t, `
  const free = (await tool("mail", { text: "free" })).did;
  const never = await tool("mail", { text: "never" }).catch((e: any) => e.kind);
  const first = (await tool("mail", { text: "ask" })).did;
  const second = await tool("mail", { text: "ask" }).catch((e: any) => e.kind + ": " + e.message);
  return [free, never, first, second];`)
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		rule := func(c ToolCall) Ruling {
			switch {
			case strings.Contains(string(c.Input), "never"):
				return Ruling{Refuse: &Failure{Kind: run.KindRefused, Message: "no", Advice: run.Never}}
			case strings.Contains(string(c.Input), "ask"):
				return Ruling{Ask: &run.Question{Title: "may it?", Text: "an act", Will: "it is sent", Show: c.Input}}
			}
			return Ruling{}
		}
		r := newRig(t, newFarm(1), Options{Tools: b, Rule: rule})
		id := r.submit(p, nil)
		r.until("it asks", func() bool { return len(r.waits(id)) == 1 })
		w := r.waits(id)[0]
		if w.Kind != WaitApprove || w.Title != "may it?" || w.Text != "an act" || w.Will != "it is sent" || string(w.Show[0]) != `{"text":"ask"}` {
			t.Errorf("it asks %+v", w)
		}
		if v := r.view(id); v.Status != run.Waiting || !slices.ContainsFunc(v.Waiting, func(x Reason) bool { return strings.Contains(x.Why, "approve or reject") }) {
			t.Errorf("%s, waiting for %+v", v.Status, v.Waiting)
		}
		r.e.Stop()
		r.start()
		r.until("it still asks", func() bool { return len(r.waits(id)) == 1 })
		if did := b.did(); did["free"] != 1 || len(did) != 1 {
			t.Errorf("before a yes there was done %v", did)
		}
		if _, err := r.e.Settle(t.Context(), id, w.Step, 0, Answer{Outcome: Happened, By: "ada"}); err == nil {
			t.Error("a yes of another kind was taken")
		}
		if _, err := r.e.Settle(t.Context(), id, w.Step, 0, Answer{Outcome: run.Approved, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		r.until("it asks for the next step", func() bool { ws := r.waits(id); return len(ws) == 1 && ws[0].Step != w.Step })
		if _, err := r.e.Settle(t.Context(), id, r.waits(id)[0].Step, 0, Answer{Outcome: run.Rejected, By: "ada", Comment: "once is enough"}); err != nil {
			t.Fatal(err)
		}
		v := r.wait(id)
		if got := r.output(id, "result"); got != `["free","refused","ask","refused: ada did not allow it: once is enough"]` || v.Status != run.Incomplete {
			t.Errorf("%s: %s", v.Status, got)
		}
		if did := b.did(); did["ask"] != 1 || did["never"] != 0 {
			t.Errorf("there was done %v", did)
		}
	})
}
