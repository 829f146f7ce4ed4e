package engine

import (
	"context"
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// checkBase makes sure that what a fork may take over of a run is still there. NotFound: a result was pruned.
func (e *Engine) checkBase(ctx context.Context, base *run.State, before int) error {
	for _, st := range base.Requests {
		if before > 0 && st.Pos >= before {
			return nil
		}
		if st.Note {
			continue
		}
		if err := e.checkResults(ctx, base.Pinned.ID, st); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) checkResults(ctx context.Context, id string, st *run.Step) error {
	results := []run.Content{st.Result}
	var seqs []int64 // of results that the state does not keep
	for i := range st.Items {
		switch it := &st.Items[i]; {
		case it.Status != run.StepSucceeded:
		case it.Result.Empty():
			seqs = append(seqs, it.Event)
		default:
			results = append(results, it.Result)
		}
	}
	if len(seqs) > 0 {
		kept, err := e.resultsAt(ctx, id, seqs)
		if err != nil {
			return err
		}
		for _, r := range kept {
			results = append(results, r)
		}
	}
	for _, r := range results {
		if r.Ref == "" {
			continue
		}
		switch has, err := e.o.Store.HasArtifact(ctx, r.Ref); {
		case err != nil:
			return err
		case !has:
			return pruned(id, st.Pos)
		}
	}
	return nil
}

// pruned refuses a fork that would take over what is gone.
func pruned(id string, pos int) error {
	err := apierr.New(apierr.NotFound, "a result of step %d of run %s is not here any more, so that no other run can take it over", pos, id)
	if pos == 0 {
		return err.WithNext("loopkeeper run WORKFLOW  # begins anew, with all that it writes")
	}
	return err.WithNext(fmt.Sprintf("loopkeeper fork %s --from %d does that step and all after it anew, with what they write", id, pos))
}

// heldBack is a step that may take results over.
type heldBack struct {
	pos, items int
	kind       string
}

// refused are the commands that end a step whose base cannot be read: done anew it might write what is written already. What only waits
// for a person or for a time has no effect, so it waits again.
func (h heldBack) refused(base string, cause error) (cmds []run.Command) {
	f := run.Failure{Kind: "base_unreadable", Message: fmt.Sprintf("what run %s did in step %d cannot be read, and to do it anew may repeat it: %v", base, h.pos, cause),
		Advice: run.Never, Next: []string{"loopkeeper show " + base, "fork once more when that run can be read", fmt.Sprintf("loopkeeper fork %s --from %d does it anew", base, h.pos)}}
	if h.pos == 0 {
		f.Next[2] = "loopkeeper run does it anew"
	}
	if h.kind == run.KindSpawn {
		return []run.Command{run.ChildEnded{Pos: h.pos, Failure: &f}}
	}
	for i := range h.items {
		cmds = append(cmds, run.Reject{Pos: h.pos, Item: i, Failure: f})
	}
	return cmds
}
