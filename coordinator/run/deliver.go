package run

import (
	"encoding/json"
	"fmt"
)

// Settled is what a script is given for a step. One is set: Failure rejects, Value resolves, Load resolves with a body that is
// still to be read, a text as a JSON string, Page with items whose values are still to be read, and Event with the result of an event.
type Settled struct {
	Value   json.RawMessage
	Load    *Content
	Page    *Page
	Event   int64
	Failure *Failure
}

// Settle returns what the script is given for the step at pos, which has ended. It follows from the state alone, so a replay
// gives the same. See docs/requests.md for the shapes.
func (s *State) Settle(pos int) (Settled, error) {
	st := s.Step(pos)
	if st == nil || st.Note || !st.Status.Ended() {
		return Settled{}, fmt.Errorf("step %d has not ended", pos)
	}
	if st.Kind == KindBatch && st.spec != nil && (st.Failure == nil || st.Failure.Kind == KindItemsFailed) {
		if st.handle {
			v, err := st.handleValue()
			return Settled{Value: v}, err
		}
		return settledPage(st.report())
	}
	if st.Status != StepSucceeded {
		f := st.Failure
		if f == nil {
			f = &Failure{Kind: string(st.Status), Message: "the step was " + string(st.Status), Advice: Never}
		}
		return Settled{Failure: f}, nil
	}
	switch {
	case st.Kind == KindPage:
		p, err := s.pageOf(st.Body)
		if err != nil {
			return Settled{}, err
		}
		return settledPage(p)
	case len(st.Items) == 1:
		it := &st.Items[0]
		return it.settled(st, it.Result)
	default:
		return content(st.Result), nil
	}
}

// settledPage is a page as far as the state has its values.
func settledPage(p *Page) (Settled, error) {
	for i := range p.Items {
		if p.Items[i].Event != 0 {
			return Settled{Page: p}, nil
		}
	}
	v, err := p.Value()
	return Settled{Value: v}, err
}

func content(c Content) Settled {
	if c.Ref != "" {
		return Settled{Load: &c}
	}
	return Settled{Value: c.Value}
}

// settled is a result of an item: a free text by reference, everything else as the value.
func (it *Item) settled(st *Step, c Content) (Settled, error) {
	if c.Text && st.Kind != KindTool {
		v, err := it.reference(st, c)
		return Settled{Value: v}, err
	}
	return content(c), nil
}

// SettleCheck returns the value of a check delivery. Once the item has moved on, its value is in an event: then Event is set, and
// CheckValue makes the value of it.
func (s *State) SettleCheck(d Delivery) (Settled, error) {
	st, it := s.item(d.Pos, d.Item)
	if it == nil || !d.Check {
		return Settled{}, fmt.Errorf("step %d has no item %d that is checked", d.Pos, d.Item)
	}
	if it.Event != d.Event || it.Result.Empty() {
		return Settled{Event: d.Event}, nil
	}
	return it.settled(st, it.Result)
}

// CheckValue is the value of a check delivery whose event was read.
func (s *State) CheckValue(d Delivery, p Payload) (Settled, error) {
	st, _ := s.item(d.Pos, d.Item)
	if st != nil {
		switch p := p.(type) {
		case *AttemptSucceeded:
			then := Item{Node: p.Node, Report: s.spent(p.Report)}
			return then.settled(st, p.Result)
		case *ItemReused:
			then := Item{Node: p.Node, Report: s.spent(p.Report)}
			return then.settled(st, p.Result)
		}
	}
	return Settled{}, fmt.Errorf("event %d has no result that is checked", d.Event)
}

// CheckedLine is the line that the value of a check delivery was made of, nil when its item is none: then the script knows the item.
func (s *State) CheckedLine(d Delivery) *Line {
	st, it := s.item(d.Pos, d.Item)
	if it == nil || !d.Check || st.spec == nil || st.spec.lines == nil {
		return nil
	}
	return st.spec.lines.at(d.Item)
}

func (st *Step) name() string {
	if st.Label != "" {
		return st.Label
	}
	return fmt.Sprintf("step %d", st.Pos)
}

type facts struct {
	Model        string  `json:"model"`
	Node         string  `json:"node"`
	OutputTokens int64   `json:"output_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	Seconds      float64 `json:"seconds"`
	Simulated    bool    `json:"simulated"`
}

// reference is a free text as the script sees it: where it is and what made it, not the text.
func (it *Item) reference(st *Step, c Content) (json.RawMessage, error) {
	r := it.Report
	return marshal(struct {
		Bytes int64  `json:"bytes"`
		Facts facts  `json:"facts"`
		Name  string `json:"name"`
		Ref   string `json:"ref"`
	}{c.Bytes, facts{r.Model, it.Node, r.OutputTokens, r.PromptTokens, float64(r.Nanos) / 1e9, r.Simulated}, st.name(), c.Ref})
}
