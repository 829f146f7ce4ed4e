package run

import (
	"fmt"
	"time"
)

// follow returns what the state itself calls for: an end that is due, a phase's move, a limit. It looks at no more than what changed.
func follow(s *State, now time.Time) []Payload {
	switch {
	case s.Status.Ended():
		return nil
	case s.Epoch > 0:
		return []Payload{s.ended(Cancelled, nil, nil, now)}
	case s.Script != nil && s.Script.Error != nil && s.Status != Suspended:
		return []Payload{s.ended(Failed, s.Script.Error, nil, now)}
	case len(s.due) > 0:
		return []Payload{s.settleDue(s.Requests[s.due[0]])}
	case s.Script != nil && s.reads > 0:
		return []Payload{s.skipRead()}
	case s.Status == Suspended: // its end waits until it is resumed
		return nil
	case s.Script != nil && s.open.n == 0:
		return []Payload{s.ended(s.verdict(), nil, nil, now)}
	case s.Limit != nil && s.flights == 0 && s.checks == 0 && !s.hasChildren():
		return []Payload{s.ended(s.Limit.status(), nil, nil, now)}
	}
	if limit := s.exhausted(); limit != nil {
		return []Payload{limit}
	}
	return nil
}

// settleDue ends a step that has nothing left to do, or moves the pipeline that it is about.
func (s *State) settleDue(st *Step) Payload {
	switch {
	case st.Failure != nil:
		return st.end()
	case st.Kind == KindPhase:
		return s.phase(st)
	case st.Kind == KindPage:
		return s.page(st)
	case st.Kind == KindEvaluate && len(st.Items) == 0:
		return s.settle(st)
	default:
		return st.end()
	}
}

// settle ends an evaluate that nobody need be asked about.
func (s *State) settle(st *Step) Payload {
	v, err := marshal(s.settled(st))
	if err != nil {
		return &StepEnded{Pos: st.Pos, Status: StepFailed, Failure: &Failure{Kind: KindBadRequest, Message: err.Error(), Advice: Never}}
	}
	return &StepEnded{Pos: st.Pos, Status: StepSucceeded, Result: Content{Value: v}}
}

// skipRead ends a read that nobody will look at any more, because the script has ended.
func (s *State) skipRead() *StepEnded {
	for st := range s.Open {
		if st.Kind == KindRead {
			return &StepEnded{Pos: st.Pos, Status: StepSkipped}
		}
	}
	return nil
}

// end settles a step whose items have all ended. A batch with failures is failed, but its result is delivered all the same.
func (st *Step) end() *StepEnded {
	switch n := len(st.Failed); {
	case st.Failure != nil:
		return &StepEnded{Pos: st.Pos, Status: StepFailed, Failure: st.Failure}
	case n == 0:
		return &StepEnded{Pos: st.Pos, Status: StepSucceeded}
	case st.Kind == KindBatch:
		return &StepEnded{Pos: st.Pos, Status: StepFailed, Failure: &Failure{Kind: KindItemsFailed, Advice: Never,
			Message: fmt.Sprintf("%d of %d items failed", n, len(st.Items))}}
	default:
		return &StepEnded{Pos: st.Pos, Status: StepFailed, Failure: st.Items[0].Failure}
	}
}

// verdict is the end of a run whose script has returned.
func (s *State) verdict() Status {
	if list, _ := s.shortfalls(); len(list) > 0 {
		return Incomplete
	}
	return Completed
}

// ended is the run's last event, with the counts as they will be when all that is open is stopped.
func (s *State) ended(as Status, err *Error, d *Divergence, now time.Time) *Ended {
	c := s.Counts
	for f := range s.Flights {
		if f.External { // it becomes unknown
			c.Running--
			c.Failed++
		}
	}
	c.Cancelled += c.Running + c.Waiting
	c.Running, c.Waiting = 0, 0
	list, j := s.shortfalls()
	e := &Ended{Status: as, Error: err, Divergence: d, Coverage: j.share(), Counts: c, Limit: s.limitEnd(now)}
	if as != Completed {
		e.Shortfalls = list
		if e.Limit != nil {
			e.Shortfalls = append([]string{e.Limit.String()}, list...)
		}
	}
	if !j.a.empty() {
		e.Acceptance = j.a
	}
	return e
}
