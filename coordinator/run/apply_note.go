package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// maxLogs is how many log lines a state keeps for views; the ledger has them all.
const maxLogs = 20

// noted folds in what the script says and wants no answer to.
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
	case *Noted:
		st.Pos, st.Kind, st.Body = p.Pos, p.Op, p.Body
		err = s.claims.take(p)
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
