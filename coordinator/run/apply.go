package run

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Apply folds one event into s, in time that does not depend on how much came before (but for the run's end and a rollback, which
// touch every open item). An error means that the events are not those of one run in their order; s is then not to be used.
func Apply(s *State, e Event) error {
	if e.Seq != s.Seq+1 {
		return fmt.Errorf("event %d follows event %d", e.Seq, s.Seq)
	}
	if _, created := e.Data.(*Created); created != (s.Seq == 0) {
		return fmt.Errorf("event %d is %s", e.Seq, e.Data.Kind())
	}
	s.Seq = e.Seq
	if err := s.apply(e.Data, e.Time); err != nil {
		return fmt.Errorf("event %d, %s: %w", e.Seq, e.Data.Kind(), err)
	}
	s.park(e.Time)
	return nil
}

func (s *State) apply(p Payload, now time.Time) error {
	switch p := p.(type) {
	case *Requested:
		return s.requested(p, now)
	case *Placed:
		return s.placed(p, now)
	case *Begun:
		return s.begun(p)
	case *AttemptSucceeded:
		return s.succeeded(p, now)
	case *AttemptFailed:
		return s.failed(p, now)
	case *AttemptLate:
		return nil
	case *ItemFailed:
		return s.rejected(p)
	case *ItemTurned:
		return s.turned(p, now)
	case *ItemChecked:
		return s.checked(p, now)
	case *ItemReused:
		return s.reused(p, now)
	case *ItemDoubted:
		return s.doubted(p)
	case *ItemResolved:
		return s.resolved(p, now)
	case *ItemAsked:
		return s.asked(p)
	case *ItemPermitted:
		return s.permitted(p, now)
	case *StepEnded:
		return s.stepEnded(p, now)
	case *ChildStarted:
		return s.childStarted(p)
	case *PhaseMoved:
		return s.phaseMoved(p, now)
	case *Logged, *OutputNoted, *CollectedNoted, *Noted:
		return s.noted(p, now)
	default:
		return s.applyRun(p, now)
	}
}

// applyRun folds in what is about the run as a whole.
func (s *State) applyRun(p Payload, now time.Time) error {
	switch p := p.(type) {
	case *Created:
		s.Pinned, s.Status, s.Born, s.Shares = *p, Queued, now, map[string]*Share{}
		s.Contexts, s.Digests, s.names = map[string]int{}, map[string]string{}, map[string]string{}
	case *Started:
		s.Started = now
		s.become(Running, now)
	case *ScriptEnded:
		s.Script = p
	case *LimitReached:
		s.Limit = p
	case *Parked:
		s.Reason = p.Reason
		s.become(Suspended, now)
	case *Resumed:
		s.Reason = ""
		if s.Started.IsZero() {
			s.become(Queued, now)
		} else {
			s.become(Running, now)
		}
	case *CancelRequested:
		s.Epoch, s.Reason = p.Epoch, p.Reason
	case *Ended:
		s.end(p, now)
	default:
		return errors.New("no rule for it")
	}
	return nil
}

func (s *State) requested(p *Requested, now time.Time) error {
	if p.Pos != len(s.Requests) {
		return fmt.Errorf("position %d follows %d requests", p.Pos, len(s.Requests))
	}
	st := &Step{Pos: p.Pos, Kind: p.Op, Body: p.Body, Note: p.Note, Status: StepReady, Requested: now}
	s.Requests = append(s.Requests, st)
	if st.Note {
		st.Status, st.Ended = StepSucceeded, now
		return nil
	}
	s.opened(st)
	spec, err := parseSpec(p.Op, p.Body, p.Lines)
	if p.Refused != "" {
		err = errors.New(p.Refused)
	}
	if err == nil && steps[p.Op].work == model {
		st.Shared, err = shared(p.Body)
	}
	if err != nil {
		st.Failure = &Failure{Kind: KindBadRequest, Message: err.Error(), Advice: Never}
		if p.RefusedKind != "" {
			st.Failure.Kind = p.RefusedKind
		}
		s.due = append(s.due, st.Pos)
		return nil
	}
	st.spec, st.Label, st.Detached, st.handle, st.judge = spec, spec.Label, spec.Detached, p.Handle, p.Judge
	s.settleModels(st)
	if st.Kind == KindSpawn {
		s.spawns = append(s.spawns, st.Pos)
	}
	s.begin(st, now)
	return nil
}

// settleModels says which models a step may ask for.
func (s *State) settleModels(st *Step) {
	st.Models = s.candidates(st.spec.Model)
	if st.spec.Evaluate != nil {
		st.Judges = s.candidates(st.spec.Evaluate.Model)
	}
	if st.judge >= len(st.Models) {
		st.judge = 0
	}
	if len(st.Models) > 0 {
		st.Model = st.Models[st.judge]
	}
}

// begin hands a step to who does its work.
func (s *State) begin(st *Step, now time.Time) {
	k := steps[st.Kind]
	n := st.spec.count(st.Kind)
	switch {
	case k.work == reader:
		s.reads++
	case k.waits != "":
		s.parkStep(st, st.spec.dueAt(st.Kind, now))
	case n == 0, st.Kind == KindEvaluate && s.settled(st) != nil:
		s.due = append(s.due, st.Pos)
	default:
		st.Items = make([]Item, n)
		for i := range st.Items {
			st.Items[i].Status = StepReady
		}
		st.Counts.Total, st.Counts.Waiting = n, n
		s.Counts.Total += n
		s.Counts.Waiting += n
		s.fanOut(n * st.calls())
	}
}

// calls is how many an item makes where all goes well.
func (st *Step) calls() int {
	two := func(judges []string) int { return min(2, len(judges)) }
	if st.Kind == KindEvaluate {
		return two(st.Models)
	}
	return 1 + two(st.Judges)
}

func (s *State) stepEnded(p *StepEnded, now time.Time) error {
	st := s.Step(p.Pos)
	if st == nil || st.Note || st.Status.Ended() {
		return fmt.Errorf("step %d is not open", p.Pos)
	}
	if st.spec != nil {
		switch k := steps[st.Kind]; {
		case k.work == reader:
			s.reads--
		case k.waits != "":
			s.unparkStep(st)
		}
	}
	if st.Kind == KindPhase {
		s.answered(st)
	}
	st.Status, st.Failure, st.Result, st.Ended = p.Status, p.Failure, p.Result, now
	st.From = p.From
	if p.Child != nil {
		st.Child = p.Child
		s.Simulated = s.Simulated || p.Child.Simulated
		if p.From == nil {
			s.below.tokens, s.below.calls = s.below.tokens+p.Child.Tokens, s.below.calls+p.Child.Calls
		}
	}
	s.closed(st)
	st.rest()
	if i := slices.Index(s.due, p.Pos); i >= 0 {
		if s.due = slices.Delete(s.due, i, i+1); len(s.due) == 0 {
			s.due = nil
		}
	}
	s.Deliveries = append(s.Deliveries, Delivery{Pos: p.Pos, Time: now})
	return nil
}

// rest lets go of what only an open step needs.
func (st *Step) rest() {
	slices.Sort(st.Failed)
	st.Shared = nil
	if st.Kind != KindBatch && st.spec != nil {
		if len(st.Items) > 0 {
			st.single, st.named = st.ownKey(0)
		}
		st.spec = nil
	}
}

// end cancels what is open: the run's end is the end of all its parts.
func (s *State) end(p *Ended, now time.Time) {
	s.become(p.Status, now)
	s.Ended, s.End, s.due = now, p, nil
	for st := range s.Open {
		s.stop(st, StepCancelled)
		st.Status, st.Ended = StepCancelled, now
		if len(st.Items) == 1 && st.Items[0].Status == StepUnknown {
			st.Status = StepUnknown
		}
		st.rest()
	}
	s.open = openSteps{}
	s.reads, s.parked, s.checks, s.timers = 0, 0, 0, nil
}

// stop ends the items of a step that have no end yet. What a tool was writing outside may have happened.
func (s *State) stop(st *Step, as StepStatus) {
	for i := st.low; i < len(st.Items); i++ {
		it := &st.Items[i]
		if it.Status.Ended() || it.Status == StepUnknown {
			continue
		}
		to := as
		if it.Flight != nil {
			if it.Flight.External {
				to = StepUnknown
			}
			it.Flight = nil
			s.flights--
		} else if it.Status == StepRunning {
			s.checks--
		} else if it.asked() {
			s.parked--
		}
		s.move(st, i, to)
		it.tries = nil
	}
	st.low, st.fresh = len(st.Items), len(st.Items)
	st.waiting, st.later, st.flying = [2]indices{}, nil, nil
}
