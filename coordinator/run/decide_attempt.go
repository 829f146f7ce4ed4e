package run

import "time"

func (c Place) decide(s *State, _ time.Time) ([]Payload, error) {
	st, it := s.item(c.Pos, c.Item)
	switch {
	case it == nil:
		return nil, errNoSuch(c.Pos, c.Item)
	case s.Status != Running || s.Limit != nil || it.Status != StepReady || st.next(c.Item) != c.AttemptID:
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
	var v verdict
	if c.Failure == nil && c.Phase == Judge {
		if v, c.Failure = readVerdict(c.Result); c.Failure == nil {
			return []Payload{&AttemptSucceeded{c.AttemptID, c.Evidence, c.Result, v.consequence(st, it, now)}}, nil
		}
	}
	if c.Failure == nil {
		c.Result, c.Failure = s.within(c.Result, it.Flight.External)
	}
	if c.Failure != nil {
		then, counted := afterFailure(s, st, it, c.AttemptID, c.Node, *c.Failure, now)
		return []Payload{&AttemptFailed{c.AttemptID, c.Evidence, *c.Failure, counted, then}}, nil
	}
	return []Payload{&AttemptSucceeded{c.AttemptID, c.Evidence, c.Result, Consequence{Then: st.spec.accepted(Work)}}}, nil
}

// accepted is what follows when a phase has accepted an item's result.
func (s *spec) accepted(by Phase) Then {
	switch {
	case by == Work && s.Check:
		return ThenCheck
	case by != Judge && s.Evaluate != nil:
		return ThenJudge
	default:
		return ThenSucceeded
	}
}

func (c Late) decide(s *State, _ time.Time) ([]Payload, error) {
	if _, it := s.item(c.Pos, c.Item); it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	return []Payload{&AttemptLate{c.AttemptID, c.Evidence, c.Result, c.Failure}}, nil
}

func (c Reject) decide(s *State, _ time.Time) ([]Payload, error) {
	_, it := s.item(c.Pos, c.Item)
	if it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	if it.Status != StepReady {
		return nil, ErrStale
	}
	return []Payload{&ItemFailed{Pos: c.Pos, Item: c.Item, Failure: c.Failure}}, nil
}

// flying returns the item that has exactly this attempt in flight, nil when none has.
func (s *State) flying(a AttemptID) (*Step, *Item) {
	st, it := s.item(a.Pos, a.Item)
	if it == nil || it.Flight == nil || it.Flight.AttemptID != a || it.Flight.Epoch != s.Epoch {
		return nil, nil
	}
	return st, it
}
