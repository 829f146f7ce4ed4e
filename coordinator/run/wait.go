package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The outcomes of an approval.
const (
	Approved = "approved"
	Rejected = "rejected"
)

// ErrAnswer says that a person's answer is none that the step can take.
var ErrAnswer = errors.New("the answer does not fit")

// longestWait is what a wait may last at most: beyond it a duration does not fit its type.
const longestWait = 100 * 365 * 24 * time.Hour

// waitSpec is what a wait's request says.
type waitSpec struct {
	Seconds   float64         `json:"seconds"`
	Until     string          `json:"until"`
	Title     string          `json:"title"`
	Text      string          `json:"text"`
	Choices   []string        `json:"choices"`
	Timeout   float64         `json:"timeout_seconds"`
	OnTimeout json.RawMessage `json:"on_timeout"`
	until     time.Time
}

func (w *waitSpec) checkSleep(string) error {
	if w.Until != "" && w.Seconds != 0 {
		return errors.New("sleep: give seconds or until, not both")
	}
	var err error
	if w.Until != "" {
		if w.until, err = time.Parse(time.RFC3339, w.Until); err != nil {
			return fmt.Errorf("sleep: until is no time such as 2026-03-01T06:00:00+01:00: %q", w.Until)
		}
	}
	return tooLong("sleep.seconds", w.Seconds)
}

func (w *waitSpec) checkApprove(string) error {
	if w.Title == "" {
		return errors.New("approve: no title is given")
	}
	return w.checkTimeout("approve")
}

func (w *waitSpec) checkQuestion(string) error {
	if w.Text == "" {
		return errors.New("question: no text is given")
	}
	if err := w.checkTimeout("question"); err != nil || w.OnTimeout == nil {
		return err
	}
	if err := w.suits(w.OnTimeout); err != nil {
		return fmt.Errorf("question: on_timeout: %w", err)
	}
	return nil
}

func (w *waitSpec) checkTimeout(op string) error {
	if (w.Timeout > 0) != (w.OnTimeout != nil) {
		return fmt.Errorf("%s: timeout_seconds and on_timeout go together: who lets a wait end says with which outcome", op)
	}
	return tooLong(op+".timeout_seconds", w.Timeout)
}

func tooLong(name string, seconds float64) error {
	if seconds > longestWait.Seconds() {
		return fmt.Errorf("%s is more than a hundred years", name)
	}
	return nil
}

// suits says whether an answer is one of the choices, where there are some.
func (w *waitSpec) suits(answer json.RawMessage) error {
	if !json.Valid(answer) {
		return fmt.Errorf("%w: it is not JSON", ErrAnswer)
	}
	var s string
	if len(w.Choices) > 0 && (json.Unmarshal(answer, &s) != nil || !slices.Contains(w.Choices, s)) {
		return fmt.Errorf("%w: it must be one of %q", ErrAnswer, w.Choices)
	}
	return nil
}

// dueAt is when a wait that begins at now ends by itself, zero for never.
func (w *waitSpec) dueAt(op string, now time.Time) time.Time {
	after := func(seconds float64) time.Time {
		return now.Add(time.Duration(math.Ceil(seconds * float64(time.Second))))
	}
	switch {
	case op == KindSleep && !w.until.IsZero():
		return w.until
	case op == KindSleep:
		return after(w.Seconds)
	case w.Timeout > 0:
		return after(w.Timeout)
	default:
		return time.Time{}
	}
}

// Who did what no person did.
const (
	ByTimeout = "time-out" // the time of a wait was up
	ByGate    = "gate"     // the script's own gate ended a phase
)

// approval and reply are what a script is given for a person's answer.
type approval struct {
	By       string `json:"by"`
	Comment  string `json:"comment"`
	Outcome  string `json:"outcome"`
	TimedOut bool   `json:"timed_out"`
}

type reply struct {
	Answer   json.RawMessage `json:"answer"`
	By       string          `json:"by"`
	Comment  string          `json:"comment,omitempty"`
	TimedOut bool            `json:"timed_out"`
}

// waited is the end of a wait with a value.
func waited(pos int, v any) (*StepEnded, error) {
	value, err := marshal(v)
	return &StepEnded{Pos: pos, Status: StepSucceeded, Result: Content{Value: value}}, err
}

func (c Settle) decide(s *State, _ time.Time) ([]Payload, error) {
	st := s.Step(c.Pos)
	switch {
	case st == nil || st.Kind != KindApprove && st.Kind != KindQuestion:
		return nil, fmt.Errorf("position %d asks nobody", c.Pos)
	case st.Status.Ended() || st.spec == nil:
		return nil, ErrStale
	}
	var v any = approval{By: c.By, Comment: c.Comment, Outcome: c.Outcome}
	if st.Kind == KindQuestion {
		if err := st.spec.suits(c.Answer); err != nil {
			return nil, err
		}
		v = reply{Answer: c.Answer, By: c.By, Comment: c.Comment}
	} else if c.Outcome != Approved && c.Outcome != Rejected {
		return nil, fmt.Errorf("%w: an approval is %s or %s", ErrAnswer, Approved, Rejected)
	}
	end, err := waited(c.Pos, v)
	return []Payload{end}, err
}

func (Fire) decide(s *State, now time.Time) ([]Payload, error) {
	var out []Payload
	for _, pos := range s.timers {
		st := s.Requests[pos]
		if st.Due.After(now) {
			break
		}
		end, err := st.fires()
		if err != nil {
			return nil, err
		}
		out = append(out, end)
	}
	if out == nil {
		return nil, ErrStale
	}
	return out, nil
}

// fires is the end of a wait whose time has come.
func (st *Step) fires() (*StepEnded, error) {
	switch st.Kind {
	case KindApprove:
		var outcome string
		if err := json.Unmarshal(st.spec.OnTimeout, &outcome); err != nil {
			return nil, err
		}
		return waited(st.Pos, approval{By: ByTimeout, Outcome: outcome, TimedOut: true})
	case KindQuestion:
		return waited(st.Pos, reply{Answer: st.spec.OnTimeout, By: ByTimeout, TimedOut: true})
	default:
		return waited(st.Pos, nil)
	}
}

// NextTimer is when the first wait ends by itself; then Fire is due. Zero when none does.
func (s *State) NextTimer() time.Time {
	if len(s.timers) == 0 || s.Status.Ended() {
		return time.Time{}
	}
	return s.Requests[s.timers[0]].Due
}

func (s *State) byDue(pos int, at *Step) int {
	if c := s.Requests[pos].Due.Compare(at.Due); c != 0 {
		return c
	}
	return pos - at.Pos
}

// parkStep notes that a step waits for a person, a timer or a child.
func (s *State) parkStep(st *Step, due time.Time) {
	s.parked++
	if st.Due = due; !due.IsZero() {
		at, _ := slices.BinarySearchFunc(s.timers, st, s.byDue)
		s.timers = slices.Insert(s.timers, at, st.Pos)
	}
}

func (s *State) unparkStep(st *Step) {
	s.parked--
	if st.Due.IsZero() {
		return
	}
	if at, found := slices.BinarySearchFunc(s.timers, st, s.byDue); found {
		s.timers = slices.Delete(s.timers, at, at+1)
		if len(s.timers) == 0 {
			s.timers = nil
		}
	}
}
