package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// ModelQueue is what waits for one model, over all runs.
type ModelQueue struct {
	Model   string // with tag
	Waiting int    // items
	Reason         // of the run that was started first; its Count is not set
}

// Queue returns what waits, by model.
func (e *Engine) Queue(ctx context.Context) ([]ModelQueue, error) {
	return ask(ctx, e, func(*turn) func() ([]ModelQueue, error) {
		by := map[string]*ModelQueue{}
		for _, a := range e.order {
			for _, st := range a.state.Requests {
				if st.Model == "" || st.Counts.Waiting == 0 || st.Status.Ended() {
					continue
				}
				name := tagged(a.uses(st.First()))
				q := by[name]
				if q == nil {
					why := a.waits[st.Pos].why
					q = &ModelQueue{Model: name, Reason: Reason{WaitingFor: cmp.Or(string(why.Wait), "slot"), Why: why.Summary}}
					by[name] = q
				}
				q.Waiting += st.Counts.Waiting
			}
		}
		var out []ModelQueue
		for _, name := range slices.Sorted(maps.Keys(by)) {
			out = append(out, *by[name])
		}
		return reply(out, nil)
	})
}

// Note adds to a node's incidents what a part outside of the engine did there.
func (e *Engine) Note(ctx context.Context, node, kind, model, text string) error {
	_, err := ask(ctx, e, func(t *turn) func() (struct{}, error) {
		t.incident(node, kind, model, text)
		return reply(struct{}{}, nil)
	})
	return err
}

// IncidentPulled is the kind of a download that was begun, ended or failed without a person.
const IncidentPulled = "pulled"
