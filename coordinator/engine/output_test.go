package engine

import (
	"testing"
	"testing/synctest"
)

// A result that has a field "ref" of its own is a value: only the name of a stored body is a reference.
func TestAResultWithAFieldOfThatNameIsNoReference(t *testing.T) {
	p := flow(t, `return { ref: "see page 3", note: "x" };`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, nil)
		r.wait(id)
		if got := r.output(id, "result"); got != `{"note":"x","ref":"see page 3"}` {
			t.Errorf("%s", got)
		}
	})
}
