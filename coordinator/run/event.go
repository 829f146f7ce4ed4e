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
	"item.turned":          func() Payload { return &ItemTurned{} },
	"step.ended":           func() Payload { return &StepEnded{} },
	"run.logged":           func() Payload { return &Logged{} },
	"run.output":           func() Payload { return &OutputNoted{} },
	"run.collected":        func() Payload { return &CollectedNoted{} },
	"run.noted":            func() Payload { return &Noted{} },
	"item.checked":         func() Payload { return &ItemChecked{} },
	"item.reused":          func() Payload { return &ItemReused{} },
	"item.doubted":         func() Payload { return &ItemDoubted{} },
	"item.resolved":        func() Payload { return &ItemResolved{} },
	"item.asked":           func() Payload { return &ItemAsked{} },
	"item.permitted":       func() Payload { return &ItemPermitted{} },
	"child.started":        func() Payload { return &ChildStarted{} },
	"phase.moved":          func() Payload { return &PhaseMoved{} },
	"run.suspended":        func() Payload { return &Parked{} },
	"run.resumed":          func() Payload { return &Resumed{} },
	"script.ended":         func() Payload { return &ScriptEnded{} },
	"run.limit_reached":    func() Payload { return &LimitReached{} },
	"run.cancel_requested": func() Payload { return &CancelRequested{} },
	"run.ended":            func() Payload { return &Ended{} },
}

// Kind implements Payload, as do the methods below.
func (*Created) Kind() string          { return "run.created" }
func (*Started) Kind() string          { return "run.started" }
func (*Requested) Kind() string        { return "step.requested" }
func (*Placed) Kind() string           { return "attempt.placed" }
func (*Begun) Kind() string            { return "attempt.running" }
func (*AttemptSucceeded) Kind() string { return "attempt.succeeded" }
func (*AttemptFailed) Kind() string    { return "attempt.failed" }
func (*AttemptLate) Kind() string      { return "attempt.late" }
func (*ItemFailed) Kind() string       { return "item.failed" }
func (*ItemTurned) Kind() string       { return "item.turned" }
func (*StepEnded) Kind() string        { return "step.ended" }
func (*Logged) Kind() string           { return "run.logged" }
func (*OutputNoted) Kind() string      { return "run.output" }
func (*CollectedNoted) Kind() string   { return "run.collected" }
func (*ScriptEnded) Kind() string      { return "script.ended" }
func (*LimitReached) Kind() string     { return "run.limit_reached" }
func (*CancelRequested) Kind() string  { return "run.cancel_requested" }
func (*Ended) Kind() string            { return "run.ended" }
func (*Noted) Kind() string            { return "run.noted" }
func (*ItemChecked) Kind() string      { return "item.checked" }
func (*ItemReused) Kind() string       { return "item.reused" }
func (*ItemDoubted) Kind() string      { return "item.doubted" }
func (*ItemResolved) Kind() string     { return "item.resolved" }
func (*ItemAsked) Kind() string        { return "item.asked" }
func (*ItemPermitted) Kind() string    { return "item.permitted" }
func (*ChildStarted) Kind() string     { return "child.started" }
func (*PhaseMoved) Kind() string       { return "phase.moved" }
func (*Parked) Kind() string           { return "run.suspended" }
func (*Resumed) Kind() string          { return "run.resumed" }

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
