package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Why a call ran where it did is answered as it was decided, long after the run and over restarts, with every machine's numbers.
func TestDecisionsAreToldAsTheyWereTaken(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.nodes[1].Pools[0].Total.N, f.nodes[1].Pools[0].Free.N = 2*gib, 2*gib
		r := newRig(t, f, Options{})
		id := r.submit(p, items(40))
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		r.e.Stop()
		f.lose("n1")
		r.start()
		got, err := r.e.Decisions(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		var story []string
		for _, d := range got {
			story = append(story, strings.TrimSpace(fmt.Sprint(d.Action, " ", d.Node, " ", d.Wait)))
			if d.At.IsZero() || d.Subject == "" || d.Summary == "" {
				t.Errorf("%+v", d)
			}
		}
		if len(story) < 4 || len(story) > 16 || story[0] != "load n1" {
			t.Errorf("%q", story)
		}
		for _, want := range []string{"load n1", "wait  load", "start n1", "wait  slot"} {
			if !strings.Contains(strings.Join(story, "\n"), want) {
				t.Errorf("no %q in %q", want, story)
			}
		}
		small := got[0].Nodes[1]
		if small.Verdict != scheduler.VerdictTooLarge || small.Need == 0 || small.Short == 0 {
			t.Errorf("the machine that is too small: %+v", small)
		}
		if _, err := r.e.Decisions(t.Context(), id, 7); apierr.CodeOf(err) != apierr.NotFound {
			t.Errorf("%v", err)
		}
		if all, err := r.e.Decisions(t.Context(), id[:2], -1); err != nil || len(all) != len(got) {
			t.Errorf("%d of the whole run, %v", len(all), err)
		}
	})
}

// A batch of thousands on a fleet of many machines leaves few decisions, and none is large.
func TestDecisionsOfALargeBatchStayFewAndSmall(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(8)
		r := newRig(t, f, Options{})
		id := r.submit(p, items(500))
		r.wait(id)
		rows, err := r.store.Decisions(t.Context(), id, -1)
		if err != nil || len(rows) == 0 || len(rows) > ledger.DecisionsKept {
			t.Errorf("%d decisions, %v", len(rows), err)
		}
	})
	var d scheduler.Decision
	d.Why.Summary = "because"
	for i := range 500 {
		d.Why.Nodes = append(d.Why.Nodes, scheduler.NodeVerdict{Finding: &scheduler.Finding{Node: fmt.Sprint("node-", i), Verdict: scheduler.VerdictExcluded, Model: strings.Repeat("long ", 20)}})
	}
	d.Why.Nodes[499].Verdict = scheduler.VerdictChosen
	raw := bounded(d)
	var why scheduler.Explanation
	if err := json.Unmarshal(raw, &why); err != nil || len(raw) > mostWhy || why.Nodes[0].Verdict != scheduler.VerdictChosen ||
		!strings.Contains(why.Summary, "of 500 machines are shown") {
		t.Errorf("%d bytes, %q, %v", len(raw), why.Summary, err)
	}
	if len(d.Why.Nodes) != 500 {
		t.Error("the decision itself was cut")
	}
}

// What is recorded beside the events changes no run: without it, a replay is the same.
func TestAReplayNeverReadsDecisions(t *testing.T) {
	p := program(t, `await generate({ model: "small:8b", prompt: "a" }); await generate({ model: "small:8b", prompt: "b" }); await generate({ model: "small:8b", prompt: "c" });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		time.Sleep(90 * time.Second)
		r.e.Stop()
		rows, err := r.store.Learned(t.Context())
		if err != nil || len(rows) == 0 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i := range rows {
			rows[i].Value = json.RawMessage(`"another version's"`)
		}
		if err := r.store.Append(t.Context(), ledger.Commit{Learned: rows}); err != nil {
			t.Fatal(err)
		}
		r.start()
		if v := r.wait(id); v.Status != run.Completed || v.Items.Succeeded != 3 {
			t.Errorf("%+v", v)
		}
	})
}
