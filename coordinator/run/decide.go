package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrStale says that a command came too late or twice: it refers to an attempt, step or run that is past it. Nothing happens.
var ErrStale = errors.New("the run is past this command")

func errNoSuch(pos, item int) error {
	return fmt.Errorf("there is no step %d with an item %d", pos, item)
}

// Decide returns the events that cmd leads to when it is decided at now. It changes nothing. An error means that the command
// makes no sense for this state; ErrStale that it no longer does.
func Decide(s *State, cmd Command, now time.Time) ([]Event, error) {
	_, create := cmd.(Create)
	_, late := cmd.(Late)
	switch {
	case create != (s.Seq == 0):
		return nil, errors.New("a run is created once, and first")
	case s.Status.Ended() && !create && !late:
		return nil, ErrStale
	}
	payloads, err := cmd.decide(s, now)
	if err != nil {
		return nil, err
	}
	return s.events(now, payloads...), nil
}

// Execute decides cmd, applies its events to s, and goes on with what follows from the new state, such as the end of a step
// with its last item, until nothing follows. The events belong into one commit. After an error s is unchanged.
func Execute(s *State, cmd Command, now time.Time) ([]Event, error) {
	batch, err := Decide(s, cmd, now)
	var all []Event
	for err == nil && len(batch) > 0 {
		for _, e := range batch {
			if err := Apply(s, e); err != nil {
				return nil, fmt.Errorf("decide and apply disagree: %w", err)
			}
		}
		all = append(all, batch...)
		batch = s.events(now, follow(s)...)
	}
	return all, err
}

func (s *State) events(now time.Time, payloads ...Payload) []Event {
	events := make([]Event, len(payloads))
	for i, p := range payloads {
		events[i] = Event{Seq: s.Seq + int64(i) + 1, Time: now, Data: p}
	}
	return events
}

func (c Create) decide(*State, time.Time) ([]Payload, error) {
	if c.ID == "" || c.Script == "" {
		return nil, errors.New("a run needs an id and a script")
	}
	created := c.Created
	return []Payload{&created}, nil
}

func (Start) decide(s *State, _ time.Time) ([]Payload, error) {
	if s.Status != Queued {
		return nil, ErrStale
	}
	return []Payload{&Started{}}, nil
}

func (c Yield) decide(s *State, _ time.Time) ([]Payload, error) {
	if s.Script != nil || s.Status == Queued {
		return nil, ErrStale
	}
	var out []Payload
	for i, r := range c.Requests {
		if want := len(s.Requests) + i; r.Pos != want {
			return nil, fmt.Errorf("the script asks at position %d, the next is %d", r.Pos, want)
		}
		if !json.Valid(r.Body) {
			return nil, fmt.Errorf("the request at position %d is not JSON", r.Pos)
		}
		out = append(out, r.payload())
	}
	if c.End != nil {
		out = append(out, &ScriptEnded{Error: c.End.Error})
	}
	return out, nil
}

func (r Request) payload() Payload {
	switch {
	case r.Note && r.Kind == KindLog:
		return &Logged{Pos: r.Pos, Body: r.Body}
	case r.Note && r.Kind == KindOutput:
		return &OutputNoted{Pos: r.Pos, Body: r.Body}
	case r.Note && r.Kind == KindCollected:
		return &CollectedNoted{Pos: r.Pos, Body: r.Body}
	default:
		req := &Requested{Pos: r.Pos, Op: r.Kind, Note: r.Note, Body: r.Body}
		if !r.Note {
			req.Refused = refusal(r.Kind, r.Body)
		}
		return req
	}
}

func (c Place) decide(s *State, _ time.Time) ([]Payload, error) {
	st, it := s.item(c.Pos, c.Item)
	switch {
	case it == nil:
		return nil, errNoSuch(c.Pos, c.Item)
	case s.Status != Running || s.Limit != nil || it.Status != StepReady || st.next(c.Item) != c.AttemptID:
		return nil, ErrStale
	}
	return []Payload{&Placed{AttemptID: c.AttemptID, Node: c.Node, Model: c.Model, Digest: c.Digest, Context: c.Context,
		Seed: s.seed(it, c.AttemptID), Why: c.Why}}, nil
}

