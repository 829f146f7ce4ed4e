package engine

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

const twoModels = `await each([..."abcd"], (x) => generate({ model: "small:8b", prompt: x }));
	await generate({ model: "judge:8b", prompt: "x" });`

// An Ollama that answers an unload and keeps the model, or fails it, holds up what needs the room, which says so and waits: nothing
// ends, new runs are taken, and soon after the model can be removed the work goes on, however long that took.
func TestAStuckUnloadIsWaitedFor(t *testing.T) {
	p := program(t, twoModels)
	for name, says := range map[string]error{"it says that all is well": nil, "it fails": errors.New("still in memory")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(1)
				var stuck atomic.Bool
				var tries atomic.Int64
				stuck.Store(true)
				f.sticks = func(string) (bool, error) { tries.Add(1); return stuck.Load(), says }
				r := newRig(t, f, Options{})
				id := r.submit(p, nil)
				for range 3 {
					time.Sleep(10 * time.Minute)
					why, err := r.e.Explain(t.Context(), id, -1)
					if err != nil || len(why) != 1 || why[0].Wait == "" || !strings.Contains(why[0].String(), "small:8b") || !strings.Contains(why[0].String(), "unload") {
						t.Fatalf("%+v, %v", why, err)
					}
				}
				snap, err := r.e.Snapshot(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if ok, why := scheduler.Admit(snap, "judge:8b", 0, scheduler.Limits{}); !ok {
					t.Errorf("a new run is refused: %s", why.Summary)
				}
				if got := incidents(r, IncidentStuck); len(got) != 1 || !strings.Contains(got[0], "small:8b stays in the memory of box-1") {
					t.Errorf("%q", got)
				}
				if n := tries.Load(); n < 40 || n > 70 { // every half minute, with what one takes
					t.Errorf("%d unloads in half an hour", n)
				}
				stuck.Store(false)
				freed := time.Now()
				v := r.wait(id)
				if v.Status != run.Completed || len(v.Failures) != 0 {
					t.Errorf("%s: %+v", v.Status, v.Failures)
				}
				if took := time.Since(freed); took > unloadPauseMax+20*time.Second {
					t.Errorf("the work went on after %s", took)
				}
			})
		})
	}
}

// One unload in two that is stuck only costs time, and a machine whose unloads are all stuck leaves the work to the other.
func TestWorkGoesAroundAStuckUnload(t *testing.T) {
	p := program(t, twoModels)
	synctest.Test(t, func(t *testing.T) {
		f, tries := newFarm(1), 0
		f.sticks = func(string) (bool, error) { tries++; return tries == 1, nil }
		r := newRig(t, f, Options{})
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
			t.Errorf("after one: %s: %+v", v.Status, v.Failures)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.sticks = func(node string) (bool, error) { return node == "n1", nil }
		r := newRig(t, f, Options{})
		for range 2 {
			if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
				t.Errorf("beside another machine: %s: %+v", v.Status, v.Failures)
			}
		}
	})
}
