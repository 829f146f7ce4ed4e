package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Event is one fact about a run. Events are written once and only ever gain fields.
type Event struct {
	Seq  int64 // position in the run, from 1
	Time time.Time
	Data Payload
}

// Payload is what an event says; its kind is the name under which the ledger keeps it.
type Payload interface{ Kind() string }

// kinds makes an empty payload for every kind that this version can read.
var kinds = map[string]func() Payload{
	"run.created":          func() Payload { return &Created{} },
	"run.started":          func() Payload { return &Started{} },
	"step.requested":       func() Payload { return &Requested{} },
	"attempt.placed":       func() Payload { return &Placed{} },
	"attempt.running":      func() Payload { return &Begun{} },
	"attempt.succeeded":    func() Payload { return &AttemptSucceeded{} },
	"attempt.failed":       func() Payload { return &AttemptFailed{} },
	"attempt.late":         func() Payload { return &AttemptLate{} },
	"item.failed":          func() Payload { return &ItemFailed{} },
	"step.ended":           func() Payload { return &StepEnded{} },
	"run.logged":           func() Payload { return &Logged{} },
	"run.output":           func() Payload { return &OutputNoted{} },
	"run.collected":        func() Payload { return &CollectedNoted{} },
	"run.noted":            func() Payload { return &Noted{} },
	"item.checked":         func() Payload { return &ItemChecked{} },
	"item.reused":          func() Payload { return &ItemReused{} },
	"item.resolved":        func() Payload { return &ItemResolved{} },
	"child.started":        func() Payload { return &ChildStarted{} },
	"phase.moved":          func() Payload { return &PhaseMoved{} },
	"run.suspended":        func() Payload { return &Parked{} },
	"run.resumed":          func() Payload { return &Resumed{} },
	"script.ended":         func() Payload { return &ScriptEnded{} },
	"run.limit_reached":    func() Payload { return &LimitReached{} },
	"run.cancel_requested": func() Payload { return &CancelRequested{} },
	"run.ended":            func() Payload { return &Ended{} },
}

// Encode returns the kind and the JSON under which the ledger keeps e.
func Encode(e Event) (kind string, payload json.RawMessage, err error) {
	payload, err = marshal(e.Data)
	if err != nil {
		return "", nil, fmt.Errorf("encode event %d, %s: %w", e.Seq, e.Data.Kind(), err)
	}
	return e.Data.Kind(), payload, nil
}

// Decode is the reverse of Encode. A kind that it does not know was written by a newer version and is an error, because to
// skip it could mean to do finished work again.
func Decode(seq int64, at time.Time, kind string, payload json.RawMessage) (Event, error) {
	make, ok := kinds[kind]
	if !ok {
		return Event{}, fmt.Errorf("event %d has the kind %q, which this version does not know", seq, kind)
	}
	p := make()
	if err := json.Unmarshal(payload, p); err != nil {
		return Event{}, fmt.Errorf("decode event %d, %s: %w", seq, kind, err)
	}
	return Event{Seq: seq, Time: at, Data: p}, nil
}

// marshal is json.Marshal without HTML escaping, so that a person reads <, > and & as they are.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
