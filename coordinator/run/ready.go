package run

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
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
	Affinity  string   // of what its prompt shares with other calls, "" for too little
	Uses      []string // named resources that it holds while it runs
	Tool      string   // "" for a call of a model
	Permitted bool     // a person has allowed the tool to act
}

// Backoff is what waits for time alone.
type Backoff struct {
	Next  time.Time   // the first end of a backoff, zero when there is none
	Items map[int]int // items in backoff, by step
}

// Ready lists items that could start now on a machine, at most window of each step and phase, in input order, and what is in backoff.
// The bound keeps a placement's cost independent of how many items wait; those beyond it are alike and their turn comes.
func (s *State) Ready(now time.Time, window int) ([]Ticket, Backoff) {
	return s.ready(model, now, window)
}

// ReadyTools is Ready for the attempts of tools, which run on the coordinator.
func (s *State) ReadyTools(now time.Time, window int) ([]Ticket, Backoff) {
	return s.ready(tool, now, window)
}

func (s *State) ready(who worker, now time.Time, window int) (tickets []Ticket, b Backoff) {
	if s.Status != Running || s.Limit != nil || s.Counts.Waiting == 0 {
		return nil, b
	}
	b.Items = map[int]int{}
	for st := range s.Open {
		if st.Counts.Waiting > 0 && steps[st.Kind].work == who {
			tickets = st.ready(now, window, tickets, &b)
		}
	}
	return tickets, b
}

func (st *Step) ready(now time.Time, window int, tickets []Ticket, b *Backoff) []Ticket {
	listed := [2]indices{head(st.waiting[0], window), head(st.waiting[1], window)}
	for _, i := range st.later {
		t := st.Items[i].tries
		if !t.ready.After(now) {
			listed[phaseIndex(t.phase)].add(int(i))
			continue
		}
		b.Items[st.Pos]++
		if b.Next.IsZero() || t.ready.Before(b.Next) {
			b.Next = t.ready
		}
	}
	for i := st.fresh; i < len(st.Items) && len(listed[0]) < window; i++ {
		listed[0] = append(listed[0], int32(i))
	}
	all := head(listed[0], window)
	for _, i := range head(listed[1], window) {
		all.add(int(i))
	}
	for _, i := range all {
		tickets = append(tickets, st.ticket(int(i)))
	}
	return tickets
}

// head is a copy of the first n of a list.
func head(l indices, n int) indices { return slices.Clone(l[:min(n, len(l))]) }

func (st *Step) ticket(i int) Ticket {
	it := &st.Items[i]
	t := Ticket{AttemptID: st.next(i), Model: st.Asked(i), Context: st.spec.Options.Context, Embed: st.Kind == KindEmbed,
		Ready: st.readyAt(i), Effort: st.effort(i, it.phase()), Affinity: st.spec.size.affinity, Uses: st.spec.Uses, Tool: st.spec.Name}
	if it.tries != nil {
		t.Avoid, t.Permitted = it.tries.avoid, it.tries.permitted
	}
	if it.phase() == Judge {
		t.Context, t.Embed, t.Affinity = 0, false, ""
	}
	return t
}

// Call is what an attempt sends to a worker, or to a tool. A judge's Line is one more source; its Body is the subject.
type Call struct {
	Kind     string          // generate, plan, evaluate, embed or tool
	Request  json.RawMessage // canonical
	Body     json.RawMessage // item or subject, nil when there is none
	Line     *Line           // where the item is when it is a line of an artifact; then Body is nil
	Feedback []string
	Variation
}

// Variation is how an attempt differs from the first one of its kind.
type Variation struct {
	Room     bool            // twice the tokens for every answer, and no thoughts where that can be said
	Probe    bool            // what is known of how a format is applied is in doubt
	Reversed bool            // the answers are offered in the other order
	Rejected json.RawMessage // a plan to repair, by the feedback; nil: plan anew
}

// Line is one line of an artifact. Who sends the call reads it, by the index.
type Line struct {
	Ref   string // SHA-256 of the artifact
	Name  string // of the artifact
	Index string // SHA-256 of its index, see Lines
	At    int    // from 0
}

// Call builds the call of an attempt that was placed.
func (s *State) Call(a AttemptID) (Call, error) {
	st, it := s.item(a.Pos, a.Item)
	if it == nil {
		return Call{}, errNoSuch(a.Pos, a.Item)
	}
	if st.Status.Ended() {
		return Call{}, ErrStale
	}
	c := Call{Kind: st.Kind, Request: st.Shared, Body: st.spec.body(st.Kind, a.Item)}
	if l := st.spec.lines; l != nil {
		c.Line = l.at(a.Item)
	}
	switch {
	case a.Phase == Judge:
		req, err := st.spec.judgeRequest(c.Body)
		return Call{Kind: KindEvaluate, Request: req, Body: it.Result.body(), Line: c.Line, Variation: st.variation(it, a.Phase)}, err
	case st.Kind == KindTool:
		c.Request = st.Body
	case st.Kind == KindBatch:
		c.Kind = KindGenerate
	}
	c.Feedback, c.Variation = st.feedback(it), st.variation(it, a.Phase)
	return c, nil
}

// feedback is what an item's next attempt is told of earlier ones. A repair is about one plan; a fresh try has no history.
func (st *Step) feedback(it *Item) []string {
	all := append([]string(nil), st.spec.Feedback...)
	switch t := it.tries; {
	case t == nil, t.step == ladder.Fresh:
		return all
	case t.rejected != nil:
		return t.rejected.Reasons
	default:
		return append(all, t.feedback...)
	}
}

func (st *Step) variation(it *Item, p Phase) (v Variation) {
	t := it.tries
	v.Reversed = st.spec.Reversed
	if t == nil {
		return v
	}
	v.Room, v.Probe = t.room, t.step == ladder.Mode
	if t.rejected != nil {
		v.Rejected = t.rejected.Plan
	}
	if st.judges(p) && t.judging != nil {
		v.Reversed = st.spec.Reversed != (len(t.judging.asked)%2 == 1)
	}
	return v
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
