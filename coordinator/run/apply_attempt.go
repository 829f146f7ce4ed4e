package run

import (
	"fmt"
	"slices"
	"time"
)

func (s *State) placed(p *Placed, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady || st.next(p.Item) != p.AttemptID {
		return fmt.Errorf("the item is not ready for it")
	}
	it.Sent[phaseIndex(p.Phase)]++
	if p.Phase == Work && p.Number > 1 {
		st.Counts.Retried++
		s.Counts.Retried++
	}
	it.Flight = &Flight{AttemptID: p.AttemptID, Try: it.try(p.AttemptID), Node: p.Node, Model: p.Model, Digest: p.Digest, Context: p.Context,
		Seed: p.Seed, Why: p.Why, Epoch: s.Epoch, Since: now}
	s.move(st, it, StepPlaced)
	model := st.model(p.Phase)
	s.Contexts[model] = max(s.Contexts[model], p.Context)
	if s.Digests[model] == "" && p.Digest != "" {
		s.Digests[model] = p.Digest
	}
	st.fresh = max(st.fresh, p.Item+1)
	if st.Began.IsZero() {
		st.Began = now
	}
	s.flights++
	s.Calls++
	return nil
}

func (s *State) begun(p *Begun) error {
	st, it := s.flying(p.AttemptID)
	if it == nil {
		return fmt.Errorf("the attempt is not in flight")
	}
	it.Flight.Begun = true
	s.move(st, it, StepRunning)
	return nil
}

func (s *State) succeeded(p *AttemptSucceeded, now time.Time) error {
	st, it, err := s.land(p.AttemptID, p.Evidence)
	if err != nil {
		return err
	}
	if p.Phase == Work {
		it.Tries++
		it.JudgeTries = 0
		it.Result, it.Report, it.Node = p.Result, p.Report, p.Node
	}
	it.Feedback = append(it.Feedback, p.Feedback...)
	s.consequence(st, it, p.Item, p.Consequence, p.Consequence.Failure, now)
	return nil
}

func (s *State) failed(p *AttemptFailed, now time.Time) error {
	st, it, err := s.land(p.AttemptID, p.Evidence)
	if err != nil {
		return err
	}
	s.share(p.Node).FailedTries++
	switch {
	case !p.Counted:
		it.Lost[phaseIndex(p.Phase)]++
	case p.Phase == Judge:
		it.JudgeTries++
	default:
		it.Tries++
	}
	it.failedOn = p.Node
	if it.Result.Empty() {
		it.Node = p.Node
	}
	if p.Avoid != "" && !slices.Contains(it.Avoid, p.Avoid) {
		it.Avoid = append(it.Avoid, p.Avoid)
	}
	cause := p.Cause
	s.consequence(st, it, p.Item, p.Consequence, &cause, now)
	return nil
}

// land takes an attempt out of flight and books what it used.
func (s *State) land(a AttemptID, e Evidence) (*Step, *Item, error) {
	st, it := s.flying(a)
	if it == nil {
		return nil, nil, fmt.Errorf("the attempt is not in flight")
	}
	it.Flight = nil
	s.flights--
	st.took(a, e.Report)
	s.PromptTokens += e.Report.PromptTokens
	s.OutputTokens += e.Report.OutputTokens
	s.Simulated = s.Simulated || e.Report.Simulated
	share := s.share(e.Node)
	share.OutputTokens += e.Report.OutputTokens
	share.OutputNanos += e.Report.OutputNanos
	share.Simulated = share.Simulated || e.Report.Simulated
	return st, it, nil
}

func (s *State) share(node string) *Share {
	if s.Shares[node] == nil {
		s.Shares[node] = &Share{}
	}
	return s.Shares[node]
}

// consequence moves an item on after an attempt.
func (s *State) consequence(st *Step, it *Item, i int, c Consequence, f *Failure, now time.Time) {
	switch c.Then {
	case ThenSucceeded:
		it.Failure = nil
		s.share(it.Node).Items++
		s.endItem(st, i, StepSucceeded)
	case ThenFailed:
		it.Failure = f
		s.endItem(st, i, StepFailed)
	case ThenJudge:
		it.Phase, it.Ready, it.Avoid, it.failedOn = Judge, now, nil, ""
		s.move(st, it, StepReady)
	case ThenRetry:
		if f == nil { // sent back: the work is to be done again, by whoever
			it.Phase, it.failedOn = Work, ""
		}
		it.Failure, it.Ready = f, now
		if c.RetryAt != nil {
			it.Ready = *c.RetryAt
		}
		s.move(st, it, StepReady)
	}
}

func (s *State) rejected(p *ItemFailed, _ time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady {
		return fmt.Errorf("the item does not wait")
	}
	f := p.Failure
	it.Failure = &f
	st.fresh = max(st.fresh, p.Item+1)
	s.endItem(st, p.Item, StepFailed)
	return nil
}

// endItem ends an item, and makes its step due with the last one.
func (s *State) endItem(st *Step, i int, as StepStatus) {
	s.move(st, &st.Items[i], as)
	if as == StepFailed {
		st.Failed = append(st.Failed, i)
	}
	for st.low < len(st.Items) && st.Items[st.low].Status.Ended() {
		st.low++
	}
	if st.low == len(st.Items) {
		s.due = append(s.due, st.Pos)
	}
}
