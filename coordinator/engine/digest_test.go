package engine

import (
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// A model that was pulled again under its old name on one machine: the run goes on with the one that it began with, on as many machines
// as have that, and so does the same run after a restart.
func TestARunUsesOneModelOfAName(t *testing.T) {
	p := program(t, `
	await batch({ model: "small:8b", prompt: "a {{item}}", items: Array.from({ length: 24 }, (_, i) => "x" + i) });
	await generate({ model: "small:8b", prompt: "b" });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		for i := range f.nodes[1].Models {
			f.nodes[1].Models[i].Digest += "-updated"
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		used := map[string]int{}
		for _, a := range f.sent() {
			used[a.Digest]++
		}
		if len(used) != 1 {
			t.Errorf("calls by digest: %v", used)
		}
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
			t.Errorf("another run: %+v", v)
		}
	})
}
