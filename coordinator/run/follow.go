package run

import (
	"fmt"
	"slices"
	"strings"
)

// follow returns what the state itself calls for: an end that is due. It looks at no more than what changed.
func follow(s *State) []Payload {
	switch {
	case s.Status.Ended():
		return nil
	case s.Epoch > 0:
		return []Payload{s.ended(Cancelled, nil, nil)}
	case s.Script != nil && s.Script.Error != nil:
		return []Payload{s.ended(Failed, s.Script.Error, nil)}
	case len(s.due) > 0:
		return []Payload{s.Requests[s.due[0]].end()}
	case s.Script != nil && s.reads > 0:
		return []Payload{s.skipRead()}
	case s.Script != nil && s.open == 0:
		if len(s.shortfalls()) > 0 {
			return []Payload{s.ended(Incomplete, nil, nil)}
		}
		return []Payload{s.ended(Completed, nil, nil)}
	case s.Limit != nil && s.flights == 0:
		return []Payload{s.ended(TimedOut, nil, nil)}
	}
	return nil
}

// skipRead ends a read that nobody will look at any more, because the script has ended.
func (s *State) skipRead() *StepEnded {
	i := slices.IndexFunc(s.Requests, func(st *Step) bool { return st.Kind == KindRead && !st.Status.Ended() })
	return &StepEnded{Pos: i, Status: StepSkipped}
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

// ended is the run's last event, with the counts as they will be when all that is open is cancelled.
func (s *State) ended(as Status, err *Error, d *Divergence) *Ended {
	c := s.Counts
	c.Cancelled += c.Running + c.Waiting
	c.Running, c.Waiting = 0, 0
	e := &Ended{Status: as, Error: err, Divergence: d, Coverage: c.Coverage(), Counts: c}
	if as != Completed {
		e.Shortfalls = s.shortfalls()
	}
	return e
}

// maxShortfalls bounds the list in the run's last event; the failures themselves are with their items.
const maxShortfalls = 20

// shortfalls says why the run's task is not done although its program may be: nothing when every item and step succeeded,
// nothing was collected as failed, and every output rests on steps that succeeded.
func (s *State) shortfalls() []string {
	var out []string
	if s.Limit != nil {
		out = append(out, fmt.Sprintf("the time limit of %d s was reached after %d s", s.Limit.Value, s.Limit.Spent))
	}
	for _, st := range s.Requests {
		switch {
		case st.Note || st.Status == StepSucceeded || st.Status == StepSkipped:
		case st.Failure != nil:
			out = append(out, fmt.Sprintf("step %d (%s): %s", st.Pos, st.Kind, st.Failure.Message))
		default:
			out = append(out, fmt.Sprintf("step %d (%s) is not done", st.Pos, st.Kind))
		}
	}
	for _, c := range s.Collected {
		for _, f := range c.Failures {
			if s.Of(f) != nil {
				continue // listed as a step
			}
			out = append(out, strings.TrimPrefix(c.Label+": ", ": ")+f.Key+": "+f.Message)
		}
	}
	for _, o := range s.Outputs {
		for _, pos := range o.Sources {
			if st := s.Step(pos); st == nil || st.Status != StepSucceeded {
				out = append(out, fmt.Sprintf("output %q rests on step %d, which did not succeed", o.Name, pos))
			}
		}
	}
	if n := len(out); n > maxShortfalls {
		out = append(out[:maxShortfalls:maxShortfalls], fmt.Sprintf("and %d more", n-maxShortfalls))
	}
	return out
}
