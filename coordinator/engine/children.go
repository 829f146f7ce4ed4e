package engine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// waiter is a spawn that waits for a run's end.
type waiter struct {
	parent *active
	pos    int
}

// preparing is how many children are made ready at once: each may start a process to read its parameters.
const preparing = 4

// spawn makes children ready for the steps that want one; they start in a later turn. A step has its child by the commit that creates
// the child, so a crash before that starts it again, and one after it never does.
func (t *turn) spawn(a *active) {
	t.bound(a)
	if a.state.Status.Ended() {
		return
	}
	for st := range a.state.Spawns {
		if a.spawning[st.Pos] || a.adopting[st.Pos] > 0 {
			continue
		}
		a.spawning[st.Pos] = true
		parent, pos, body := a.state.Pinned, st.Pos, st.Body
		parent.Limits = t.e.remaining(a.state)
		t.then(func() {
			t.e.wg.Go(func() {
				c, err := t.e.child(parent, pos, body)
				t.e.inbox.put(func(t *turn) { t.spawned(a, pos, c, err) })
			})
		})
	}
}

// child is the run that a spawn asks for. It has its parent's priority and weight, and no larger limits.
func (e *Engine) child(parent run.Created, pos int, body json.RawMessage) (run.Created, error) {
	select {
	case e.preparing <- struct{}{}:
		defer func() { <-e.preparing }()
	case <-e.ctx.Done():
		return run.Created{}, e.ctx.Err()
	}
	var ask struct {
		Workflow string          `json:"workflow"`
		Input    json.RawMessage `json:"input"`
		Key      string          `json:"key"`
		Limits   json.RawMessage `json:"limits"`
		Detached bool            `json:"detached"`
	}
	if err := json.Unmarshal(body, &ask); err != nil {
		return run.Created{}, err
	}
	if e.o.Workflows == nil {
		return run.Created{}, apierr.New(apierr.NotFound, "no workflow is named %q", ask.Workflow).WithNext("loopkeeper workflows")
	}
	p, err := e.o.Workflows(e.ctx, ask.Workflow)
	if err != nil {
		return run.Created{}, err
	}
	if ask.Input == nil {
		ask.Input = json.RawMessage("{}")
	}
	covers, err := e.checkInput(e.ctx, p, ask.Input)
	if err != nil {
		return run.Created{}, refusedInput(ask.Workflow, err)
	}
	depth := 1
	if parent.Parent != nil {
		depth = parent.Parent.Depth + 1
	}
	own, known := workflows.Lookup(ask.Workflow)
	c := run.Created{Workflow: ask.Workflow, BuiltIn: known && bytes.Equal(own.Code, p.Code), Input: ask.Input, Submitted: covers, Key: ask.Key, Seed: newSeed(), Priority: parent.Priority, Weight: parent.Weight,
		Parent: &run.Parent{Run: parent.ID, Pos: pos, Depth: depth, Detached: ask.Detached}}
	if c.Limits, err = lower(parent.Limits, ask.Limits); err != nil {
		return run.Created{}, err
	}
	c.SetBy = setBy(c.Limits, nil, "parent")
	c.Roles, c.Prompts, c.Judges = parent.Roles, parent.Prompts, parent.Judges
	return c, e.pin(e.ctx, &c, p)
}

// spawned starts a child, in the commit that tells its parent.
func (t *turn) spawned(a *active, pos int, c run.Created, err error) {
	e := t.e
	delete(a.spawning, pos)
	if e.ctx.Err() != nil {
		return
	}
	id, existing := "", false
	if err == nil {
		id, err = e.byKey(c.Key)
		existing = id != ""
	}
	switch {
	case err == nil && !existing:
		id, err = e.newID()
	case err == nil && e.above(a, id):
		err = apierr.New(apierr.InvalidArgument, "the key %q is of run %s, which itself waits for this one", c.Key, id)
	}
	if err != nil {
		_ = t.execute(a, run.ChildEnded{Pos: pos, Failure: cannotSpawn(err)}) // logged there
		return
	}
	if _ = t.execute(a, run.Spawned{Pos: pos, Run: id}); !began(a.state, pos, id) {
		return // the parent has ended, was suspended, or has run out of something meanwhile: nothing escapes it
	}
	if !existing {
		c.ID, c.Clock = id, t.now
		child := newActive(&run.State{})
		if t.execute(child, run.Create{Created: c}) == nil {
			e.add(child)
		}
	}
	if !c.Parent.Detached {
		e.await(a, pos, id)
	}
}

