package run

import (
	"encoding/json"
	"time"
)

// Ticket is an item that could start now.
type Ticket struct {
	AttemptID
	Model   string
	Context int // tokens per slot as the script asks for, 0 when it does not
	Embed   bool
	Ready   time.Time
	Avoid   []string
	Effort
	Affinity string   // of what its prompt shares with other calls, "" for too little
	Uses     []string // named resources that it holds while it runs
}

// Backoff is what waits for time alone.
type Backoff struct {
	Next  time.Time   // the first end of a backoff, zero when there is none
	Items map[int]int // items in backoff, by step
}

// Ready lists items that could start at now, at most window of each step and phase, in input order, and what is in backoff.
// The bound keeps a placement's cost independent of how many items wait; those beyond it are alike and their turn comes.
func (s *State) Ready(now time.Time, window int) (tickets []Ticket, b Backoff) {
	if s.Status != Running || s.Limit != nil {
		return nil, b
	}
	b.Items = map[int]int{}
	for _, st := range s.Requests {
		if st.Counts.Waiting > 0 {
			tickets = st.ready(now, window, tickets, &b)
		}
	}
	return tickets, b
}

func (st *Step) ready(now time.Time, window int, tickets []Ticket, b *Backoff) []Ticket {
	var taken [2]int
	take := func(i int) {
		it := &st.Items[i]
		switch p := phaseIndex(it.Phase); {
		case it.Ready.After(now):
			b.Items[st.Pos]++
			if b.Next.IsZero() || it.Ready.Before(b.Next) {
				b.Next = it.Ready
			}
		case taken[p] < window:
			taken[p]++
			tickets = append(tickets, st.ticket(i))
		}
	}
	tried := st.Counts.Waiting - (len(st.Items) - st.fresh) // waiting items that were touched before
	for i := st.low; i < st.fresh && tried > 0; i++ {
		if st.Items[i].Status == StepReady {
			tried--
			take(i)
		}
	}
	for i := st.fresh; i < len(st.Items) && taken[0] < window; i++ {
		take(i)
	}
	return tickets
}

func (st *Step) ticket(i int) Ticket {
	it := &st.Items[i]
	t := Ticket{AttemptID: st.next(i), Model: st.Model, Context: st.spec.Options.Context, Embed: st.Kind == KindEmbed,
		Ready: it.Ready, Avoid: it.Avoid, Effort: st.effort(i, it.Phase), Affinity: st.spec.size.affinity, Uses: st.spec.Uses}
	if it.Phase == Judge {
		t.Model, t.Context, t.Embed, t.Affinity = st.model(Judge), 0, false, ""
	}
	return t
}

// model is the one that a phase asks for.
func (st *Step) model(p Phase) string {
	if p == Judge && st.spec.Evaluate != nil {
		return st.spec.Evaluate.Model
	}
	return st.Model
}

// Call is what an attempt sends to a worker.
type Call struct {
	Kind     string          // generate, plan, evaluate or embed
	Request  json.RawMessage // canonical
	Body     json.RawMessage // item or subject, nil when there is none
	Feedback []string
}

// Call builds the call of an attempt that was placed.
func (s *State) Call(a AttemptID) (Call, error) {
	st, it := s.item(a.Pos, a.Item)
	if it == nil {
		return Call{}, errNoSuch(a.Pos, a.Item)
	}
	if a.Phase == Judge {
		req, err := st.spec.judgeRequest(st.spec.body(st.Kind, a.Item))
		return Call{Kind: KindEvaluate, Request: req, Body: it.Result.body()}, err
	}
	c := Call{Kind: st.Kind, Request: st.Shared, Body: st.spec.body(st.Kind, a.Item)}
	if c.Kind == KindBatch {
		c.Kind = KindGenerate
	}
	c.Feedback = append(append(c.Feedback, st.spec.Feedback...), it.Feedback...)
	return c, nil
}

// body is a result as the subject of another call: the value itself, or a ref.
func (c Content) body() json.RawMessage {
	if c.Ref == "" {
		return c.Value
	}
	b, _ := marshal(refBody{Bytes: c.Bytes, Ref: c.Ref}) // plain fields always marshal
	return b
}

type refBody struct {
	Bytes int64  `json:"bytes"`
	Name  string `json:"name,omitempty"`
	Ref   string `json:"ref"`
}
