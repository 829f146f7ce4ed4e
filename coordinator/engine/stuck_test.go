package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

const twoModels = `await each([..."abcd"], (x) => generate({ model: "small:8b", prompt: x }));
	await generate({ model: "judge:8b", prompt: "x" });`

// An Ollama that answers an unload and keeps the model, or fails it, holds a run up for a bounded time: then what needs the
// room ends in a failure that says why.
func TestAStuckUnloadEndsInAFailure(t *testing.T) {
	p := program(t, twoModels)
	for name, c := range map[string]struct {
		says error
		look time.Duration // when the first unload has failed and the last one not yet
	}{
		"it says that all is well": {nil, 25 * time.Second},
		"it fails":                 {errors.New("still in memory"), 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, tries := newFarm(1), 0
				f.sticks = func(string) (bool, error) { tries++; return true, c.says }
				r := newRig(t, f, Options{})
				began, id := time.Now(), r.submit(p, nil)
				time.Sleep(c.look)
				why, err := r.e.Explain(t.Context(), id, -1)
				if err != nil || len(why) != 1 || !strings.Contains(why[0].String(), "small:8b stayed in memory after") {
					t.Errorf("%+v, %v", why, err)
				}
				v := r.wait(id)
				if v.Status != run.Failed || len(v.Failures) != 1 || v.Failures[0].Kind != run.KindCannotFit ||
					!strings.Contains(v.Failures[0].Message, "restart Ollama there") || v.Items.Succeeded != 4 {
					t.Errorf("%s: %+v", v.Status, v.Failures)
				}
				if got := incidents(r, IncidentStuck); len(got) != 1 || !strings.Contains(got[0], "small:8b stays in the memory of box-1") {
					t.Errorf("%q", got)
				}
				if took := time.Since(began); took > 2*time.Minute || tries < 2 {
					t.Errorf("%d unloads in %s", tries, took)
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
