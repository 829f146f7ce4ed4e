package run

import (
	"cmp"
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
		batch = s.events(now, follow(s, now)...)
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
	if s.Script != nil || s.Started.IsZero() {
		return nil, ErrStale
	}
	out, err := s.answers(c.Checks)
	if err != nil {
		return nil, err
	}
	stale := s.stalePhase()
	for i, r := range c.Requests {
		if want := len(s.Requests) + i; r.Pos != want {
			return nil, fmt.Errorf("the script asks at position %d, the next is %d", r.Pos, want)
		}
		if !json.Valid(r.Body) {
			return nil, fmt.Errorf("the request at position %d is not JSON", r.Pos)
		}
		p := r.payload()
		if req, ok := p.(*Requested); ok && !req.Note {
			stale = stale && r.Kind != KindPhase
			s.refuse(req, stale)
		}
		out = append(out, p)
	}
	if c.End != nil {
		out = append(out, &ScriptEnded{Error: c.End.Error})
	}
	return out, nil
}

func (r Request) payload() Payload {
	claim, isClaim := claimsOf[r.Kind]
	switch {
	case r.Note && r.Kind == KindLog:
		return &Logged{Pos: r.Pos, Body: r.Body}
	case r.Note && r.Kind == KindOutput:
		return &OutputNoted{Pos: r.Pos, Body: r.Body}
	case r.Note && r.Kind == KindCollected:
		return &CollectedNoted{Pos: r.Pos, Body: r.Body}
	case r.Note && isClaim:
		return &Noted{Pos: r.Pos, Op: r.Kind, Body: r.Body, Refused: wrongField(r.Kind, claim, r.Body)}
	case r.Note:
		return &Requested{Pos: r.Pos, Op: r.Kind, Note: true, Body: r.Body}
	default:
		return &Requested{Pos: r.Pos, Op: r.Kind, Body: r.Body, Lines: r.Lines, Refused: cmp.Or(r.Refused, refusal(r.Kind, r.Body))}
	}
}

// refuse notes what speaks against a request, beyond its form, and how its result will be delivered: both must be the same for
// every later version.
func (s *State) refuse(r *Requested, stalePhase bool) {
	spec, err := parseSpec(r.Op, r.Body, r.Lines)
	if err != nil || r.Refused != "" {
		return
	}
	r.Handle = r.Op == KindBatch && spec.count(r.Op) > PageLimit
	if r.Op == KindEvaluate {
		r.Judge = s.opening(&Step{Kind: r.Op, Models: s.candidates(spec.Model), spec: spec}, spec.Author)
	}
	switch depth := s.Pinned.Limits.SpawnDepth; {
	case stalePhase:
		r.Refused, r.RefusedKind = "a person sent the pipeline back to an earlier phase", KindRolledBack
	case r.Op == KindSpawn && depth > 0 && s.depth()+1 > depth:
		r.Refused = fmt.Sprintf("a child of this run would be %d deep; the limit spawn_depth is %d (of the run, its workflow or the default)",
			s.depth()+1, depth)
		r.RefusedKind = KindTooDeep
	}
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

func (c Suspend) decide(s *State, _ time.Time) ([]Payload, error) {
	if s.Status == Suspended {
		return nil, ErrStale
	}
	return []Payload{&Parked{By: c.By, Reason: c.Reason}}, nil
}

func (c Resume) decide(s *State, _ time.Time) ([]Payload, error) {
	if s.Status != Suspended {
		return nil, ErrStale
	}
	return []Payload{&Resumed{By: c.By}}, nil
}

func (c Cancel) decide(s *State, _ time.Time) ([]Payload, error) {
	return []Payload{&CancelRequested{Epoch: s.Epoch + 1, Reason: c.Reason}}, nil
}

func (Expire) decide(s *State, now time.Time) ([]Payload, error) {
	if s.Limit != nil || s.Status != Running || s.Budget() == 0 || s.Active(now) < s.Budget() {
		return nil, ErrStale
	}
	return []Payload{&LimitReached{Limit: LimitActive, Value: int64(s.Budget().Seconds()), Spent: int64(s.Active(now).Seconds())}}, nil
}

func (c Exhaust) decide(s *State, _ time.Time) ([]Payload, error) {
	if s.Limit != nil || s.Status != Running && s.Status != Waiting {
		return nil, ErrStale
	}
	reached := c.LimitReached
	return []Payload{&reached}, nil
}

func (c Diverge) decide(s *State, now time.Time) ([]Payload, error) {
	d := c.Divergence
	return []Payload{s.ended(Diverged, nil, &d, now)}, nil
}