// began says whether a spawn has started a run.
func began(s *run.State, pos int, id string) bool {
	st := s.Step(pos)
	return st != nil && st.Child != nil && st.Child.Run == id
}

// above says whether a run is a itself or one of those that wait for it.
func (e *Engine) above(a *active, id string) bool {
	seen := map[string]bool{}
	for todo := []string{a.state.Pinned.ID}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		if at == id {
			return true
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, w := range e.waiters[at] {
			todo = append(todo, w.parent.state.Pinned.ID)
		}
	}
	return false
}

// cannotSpawn is why there is no child.
func cannotSpawn(err error) *run.Failure {
	f := &run.Failure{Kind: "cannot_spawn", Message: err.Error(), Advice: run.Never}
	if ae := apierr.As(err); ae != nil {
		f.Message, f.Next = ae.Error(), ae.Next
		if ae.Code == apierr.Unavailable {
			f.Advice = run.Again
		}
	}
	return f
}

// await has a spawn told of a run's end, which may be over already.
func (e *Engine) await(a *active, pos int, id string) {
	if child := e.runs[id]; child != nil && !child.told {
		e.waiters[id] = append(e.waiters[id], waiter{a, pos})
		return
	}
	e.wg.Go(func() {
		s, err := e.ended.state(e.ctx, e.o.Store, id)
		e.inbox.put(func(t *turn) {
			switch {
			case e.ctx.Err() != nil:
			case err != nil:
				_ = t.execute(a, run.ChildEnded{Pos: pos, Failure: cannotSpawn(err)}) // logged there
			case !s.Status.Ended():
				e.await(a, pos, id) // it was created by a turn that came later
			default:
				t.childEnded(a, pos, s)
			}
		})
	})
}

// settleEnds carries on what a run's end means for others, in the same commit: its parent hears of it, its children end with it.
func (t *turn) settleEnds() {
	for i := 0; i < len(t.touched); i++ { // it grows meanwhile
		a := t.touched[i]
		if !a.state.Status.Ended() || a.told {
			continue
		}
		a.told = true
		id := a.state.Pinned.ID
		for _, w := range t.e.waiters[id] {
			t.childEnded(w.parent, w.pos, a.state)
		}
		delete(t.e.waiters, id)
		t.endChildren(a, nil, fmt.Sprintf("run %s, which spawned it, is %s", id, a.state.Status))
	}
}

// childEnded gives a spawn its child's report.
func (t *turn) childEnded(parent *active, pos int, child *run.State) {
	if parent.state.Status.Ended() {
		return
	}
	report, bodies, err := reportOf(child)
	if err != nil {
		t.e.o.Log.Error("a child's report cannot be written", "run", child.Pinned.ID, "err", err)
		return
	}
	t.store(bodies)
	end := run.ChildEnd{Run: child.Pinned.ID, Status: child.Status, Simulated: simulated(child, failureGroups(child, t.e.roster()))}
	if childOf(child, parent.state) {
		end.Tokens, end.Calls = t.e.spent(child)
	}
	_ = t.execute(parent, run.ChildEnded{Pos: pos, End: end, Report: report}) // logged there
}

