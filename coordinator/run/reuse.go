package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

func (c Reuse) decide(s *State, _ time.Time) ([]Payload, error) {
	st := s.Step(c.Pos)
	switch {
	case st == nil || st.Note:
		return nil, errNoSuch(c.Pos, c.Item)
	case st.Status.Ended() || st.spec == nil:
		return nil, ErrStale
	case len(st.Items) == 0 && steps[st.Kind].waits == "":
		return nil, fmt.Errorf("step %d takes nothing over", c.Pos)
	case len(st.Items) == 0:
		from := c.From
		return []Payload{&StepEnded{Pos: c.Pos, Status: StepSucceeded, Result: c.Result, From: &from, Child: c.Child}}, nil
	}
	_, it := s.item(c.Pos, c.Item)
	if it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	if it.Status != StepReady {
		return nil, ErrStale
	}
	p := &ItemReused{Pos: c.Pos, Item: c.Item, From: c.From, Result: c.Result, Node: c.Node, Report: c.Report, Consequence: Consequence{Then: ThenSucceeded}}
	if st.spec.Check {
		p.Then = ThenCheck
	}
	return []Payload{p}, nil
}

// reused gives an item a result that cost nothing here.
func (s *State) reused(p *ItemReused, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady {
		return errors.New("the item does not wait")
	}
	st.touch(p.Item)
	st.unlist(p.Item)
	it.Result, it.Event, it.Node, it.Report = p.Result, s.Seq, s.name(p.Node), s.spent(p.Report)
	it.Report.Reused = true
	s.Simulated = s.Simulated || p.Report.Simulated
	s.consequence(st, p.Item, p.Consequence, nil, now)
	return nil
}

func (c Doubt) decide(s *State, _ time.Time) ([]Payload, error) {
	st, it := s.item(c.Pos, c.Item)
	switch {
	case it == nil || st.Kind != KindTool:
		return nil, errNoSuch(c.Pos, c.Item)
	case it.Status != StepReady:
		return nil, ErrStale
	}
	return []Payload{&ItemDoubted{Pos: c.Pos, Item: c.Item, From: c.From}}, nil
}

func (s *State) doubted(p *ItemDoubted) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady {
		return errors.New("the item does not wait")
	}
	st.touch(p.Item)
	st.unlist(p.Item)
	it.Failure = &Failure{Kind: KindUnknown, Message: fmt.Sprintf("whether step %d of run %s wrote it is unknown", p.From.Pos, p.From.Run), Advice: Never}
	s.parked++
	s.move(st, p.Item, StepUnknown)
	return nil
}

func (c Resolve) decide(s *State, now time.Time) ([]Payload, error) {
	_, it := s.item(c.Pos, c.Item)
	if it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	if it.Status != StepUnknown {
		return nil, ErrStale
	}
	p := &ItemResolved{Pos: c.Pos, Item: c.Item, By: c.By, Comment: c.Comment, Consequence: Consequence{Then: ThenRetry, RetryAt: &now}}
	if c.Happened {
		p.Result, p.Then, p.RetryAt = c.Result, ThenSucceeded, nil
		if p.Result.Empty() {
			p.Result.Value = json.RawMessage("null")
		}
	}
	return []Payload{p}, nil
}

func (s *State) resolved(p *ItemResolved, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepUnknown {
		return errors.New("the item's outcome is not unknown")
	}
	s.parked--
	if p.Then == ThenSucceeded {
		it.Result, it.Event = p.Result, s.Seq
	}
	s.consequence(st, p.Item, p.Consequence, it.Failure, now)
	return nil
}
