package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Question is what a person is asked before a tool may act.
type Question struct {
	Title string          `json:"title"`
	Text  string          `json:"text,omitempty"` // what kind of act it is, and why it is asked
	Will  string          `json:"will,omitempty"` // what happens after a yes
	Show  json.RawMessage `json:"show,omitempty"` // what the tool would be given
}

// ItemAsked says that a tool may not act before a person allows it.
type ItemAsked struct {
	Pos      int      `json:"pos"`
	Item     int      `json:"item"`
	Question Question `json:"question"`
}

// ItemPermitted is a person's answer to ItemAsked. A yes holds for every attempt of this item, and for nothing else.
type ItemPermitted struct {
	Pos     int    `json:"pos"`
	Item    int    `json:"item"`
	Outcome string `json:"outcome"` // Approved or Rejected
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
}

// Ask keeps a tool from acting before a person allows it.
type Ask struct {
	Pos, Item int
	Question  Question
}

// Permit is a person's answer to Ask: Approved or Rejected.
type Permit struct {
	Pos, Item            int
	Outcome, By, Comment string
}

// Question is what a person is asked before the step's tool may act, nil when nobody is.
func (st *Step) Question() *Question {
	if st.Kind != KindTool || len(st.Items) == 0 || st.Items[0].tries == nil {
		return nil
	}
	return st.Items[0].tries.question
}

// asked says whether the item waits for a person to allow it.
func (it *Item) asked() bool { return it.tries != nil && it.tries.question != nil }

func (c Ask) decide(s *State, _ time.Time) ([]Payload, error) {
	st, it := s.item(c.Pos, c.Item)
	switch {
	case it == nil || st.Kind != KindTool:
		return nil, errNoSuch(c.Pos, c.Item)
	case it.Status != StepReady || it.asked() || it.tries != nil && it.tries.permitted:
		return nil, ErrStale
	}
	return []Payload{&ItemAsked{Pos: c.Pos, Item: c.Item, Question: c.Question}}, nil
}

func (s *State) asked(p *ItemAsked) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || it.Status != StepReady || it.asked() {
		return errors.New("the item does not wait")
	}
	t := st.touch(p.Item)
	st.unlist(p.Item)
	q := p.Question
	t.question = &q
	s.parked++
	return nil
}

func (c Permit) decide(s *State, _ time.Time) ([]Payload, error) {
	_, it := s.item(c.Pos, c.Item)
	switch {
	case it == nil:
		return nil, errNoSuch(c.Pos, c.Item)
	case !it.asked():
		return nil, ErrStale
	case c.Outcome != Approved && c.Outcome != Rejected:
		return nil, fmt.Errorf("%w: it is %s or %s", ErrAnswer, Approved, Rejected)
	}
	return []Payload{&ItemPermitted{Pos: c.Pos, Item: c.Item, Outcome: c.Outcome, By: c.By, Comment: c.Comment}}, nil
}

func (s *State) permitted(p *ItemPermitted, now time.Time) error {
	st, it := s.item(p.Pos, p.Item)
	if it == nil || !it.asked() {
		return errors.New("nobody was asked")
	}
	it.tries.question = nil
	s.parked--
	if p.Outcome == Approved {
		it.tries.permitted, it.tries.ready = true, now
		st.wait(p.Item, now)
		return nil
	}
	message := cmp.Or(p.By, "a person") + " did not allow it"
	if p.Comment != "" {
		message += ": " + p.Comment
	}
	it.Failure = &Failure{Kind: KindRefused, Message: message, Advice: Never, Next: []string{"change what the step asks for, and run it again"}}
	s.endItem(st, p.Item, StepFailed)
	return nil
}