// reportOf is what a parent is given for its child, see docs/requests.md: by value while it is small. The fields are in the order of
// their names, because values cross the border as canonical JSON.
func reportOf(s *run.State) (run.Content, []ledger.Body, error) {
	type failed struct {
		Items   []string `json:"items"`
		Kind    string   `json:"kind"`
		Message string   `json:"message"`
	}
	out := struct {
		Coverage   float64                    `json:"coverage"`
		Failures   []failed                   `json:"failures"`
		Outputs    map[string]json.RawMessage `json:"outputs"`
		Run        string                     `json:"run"`
		Shortfalls []string                   `json:"shortfalls"`
		State      run.Status                 `json:"state"`
	}{Failures: []failed{}, Outputs: map[string]json.RawMessage{}, Run: s.Pinned.ID, Shortfalls: []string{}, State: s.Status}
	for _, g := range failureGroups(s, nil) {
		out.Failures = append(out.Failures, failed{g.Items[:min(len(g.Items), reported)], g.Kind, g.Message})
	}
	for _, o := range s.Outputs {
		out.Outputs[o.Name] = o.Value
	}
	if s.End != nil {
		out.Coverage = s.End.Coverage
		out.Shortfalls = append(out.Shortfalls, s.End.Shortfalls...)
	}
	if message, _ := endError(s); message != "" && len(out.Shortfalls) == 0 {
		out.Shortfalls = append(out.Shortfalls, message)
	}
	value, err := canonical(out)
	if err != nil || len(value) <= inlineLimit {
		return run.Content{Value: value}, nil, err
	}
	return run.Content{Ref: ledger.Digest(value), Bytes: int64(len(value))}, []ledger.Body{{Name: "report of " + s.Pinned.ID, Data: value}}, nil
}

// reported is how many items of one kind of failure a report names; the child has them all.
const reported = 20

// canonical is plain fields as JSON without escapes for HTML.
func canonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// cancelTree ends a run and everything below it that is not detached, in one turn and so in one commit. A spawn that is being made ready
// meanwhile finds its parent ended.
func (t *turn) cancelTree(a *active, reason string) error {
	if err := t.execute(a, run.Cancel{Reason: reason}); err != nil {
		return err
	}
	t.endChildren(a, nil, reason)
	return nil
}

// endChildren ends what a run has spawned and not detached: all of it, or that of some steps.
func (t *turn) endChildren(a *active, of func(*run.Step) bool, reason string) {
	for child, st := range t.e.attached(a) {
		if of == nil || of(st) {
			_ = t.cancelTree(child, reason) // logged there
		}
	}
}

// attached yields the children of a run that go on, with the steps that spawned them. A run that was there already when a spawn named
// its key is another's, and none of them.
func (e *Engine) attached(a *active) func(yield func(*active, *run.Step) bool) {
	return func(yield func(*active, *run.Step) bool) {
		for st := range a.state.Children {
			child := e.runs[st.Child.Run]
			if st.Detached || child == nil || child.state.Status.Ended() {
				continue
			}
			if !childOf(child.state, a.state) {
				continue
			}
			if !yield(child, st) {
				return
			}
		}
	}
}

// suspendTree parks a run and what it has spawned.
func (t *turn) suspendTree(a *active, by, reason string) error {
	if err := t.person(a, run.Suspend{By: by, Reason: reason}); err != nil {
		return err
	}
	t.suspendBelow(a, by)
	return nil
}

func (t *turn) suspendBelow(a *active, by string) {
	for child := range t.e.attached(a) {
		_ = t.execute(child, run.Suspend{By: by, Reason: parkedWith(a)}) // one that a person has parked before stays theirs
		t.suspendBelow(child, by)
	}
}

// resumeTree lets a run go on, and what was parked along with it.
func (t *turn) resumeTree(a *active, by string) error {
	if err := t.person(a, run.Resume{By: by}); err != nil {
		return err
	}
	for child := range t.e.attached(a) {
		if child.state.Status == run.Suspended && child.state.Reason == parkedWith(a) {
			if err := t.resumeTree(child, by); err != nil {
				return err
			}
		}
	}
	return nil
}

func parkedWith(a *active) string { return "along with run " + a.state.Pinned.ID }

// recoverChildren takes up what earlier lives began: spawns wait again, and what lost its parent ends.
func (t *turn) recoverChildren() {
	e := t.e
	for _, a := range e.order {
		for st := range a.state.Children {
			if !st.Detached && !st.Status.Ended() {
				e.await(a, st.Pos, st.Child.Run)
			}
		}
		if p := a.state.Pinned.Parent; p != nil && !p.Detached && e.runs[p.Run] == nil {
			_ = t.cancelTree(a, fmt.Sprintf("run %s, which spawned it, has ended", p.Run)) // logged there
		}
		t.spawn(a)
	}
}
