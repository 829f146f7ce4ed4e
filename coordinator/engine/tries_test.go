package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// What a node's death costs is time: the item is asked again with the seed that it had, so that its value is that of a run
// that nothing disturbed. A counted failure is what changes the seed.
func TestALostNodeDoesNotChangeTheSeed(t *testing.T) {
	p := program(t, batchScript)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.answer = func(a Attempt) Result {
			if a.Item == 59 && a.Try == 1 {
				return fails(a, "empty_turn", Changed)
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, items(60))
		time.Sleep(7 * time.Second)
		f.lose("n2")
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		type name struct{ item, try int }
		seeds, again, keys := map[name]int64{}, 0, map[string]bool{}
		for _, a := range f.sent() {
			n := name{a.Item, a.Try}
			if seed, known := seeds[n]; known {
				if again++; seed != a.Seed {
					t.Errorf("item %d, try %d: seed %d, and %d after its node was lost", a.Item, a.Try, seed, a.Seed)
				}
			}
			if keys[a.Key] {
				t.Errorf("%s was sent twice", a.Key)
			}
			seeds[n], keys[a.Key] = a.Seed, true
		}
		if again == 0 {
			t.Error("nothing was asked again")
		}
		if seeds[name{59, 1}] == seeds[name{59, 2}] {
			t.Error("a counted failure did not change the seed")
		}
	})
}

// A snapshot is a question: what a run waits for is still known after it.
func TestASnapshotForgetsNoReason(t *testing.T) {
	p := program(t, `await generate({ model: "small:8b", prompt: "x" });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.nodes[0].State = scheduler.NodeDraining
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		time.Sleep(time.Second)
		if _, err := r.e.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		why, err := r.e.Explain(t.Context(), id, -1)
		if err != nil || len(why) != 1 || why[0].Wait != scheduler.WaitNode {
			t.Errorf("%+v, %v", why, err)
		}
		f.back("n1")
		r.wait(id)
	})
}

// A script that names a model that fits nowhere is told so as soon as the fleet has had a moment to be seen, not after the
// grace for what an earlier life of the coordinator knew.
func TestWhatNobodyHasIsSaidSoon(t *testing.T) {
	p := program(t, `await generate({ model: "absent:1b", prompt: "x" });`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		began := time.Now()
		if v := r.wait(r.submit(p, nil)); v.Status != run.Failed || time.Since(began) > freshGrace+time.Second {
			t.Errorf("%s after %s", v.Status, time.Since(began))
		}
	})
}
