package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// ForkRequest asks for a new run that takes over what succeeded in another one.
type ForkRequest struct {
	Run    string          // a unique prefix will do
	Before int             // the first position that is done anew; 0 takes over all that is asked for in the same way
	Failed bool            // a retry of what failed
	Input  json.RawMessage // canonical; nil: the base's
	// Submitted is what must be covered of Input; without Input it is what the base must cover.
	Submitted []run.Submitted
	Models    map[string]string // by model as the script asks for it: the one to use instead; what it does not name is as the base's
	Limits    run.Limits        // 0 is the base's, a negative number is none
	SetBy     map[string]string // as in Submission, of Limits
	Key       string            // as in Submission
}

// Pinned returns what a run began with: its script, input, seed and limits.
func (e *Engine) Pinned(ctx context.Context, id string) (run.Created, error) {
	return with(ctx, e, id, func(s *run.State, _ *active) (run.Created, error) { return s.Pinned, nil })
}

// Forking is what can be known of a fork before it is one.
type Forking struct {
	Base  run.Created
	Steps int   // of the base, of which something can be taken over
	Retry Retry // what one can change
}

// CheckFork says what a fork would begin with. Its errors are those of Fork but for what was pruned.
func (e *Engine) CheckFork(ctx context.Context, r ForkRequest) (Forking, error) {
	return with(ctx, e, r.Run, func(s *run.State, a *active) (Forking, error) {
		id := s.Pinned.ID
		switch {
		case a != nil:
			return Forking{}, apierr.New(apierr.Conflict, "run %s has not ended, so what it did is not settled", id).WithNext("loopkeeper cancel "+id, "loopkeeper watch "+id)
		case r.Before < 0 || r.Before > len(s.Requests):
			return Forking{}, noSuchStep(s, r.Before)
		}
		f := Forking{s.Pinned, s.Adoptable(r.Before), retryOf(s)}
		if r.Failed && r.Input == nil && !f.Retry.Possible {
			return f, apierr.New(apierr.InvalidArgument, "%s", f.Retry.Why).WithNext(f.insteadOfRetry(s)...)
		}
		return f, nil
	})
}

// insteadOfRetry are commands that do something anew where nothing failed.
func (f Forking) insteadOfRetry(s *run.State) []string {
	for _, st := range s.Requests {
		if !st.Note && st.Pos > 0 {
			return []string{fmt.Sprintf("loopkeeper fork %s --from %d", f.Base.ID, st.Pos), "loopkeeper show " + f.Base.ID}
		}
	}
	return []string{"loopkeeper show " + f.Base.ID}
}

// Fork starts a run with the script, seed, clock and limits of another one, which has ended, and returns its id once that is durable. A
// step that asks for the same at the same position takes over what succeeded there. Conflict: the other run has not ended.
// InvalidArgument: there is nothing to try again. NotFound: there is no such run or step, or a result that is to be taken over was pruned.
func (e *Engine) Fork(ctx context.Context, r ForkRequest) (id string, existing bool, err error) {
	fork, err := e.CheckFork(ctx, r)
	if err != nil {
		return "", false, err
	}
	base := fork.Base
	s, err := e.ended.state(ctx, e.o.Store, base.ID)
	if err == nil {
		err = e.checkBase(ctx, s, r.Before)
	}
	if err != nil {
		return "", false, err
	}
	created := base
	created.Key, created.Parent = r.Key, nil
	created.Limits = resolved(r.Limits, base.Limits)
	created.SetBy = setBy(created.Limits, r.SetBy, "base")
	created.Models = merged(base.Models, r.Models)
	created.Base = &run.Base{Run: base.ID, Before: r.Before, Failed: r.Failed}
	if r.Input != nil {
		created.Input, created.Submitted = r.Input, r.Submitted
	}
	got, err := ask(ctx, e, func(t *turn) func() (submitted, error) { return reply(t.submit(created)) })
	return got.id, got.existing, err
}

// merged is a map with some entries replaced, neither of them changed.
func merged(old, replaced map[string]string) map[string]string {
	if len(replaced) == 0 {
		return old
	}
	all := maps.Clone(replaced)
	for k, v := range old {
		if _, ok := all[k]; !ok {
			all[k] = v
		}
	}
	return all
}

