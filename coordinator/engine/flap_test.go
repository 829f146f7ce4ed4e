package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// begins returns when the first attempt was placed on each node.
func (r *rig) begins(id string) map[string]time.Time {
	first := map[string]time.Time{}
	for _, ev := range r.events(id) {
		if p, ok := ev.Data.(*run.Placed); ok && first[p.Node].IsZero() {
			first[p.Node] = ev.Time
		}
	}
	return first
}

// The call of a load breaks off and the machine loads the model all the same: it is used as soon as the reports show it, and
// not kept idle because its load "failed".
func TestALoadWhoseCallBreaksOffIsUsedOnceItIsThere(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.breaks = func(node string) time.Duration {
			if node == "n1" {
				return time.Second
			}
			return 0
		}
		r := newRig(t, f, Options{})
		began := time.Now()
		id := r.submit(p, items(200))
		v := r.wait(id)
		if v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if after := r.begins(id)["n1"].Sub(began); after < 4*time.Second || after > 6*time.Second {
			t.Errorf("n1 had the model after 4 s and was used after %s", after)
		}
	})
}

// A node is lost during a load and is back at once; the call of that load ends only when the next one is under way. That
// end says nothing of the next load: its claim stays, and the node is not shunned.
func TestTheEndOfALoadFromBeforeANodeWasLostIsNotThatOfTheNext(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		calls := 0
		f.breaks = func(string) time.Duration {
			if calls++; calls == 1 {
				return 3 * time.Second // long after the node was lost
			}
			return 0
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, items(40))
		time.Sleep(time.Second)
		f.lose("n1")
		time.Sleep(time.Second)
		began := time.Now()
		f.back("n1")
		time.Sleep(1500 * time.Millisecond) // the first load's call has ended by now
		nodes, err := r.e.Snapshot(t.Context())
		if err != nil || nodes.Nodes[0].Loading == nil && len(nodes.Nodes[0].Loaded) == 0 {
			t.Errorf("the second load is forgotten: %+v, %v", nodes.Nodes, err)
		}
		if len(nodes.Nodes[0].Avoid) > 0 {
			t.Errorf("the node is shunned: %v", nodes.Nodes[0].Avoid)
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if after := r.begins(id)["n1"].Sub(began); after > 6*time.Second {
			t.Errorf("the node came back and was used after %s", after)
		}
		if n := f.node("n1"); n.asked != 2 {
			t.Errorf("%d loads were asked for, want 2", n.asked)
		}
	})
}
