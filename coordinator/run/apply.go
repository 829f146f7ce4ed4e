package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// maxLogs is how many log lines a state keeps for views; the ledger has them all.
const maxLogs = 20

// Apply folds one event into s, in time that does not depend on how much came before (but for the run's end, which touches
// every open item). An error means that the events are not those of one run in their order; s is then not to be used.
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
	return nil
}

func (s *State) apply(p Payload, now time.Time) error {
	switch p := p.(type) {
	case *Created:
		s.Pinned, s.Status, s.Born, s.Shares = *p, Queued, now, map[string]*Share{}
		s.Contexts, s.Digests = map[string]int{}, map[string]string{}
	case *Started:
		s.Status, s.Started = Running, now
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
	case *ItemFailed:
		return s.rejected(p, now)
	case *StepEnded:
		return s.stepEnded(p, now)
	case *Logged, *OutputNoted, *CollectedNoted:
		return s.noted(p, now)
	case *ScriptEnded:
		s.Script = p
	case *LimitReached:
		s.Limit = p
	case *CancelRequested:
		s.Epoch, s.Reason = p.Epoch, p.Reason
	case *Ended:
		s.end(p, now)
	default:
		return fmt.Errorf("no rule for it")
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
	s.open++
	spec, err := parseSpec(p.Op, p.Body)
	if p.Refused != "" {
		err = errors.New(p.Refused)
	}
	if err == nil {
		st.Shared, err = shared(p.Body)
	}
	if err != nil {
		st.Failure = &Failure{Kind: KindBadRequest, Message: err.Error(), Advice: Never}
		s.due = append(s.due, st.Pos)
		return nil
	}
	st.spec, st.Label, st.Model = spec, spec.Label, spec.Model
	st.Items = make([]Item, spec.items(p.Op))
	for i := range st.Items {
		st.Items[i] = Item{Status: StepReady, Phase: Work, Ready: now}
	}
	n := len(st.Items)
	st.Counts.Total, st.Counts.Waiting = n, n
	s.Counts.Total += n
	s.Counts.Waiting += n
	switch {
	case st.Kind == KindRead:
		s.reads++
	case n == 0:
		s.due = append(s.due, st.Pos)
	}
	return nil
}

func (s *State) noted(p Payload, now time.Time) error {
	st := &Step{Note: true, Status: StepSucceeded, Requested: now, Ended: now}
	var err error
	switch p := p.(type) {
	case *Logged:
		st.Pos, st.Kind, st.Body = p.Pos, KindLog, p.Body
		var l struct{ Level, Text string }
		err = json.Unmarshal(p.Body, &l)
		s.Logs = append(s.Logs, l.Level+": "+l.Text)
		if len(s.Logs) > maxLogs {
			s.Logs = append([]string(nil), s.Logs[1:]...)
		}
	case *OutputNoted:
		st.Pos, st.Kind, st.Body = p.Pos, KindOutput, p.Body
		var o Output
		err = json.Unmarshal(p.Body, &o)
		s.setOutput(o)
	case *CollectedNoted:
		st.Pos, st.Kind, st.Body = p.Pos, KindCollected, p.Body
		var c Collected
		err = json.Unmarshal(p.Body, &c)
		s.Collected = append(s.Collected, c)
	}
	if err != nil {
		return err
	}
	if st.Pos != len(s.Requests) {
		return fmt.Errorf("position %d follows %d requests", st.Pos, len(s.Requests))
	}
	s.Requests = append(s.Requests, st)
	return nil
}

// setOutput adds an output; one of the same name is replaced in its place, because the script changed its mind. One without a
// value, which an older library let through, is null.
func (s *State) setOutput(o Output) {
	if o.Value == nil {
		o.Value = json.RawMessage("null")
	}
	for i := range s.Outputs {
		if s.Outputs[i].Name == o.Name {
			s.Outputs[i] = o
			return
		}
	}
	s.Outputs = append(s.Outputs, o)
}

func (s *State) stepEnded(p *StepEnded, now time.Time) error {
	st := s.Step(p.Pos)
	if st == nil || st.Note || st.Status.Ended() {
		return fmt.Errorf("step %d is not open", p.Pos)
	}
	st.Status, st.Failure, st.Result, st.Ended = p.Status, p.Failure, p.Result, now
	s.open--
	if st.Kind == KindRead && st.spec != nil {
		s.reads--
	}
	if len(s.due) > 0 && s.due[0] == p.Pos {
		s.due = s.due[1:]
		if len(s.due) == 0 {
			s.due = nil
		}
	}
	s.Deliveries = append(s.Deliveries, Delivery{Pos: p.Pos, Time: now})
	return nil
}

// end cancels what is open: the run's end is the end of all its parts.
func (s *State) end(p *Ended, now time.Time) {
	s.Status, s.Ended, s.End, s.due = p.Status, now, p, nil
	if s.open > 0 {
		for _, st := range s.Requests {
			s.cancelStep(st, now)
		}
	}
	s.open, s.reads, s.flights = 0, 0, 0
}

func (s *State) cancelStep(st *Step, now time.Time) {
	if st.Note || st.Status.Ended() {
		return
	}
	for i := range st.Items {
		if it := &st.Items[i]; !it.Status.Ended() {
			it.Flight = nil
			s.move(st, it, StepCancelled)
		}
	}
	st.low, st.fresh = len(st.Items), len(st.Items)
	st.Status, st.Ended = StepCancelled, now
}