// instead is where earlier versions kept the models that a run uses in place of what its script asks for. Its first event has them now.
const instead = "run.models/"

// recallModels reads what forks of earlier versions use instead of the models that their scripts ask for.
func (e *Engine) recallModels(ctx context.Context) error {
	rows, err := e.o.Store.Meta(ctx, instead)
	for key, value := range rows {
		if a := e.runs[key[len(instead):]]; a != nil && err == nil {
			err = json.Unmarshal(value, &a.instead)
		}
	}
	return err
}

// requested holds a new step back while it may take results over, from the run's base or from any earlier run.
func (t *turn) requested(a *active, pos int) {
	e, st := t.e, a.state.Step(pos)
	if st == nil || st.Note || st.Status.Ended() {
		return
	}
	base := a.state.Pinned.Base
	adopts := base != nil && (base.Before == 0 || pos < base.Before)
	look, reuses := t.reuses(a, st)
	if !adopts && !reuses {
		return
	}
	a.hold(pos)
	step := heldBack{pos: pos, items: len(st.Items), kind: st.Kind}
	t.then(func() {
		e.wg.Go(func() {
			if adopts {
				e.adoptOrRefuse(a, *base, step)
			}
			if reuses {
				e.seek(a, look)
				return
			}
			e.take(a, nil, func() { a.release(pos) })
		})
	})
}

// adoptOrRefuse has a step take over what the run's base has for it. A step whose base cannot be read fails.
func (e *Engine) adoptOrRefuse(a *active, from run.Base, step heldBack) {
	err := e.adopt(a, from, step.pos)
	if err == nil || e.ctx.Err() != nil {
		return
	}
	e.o.Log.Warn("the run that this one builds upon cannot be read; its step is refused", "run", a.id, "base", from.Run, "step", step.pos, "err", err)
	for part := range slices.Chunk(step.refused(from.Run, err), takeAtOnce) {
		e.take(a, part, nil)
	}
}

// adopt reads what the run's base has for a step and hands it to the loop. Who is told of the base's results is the run: what it
// takes over follows from the two states.
func (e *Engine) adopt(a *active, from run.Base, pos int) error {
	base, err := e.ended.state(e.ctx, e.o.Store, from.Run)
	if err != nil {
		return err
	}
	found := make(chan []run.Adoption, 1)
	e.inbox.put(func(*turn) { found <- a.state.Adoptions(base, pos) })
	var all []run.Adoption
	select {
	case all = <-found:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	for part := range slices.Chunk(all, takeAtOnce) {
		if err := e.fill(from.Run, part); err != nil {
			return err
		}
		cmds := make([]run.Command, len(part))
		for i, p := range part {
			cmds[i] = p.Reuse
			if p.Doubt {
				cmds[i] = run.Doubt{Pos: p.Pos, Item: p.Item, From: p.From}
			}
		}
		e.take(a, cmds, nil)
	}
	return nil
}

// fill reads the results that the base's state does not keep.
func (e *Engine) fill(base string, part []run.Adoption) error {
	var seqs []int64
	for _, p := range part {
		if p.Event != 0 {
			seqs = append(seqs, p.Event)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	results, err := e.resultsAt(e.ctx, base, seqs)
	if err != nil {
		return err
	}
	for i := range part {
		if part[i].Event != 0 {
			part[i].Result = results[part[i].Event]
		}
	}
	return nil
}

// resultsAt reads the results that events have, by their number.
func (e *Engine) resultsAt(ctx context.Context, id string, seqs []int64) (map[int64]run.Content, error) {
	rows, err := e.o.Store.EventsAt(ctx, id, seqs)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]run.Content, len(rows))
	for _, row := range rows {
		ev, err := decoded(row)
		if err != nil {
			return nil, err
		}
		out[row.Seq], _ = run.ResultOf(ev.Data)
	}
	return out, nil
}

func decoded(row ledger.Event) (run.Event, error) {
	ev, err := run.Decode(row.Seq, row.Time, row.Kind, row.Payload)
	if err != nil {
		return ev, apierr.Wrap(err, apierr.LedgerTooNew, "read run %s", row.RunID).WithNext("update loopkeeper")
	}
	return ev, nil
}