func (c Begin) decide(s *State, _ time.Time) ([]Payload, error) {
	_, it := s.flying(c.AttemptID)
	if it == nil || it.Flight.Begun {
		return nil, ErrStale
	}
	return []Payload{&Begun{c.AttemptID}}, nil
}

func (c Finish) decide(s *State, now time.Time) ([]Payload, error) {
	st, it := s.flying(c.AttemptID)
	if it == nil {
		return nil, ErrStale
	}
	c.Node = it.Flight.Node
	var v verdict
	if c.Failure == nil && c.Phase == Judge {
		if v, c.Failure = readVerdict(c.Result); c.Failure == nil {
			return []Payload{&AttemptSucceeded{c.AttemptID, c.Evidence, c.Result, v.consequence(st, it, now)}}, nil
		}
	}
	if c.Failure != nil {
		then, counted := afterFailure(s, st, it, c.AttemptID, c.Node, *c.Failure, now)
		return []Payload{&AttemptFailed{c.AttemptID, c.Evidence, *c.Failure, counted, then}}, nil
	}
	then := ThenSucceeded
	if st.spec.Evaluate != nil {
		then = ThenJudge
	}
	return []Payload{&AttemptSucceeded{c.AttemptID, c.Evidence, c.Result, Consequence{Then: then}}}, nil
}

func (c Late) decide(s *State, _ time.Time) ([]Payload, error) {
	if _, it := s.item(c.Pos, c.Item); it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	return []Payload{&AttemptLate{c.AttemptID, c.Evidence, c.Result, c.Failure}}, nil
}

func (c Reject) decide(s *State, _ time.Time) ([]Payload, error) {
	_, it := s.item(c.Pos, c.Item)
	if it == nil {
		return nil, errNoSuch(c.Pos, c.Item)
	}
	if it.Status != StepReady {
		return nil, ErrStale
	}
	return []Payload{&ItemFailed{Pos: c.Pos, Item: c.Item, Failure: c.Failure}}, nil
}

func (c Answer) decide(s *State, _ time.Time) ([]Payload, error) {
	st := s.Step(c.Pos)
	if st == nil || st.Kind != KindRead {
		return nil, fmt.Errorf("position %d is no read", c.Pos)
	}
	if st.Status.Ended() {
		return nil, ErrStale
	}
	end := &StepEnded{Pos: c.Pos, Status: StepSucceeded, Result: c.Result}
	if c.Failure != nil {
		end = &StepEnded{Pos: c.Pos, Status: StepFailed, Failure: c.Failure}
	}
	return []Payload{end}, nil
}

func (c Cancel) decide(s *State, _ time.Time) ([]Payload, error) {
	return []Payload{&CancelRequested{Epoch: s.Epoch + 1, Reason: c.Reason}}, nil
}

func (c Expire) decide(s *State, _ time.Time) ([]Payload, error) {
	if s.Limit != nil || s.Status != Running {
		return nil, ErrStale
	}
	return []Payload{&LimitReached{Limit: "active_seconds", Value: s.Pinned.Limits.ActiveSeconds, Spent: int64(c.Spent.Seconds())}}, nil
}

func (c Diverge) decide(s *State, _ time.Time) ([]Payload, error) {
	d := c.Divergence
	return []Payload{s.ended(Diverged, nil, &d)}, nil
}

// flying returns the item that has exactly this attempt in flight, nil when none has.
func (s *State) flying(a AttemptID) (*Step, *Item) {
	st, it := s.item(a.Pos, a.Item)
	if it == nil || it.Flight == nil || it.Flight.AttemptID != a || it.Flight.Epoch != s.Epoch {
		return nil, nil
	}
	return st, it
}
