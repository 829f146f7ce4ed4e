package engine

import (
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// A run's limits of tokens and calls are those of all that it spawns and waits for. What is spent below it counts against them while it is
// spent; that they are reached is an event of every run of the tree, so a replay needs nothing of this.

// childOf says whether a run was spawned by another one: a key may have led to somebody else's.
func childOf(child, parent *run.State) bool {
	p := child.Pinned.Parent
	return p != nil && p.Run == parent.Pinned.ID
}

// spent is what a run and those below it have used so far.
func (e *Engine) spent(s *run.State) (tokens, calls int64) {
	tokens, calls = s.Spent()
	for st := range s.Open {
		if child := e.below(s, st); child != nil {
			more, also := e.spent(child.state)
			tokens, calls = tokens+more, calls+also
		}
	}
	return tokens, calls
}

// below is the child of an open step that counts against a run, nil for none.
func (e *Engine) below(s *run.State, st *run.Step) *active {
	if st.Child == nil || st.Detached || st.From != nil {
		return nil
	}
	child := e.runs[st.Child.Run]
	if child == nil || !childOf(child.state, s) {
		return nil
	}
	return child
}

// addBelow adds to what a run has spent of its limits what children that go on have.
func (e *Engine) addBelow(a *active, v *View) {
	if a.state.Status.Ended() {
		return
	}
	for i := range v.Limits {
		switch l := &v.Limits[i]; l.Name {
		case run.LimitTokens:
			l.Spent, _ = e.spent(a.state)
		case run.LimitCalls:
			_, l.Spent = e.spent(a.state)
		}
	}
}

// wants says whether anything in a tree is yet to start.
func (e *Engine) wants(s *run.State) bool {
	if s.Wants() {
		return true
	}
	for st := range s.Open {
		if child := e.below(s, st); child != nil && !child.state.Status.Ended() && e.wants(child.state) {
			return true
		}
	}
	return false
}

// remaining are the limits that a child gets at most: what its parent, and those above it, have left.
func (e *Engine) remaining(s *run.State) run.Limits {
	l := s.Pinned.Limits
	tokens, calls := e.spent(s)
	if l.Tokens > 0 {
		l.Tokens = max(1, l.Tokens-tokens)
	}
	if l.Calls > 0 {
		l.Calls = max(1, l.Calls-calls)
	}
	return l
}

// boundMark is when the trees of a run were looked at last.
type boundMark struct {
	turn   *turn
	events int
}

// bound ends what the tree of a run has used up: its own limits and those of all that wait for it.
func (t *turn) bound(a *active) {
	for at := a; at != nil; at = t.e.parentOf(at) {
		l := at.state.Pinned.Limits
		mark := boundMark{t, len(t.commit.Events)}
		if l.Tokens == 0 && l.Calls == 0 || at.bounded == mark {
			continue
		}
		at.bounded = mark
		reached := at.state.Limit
		if reached == nil {
			if reached = at.state.Reached(t.e.spent(at.state)); reached == nil || !t.e.wants(at.state) {
				continue
			}
			if _ = t.execute(at, run.Exhaust{LimitReached: *reached}); at.state.Limit == nil {
				continue
			}
		}
		if reached.Limit == run.LimitTokens || reached.Limit == run.LimitCalls {
			t.exhaustBelow(at, *reached)
		}
	}
}

// exhaustBelow has nothing new start below a run whose limit is reached. One that is still queued is told when it begins.
func (t *turn) exhaustBelow(a *active, reached run.LimitReached) {
	if reached.Of == "" {
		reached.Of = a.state.Pinned.ID
	}
	reached.Worst = 0
	for child := range t.e.attached(a) {
		_ = t.execute(child, run.Exhaust{LimitReached: reached})
		t.exhaustBelow(child, reached)
	}
}

// parentOf is the run that waits for another one as its child, nil for none.
func (e *Engine) parentOf(a *active) *active {
	p := a.state.Pinned.Parent
	if p == nil || p.Detached {
		return nil
	}
	return e.runs[p.Run]
}
