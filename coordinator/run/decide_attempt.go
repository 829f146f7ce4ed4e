package run

import "time"

func (c Place) decide(s *State, _ time.Time) ([]Payload, error) {
	st, it := s.item(c.Pos, c.Item)
	switch {
	case it == nil:
		return nil, errNoSuch(c.Pos, c.Item)
	case s.Status != Running || s.Limit != nil || it.Status != StepReady || it.asked() || st.next(c.Item) != c.AttemptID:
		return nil, ErrStale
	}
	return []Payload{&Placed{AttemptID: c.AttemptID, Node: c.Node, Model: c.Model, Digest: c.Digest, Context: c.Context,
		Seed: s.seed(it, c.AttemptID), Why: c.Why, External: c.External}}, nil
}

func (c Begin) decide(s *State, _ time.Time) ([]Payload, error) {
	_, it := s.flying(c.AttemptID)
	if it == nil || it.Flight.Begun {
		return nil, ErrStale
	}
	return []Payload{&Begun{c.AttemptID}}, nil
}

func (c Finish) decide(s *State, now time.Time) ([]Payload, error) {
	st, it := s.flying(c.AttemptID)
	if it == nil {
		return nil, ErrStale
	}
	c.Node = it.Flight.Node
	if c.Failure == nil && st.judges(c.Phase) {
		var end Payload
		if end, c.Failure = s.judgement(c, st, it, now); c.Failure == nil {
			return []Payload{end}, nil
		}
	}
	if c.Failure == nil {
		c.Result, c.Failure = s.within(c.Result, it.Flight.External)
	}
	if c.Failure != nil {
		end := &AttemptFailed{AttemptID: c.AttemptID, Evidence: c.Evidence, Cause: *c.Failure, Rejected: c.Rejected}
		end.Consequence, end.Counted = afterFailure(s, st, it, end, now)
		return []Payload{end}, nil
	}
	by := ""
	if st.Judges != nil {
		by = st.Models[it.tries.model]
	}
	return []Payload{&AttemptSucceeded{AttemptID: c.AttemptID, Evidence: c.Evidence, Result: c.Result, Consequence: s.accepted(st, Work, by)}}, nil
}

// accepted is what follows when a phase has accepted an item's result, which that model made.
func (s *State) accepted(st *Step, by Phase, maker string) Consequence {
	switch {
	case by == Work && st.spec.Check:
		return Consequence{Then: ThenCheck}
	case by != Judge && st.spec.Evaluate != nil:
		return Consequence{Then: ThenJudge, Model: s.opening(st, maker)}
	default:
		return Consequence{Then: ThenSucceeded}
	}
}

func (c Late) decide(s *State, _ time.Time) ([]Payload, error) {
	if _, it := s.item(c.Pos, c.Item); it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	return []Payload{&AttemptLate{c.AttemptID, c.Evidence, c.Result, c.Failure}}, nil
}

func (c Reject) decide(s *State, _ time.Time) ([]Payload, error) {
	st, it := s.item(c.Pos, c.Item)
	if it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	if it.Status != StepReady {
		return nil, ErrStale
	}
	if next, other := s.otherModel(st, c.Item); other {
		return []Payload{&ItemTurned{Pos: c.Pos, Item: c.Item, Model: next, Cause: c.Failure}}, nil
	}
	return []Payload{&ItemFailed{Pos: c.Pos, Item: c.Item, Failure: c.Failure}}, nil
}

// otherModel is the one that an item asks for when nobody can take the one whose turn it is, false when there is none.
func (s *State) otherModel(st *Step, i int) (int, bool) {
	it, next := &st.Items[i], 1
	if st.judges(it.phase()) {
		return s.stead(st, it)
	}
	if it.tries != nil {
		next = it.tries.model + 1
	}
	return next, next < len(st.Models)
}

// flying returns the item that has exactly this attempt in flight, nil when none has.
func (s *State) flying(a AttemptID) (*Step, *Item) {
	st, it := s.item(a.Pos, a.Item)
	if it == nil || it.Flight == nil || it.Flight.AttemptID != a || it.Flight.Epoch != s.Epoch {
		return nil, nil
	}
	return st, it
}
