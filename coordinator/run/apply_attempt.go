package run

import (
	"errors"
	"slices"
	"time"
)

func (s *State) placed(p *Placed, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady || st.next(p.Item) != p.AttemptID {
		return errors.New("the item is not ready for it")
	}
	st.touch(p.Item)
	st.unlist(p.Item)
	it.Sent[phaseIndex(p.Phase)]++
	if p.Phase == Work && p.Number > 1 && (st.Kind != KindEvaluate || it.Failure != nil) { // the next judge is no retry
		st.Counts.Retried++
		s.Counts.Retried++
	}
	it.Flight = &Flight{AttemptID: p.AttemptID, Try: it.try(p.AttemptID), Node: p.Node, Model: p.Model, Digest: p.Digest, Context: p.Context,
		Seed: p.Seed, Why: p.Why, External: p.External, Epoch: s.Epoch, Since: now}
	st.External = st.External || p.External
	st.flying.add(p.Item)
	s.move(st, p.Item, StepPlaced)
	if steps[st.Kind].work == model {
		asked := st.Asked(p.Item)
		s.Contexts[asked] = max(s.Contexts[asked], p.Context)
		if s.Digests[asked] == "" && p.Digest != "" {
			s.Digests[asked] = p.Digest
		}
	}
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
		return errors.New("the attempt is not in flight")
	}
	it.Flight.Begun = true
	s.move(st, p.Item, StepRunning)
	return nil
}

func (s *State) succeeded(p *AttemptSucceeded, now time.Time) error {
	_, flying := s.item(p.Pos, p.Item)
	var flight *Flight
	if flying != nil {
		flight = flying.Flight
	}
	st, it, err := s.land(p.AttemptID, p.Evidence)
	if err != nil {
		return err
	}
	by := it.tries.model
	if st.judges(p.Phase) {
		by = st.seat(p.Item)
	}
	if st.judges(p.Phase) && p.Then == ThenJudge {
		j, failure := readJudgement(p.Result)
		if failure != nil {
			return errors.New(failure.Message)
		}
		so := s.judged(st, it, flight, j)
		it.tries.judging = &so
	} else if p.Phase == Work {
		it.tries.work++
		it.tries.judging = nil
		it.Result, it.Event, it.Node = resultOf(p), s.Seq, s.name(p.Node)
		it.Report = s.spent(p.Report)
		it.Report.Candidate = uint16(by)
	}
	s.consequence(st, p.Item, p.Consequence, p.Consequence.Failure, now)
	return nil
}

func (s *State) spent(r Report) Spent {
	return Spent{Model: s.name(r.Model), PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens, Nanos: r.TotalNanos, Simulated: r.Simulated}
}

func (s *State) failed(p *AttemptFailed, now time.Time) error {
	st, it, err := s.land(p.AttemptID, p.Evidence)
	if err != nil {
		return err
	}
	if share := s.share(st, p.Node); share != nil {
		share.FailedTries++
	}
	t := it.tries
	switch {
	case !p.Counted:
		t.lost[phaseIndex(p.Phase)]++
	case st.judges(p.Phase):
		t.seats(st).fails++
	default:
		t.work++
	}
	t.failedOn = s.name(p.Node)
	if it.Result.Empty() {
		it.Node = s.name(p.Node)
	}
	if p.Avoid != "" && !slices.Contains(t.avoid, p.Avoid) {
		t.avoid = append(t.avoid, p.Avoid)
	}
	st.take(it, p)
	cause := p.Cause // a copy: an item that failed does not keep its event
	if p.Consequence.Failure != nil {
		cause = *p.Consequence.Failure
	}
	s.consequence(st, p.Item, p.Consequence, &cause, now)
	return nil
}

// land takes an attempt out of flight and books what it used.
func (s *State) land(a AttemptID, e Evidence) (*Step, *Item, error) {
	st, it := s.flying(a)
	if it == nil {
		return nil, nil, errors.New("the attempt is not in flight")
	}
	it.Flight = nil
	st.flying.remove(a.Item)
	s.flights--
	st.took(a, e.Report)
	s.PromptTokens += e.Report.PromptTokens
	s.OutputTokens += e.Report.OutputTokens
	s.Simulated = s.Simulated || e.Report.Simulated
	if share := s.share(st, e.Node); share != nil {
		share.OutputTokens += e.Report.OutputTokens
		share.OutputNanos += e.Report.OutputNanos
		share.Simulated = share.Simulated || e.Report.Simulated
	}
	return st, it, nil
}

// share is what a node did, nil for a step that runs on none.
func (s *State) share(st *Step, node string) *Share {
	if steps[st.Kind].work != model {
		return nil
	}
	if s.Shares[node] == nil {
		s.Shares[node] = &Share{}
	}
	return s.Shares[node]
}

// consequence moves an item on after an attempt, a check or a resolution. f is why it goes on as it does, nil when a verdict
// or a check sent it back.
func (s *State) consequence(st *Step, i int, c Consequence, f *Failure, now time.Time) {
	it := &st.Items[i]
	t := it.tries
	t.feedback = append(t.feedback, c.Feedback...)
	switch c.Then {
	case ThenSucceeded:
		it.Failure = nil
		if it.Report.Reused {
			st.Counts.Reused++
			s.Counts.Reused++
		} else if share := s.share(st, it.Node); share != nil {
			share.Items++
		}
		s.endItem(st, i, StepSucceeded)
	case ThenFailed:
		it.Failure = f
		s.endItem(st, i, StepFailed)
	case ThenCheck:
		t.phase, t.avoid, t.failedOn, t.check = Check, nil, "", len(s.Deliveries)
		s.checks++
		s.Deliveries = append(s.Deliveries, Delivery{Pos: st.Pos, Time: now, Check: true, Item: i, Event: it.Event})
		s.move(st, i, StepRunning)
	case ThenJudge:
		s.seated(st, i, c.Model, now)
	case ThenRetry:
		if f == nil { // sent back: the work is to be done again, by whoever
			t.phase, t.failedOn, t.judging = Work, "", nil
			t.well()
		}
		it.Failure, t.ready = f, now
		if c.RetryAt != nil {
			t.ready = *c.RetryAt
		}
		s.move(st, i, StepReady)
		st.wait(i, now)
	case ThenUnknown:
		it.Failure = f
		s.move(st, i, StepUnknown)
		s.parked++
	}
}

func (s *State) rejected(p *ItemFailed) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady {
		return errors.New("the item does not wait")
	}
	st.touch(p.Item)
	st.unlist(p.Item)
	f := p.Failure
	it.Failure = &f
	s.endItem(st, p.Item, StepFailed)
	return nil
}

// turned offers an item to the next model.
func (s *State) turned(p *ItemTurned, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady {
		return errors.New("the item does not wait")
	}
	st.touch(p.Item)
	st.unlist(p.Item)
	st.turn(it, it.tries.phase, p.Model)
	f := p.Cause
	it.Failure, it.tries.ready = &f, now
	st.wait(p.Item, now)
	return nil
}

// endItem ends an item, and makes its step due with the last one.
func (s *State) endItem(st *Step, i int, as StepStatus) {
	s.move(st, i, as)
	it := &st.Items[i]
	it.tries = nil
	if as == StepFailed {
		st.Failed = append(st.Failed, i)
	}
	if len(st.Items) > PageLimit {
		it.Result = Content{} // in its event
	}
	for st.low < len(st.Items) && st.Items[st.low].Status.Ended() {
		st.low++
	}
	if st.low == len(st.Items) {
		s.due = append(s.due, st.Pos)
	}
}
