package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func equalStates(t rapid.TB, a, b *State) {
	t.Helper()
	if !reflect.DeepEqual(a, b) {
		x, _ := json.MarshalIndent(a, "", " ")
		y, _ := json.MarshalIndent(b, "", " ")
		t.Fatalf("the folded state differs from the live one:\n%s\n%s", x, y)
	}
}

// TestAnyHistory throws random commands, sensible and not, at a run and checks what must hold after each of them.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, s: &State{}, now: birth, ended: map[string]bool{}}
		h.execute(Create{Created{ID: "k3f9", Script: "abc", Input: json.RawMessage(`{}`), Seed: rapid.Int64().Draw(t, "seed"), Clock: birth}})
		h.execute(Start{})
		t.Repeat(map[string]func(*rapid.T){
			"yield": h.yield, "place": h.place, "finish": h.finish, "stale": h.stale, "reject": h.reject,
			"answer": h.answer, "rare": h.rare, "": h.check,
		})
		equalStates(t, h.s, refold(t, h.events))
	})
}

type history struct {
	*rapid.T
	s      *State
	now    time.Time
	events []Event
	flying []AttemptID
	done   []AttemptID
	ended  map[string]bool // items that ended
}

func (h *history) execute(cmd Command) {
	h.now = h.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(h.T, "ms")) * time.Millisecond)
	before := *h.s
	was := h.s.Status
	events, err := Execute(h.s, cmd, h.now)
	if err != nil {
		if len(events) != 0 || h.s.Seq != before.Seq {
			h.Fatalf("%T was refused (%v) and changed the run", cmd, err)
		}
		return
	}
	if was.Ended() && h.s.Status != was {
		h.Fatalf("%T moved the run from %s, which is final, to %s", cmd, was, h.s.Status)
	}
	if was != "" && was != h.s.Status && !slices.Contains(was.Transitions(), h.s.Status) {
		h.Fatalf("%T moved the run from %s to %s, which the table does not have", cmd, was, h.s.Status)
	}
	h.events = append(h.events, events...)
	for _, e := range events {
		h.note(e)
	}
}

// note checks that no item is committed twice and that nothing happens to one that has ended.
func (h *history) note(e Event) {
	end := func(pos, item int) {
		key := fmt.Sprint(pos, "/", item)
		if h.ended[key] {
			h.Fatalf("item %s ended twice", key)
		}
		h.ended[key] = true
	}
	switch p := e.Data.(type) {
	case *Placed:
		if h.ended[fmt.Sprint(p.Pos, "/", p.Item)] {
			h.Fatalf("item %d/%d is called again after its end", p.Pos, p.Item)
		}
		h.flying = append(h.flying, p.AttemptID)
	case *AttemptSucceeded:
		if p.Then == ThenSucceeded || p.Then == ThenFailed {
			end(p.Pos, p.Item)
		}
	case *AttemptFailed:
		if p.Then == ThenFailed {
			end(p.Pos, p.Item)
		}
	case *ItemFailed:
		end(p.Pos, p.Item)
	}
}

func (h *history) yield(t *rapid.T) {
	bodies := map[string]string{
		KindGenerate: `{"model":"m","prompt":"p"}`, KindRead: `{"ref":"aa"}`, KindLog: `{"level":"info","text":"x"}`,
		KindBatch: `{"evaluate":{"criteria":["c"],"model":"j"},"items":[1,2,3],"model":"m","prompt":"p"}`,
		KindPlan:  `{}`, KindOutput: `{"name":"o","sources":[0],"value":1}`, KindCollected: `{"failures":[],"label":"l"}`,
	}
	kind := rapid.SampledFrom([]string{KindGenerate, KindBatch, KindRead, KindPlan, KindLog, KindOutput, KindCollected}).Draw(t, "kind")
	note := kind == KindLog || kind == KindOutput || kind == KindCollected
	pos := len(h.s.Requests) + rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "skew")
	y := Yield{Requests: []Request{{Pos: pos, Kind: kind, Body: json.RawMessage(bodies[kind]), Note: note}}}
	if rapid.IntRange(0, 12).Draw(t, "ends") == 0 {
		y.End = &ScriptEnd{}
	}
	h.execute(y)
}

func (h *history) place(t *rapid.T) {
	tickets, b := h.s.Ready(h.now, 4)
	if len(tickets) == 0 {
		if !b.Next.IsZero() {
			h.now = b.Next
		}
		return
	}
	tk := rapid.SampledFrom(tickets).Draw(t, "ticket")
	h.execute(Place{AttemptID: tk.AttemptID, Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), Model: tk.Model})
}

func (h *history) outcome(t *rapid.T, id AttemptID) Finish {
	f := Finish{AttemptID: id, Evidence: Evidence{Report: Report{OutputTokens: 3}}, Result: Content{Value: json.RawMessage(`{"verdict":"passed"}`)}}
	switch rapid.IntRange(0, 5).Draw(t, "outcome") {
	case 0:
		f.Failure = &Failure{Kind: "empty_turn", Advice: rapid.SampledFrom([]Advice{Never, Again, Changed, OtherNode}).Draw(t, "advice")}
	case 1:
		f.Failure = &Failure{Kind: KindNodeLost, Advice: OtherNode}
	case 2:
		f.Result.Value = json.RawMessage(`{"verdict":"sent_back","reasons":["r"]}`)
	case 3:
		f.Result.Value = json.RawMessage(`"prose"`)
	}
	return f
}

func (h *history) finish(t *rapid.T) {
	if len(h.flying) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.flying)-1).Draw(t, "attempt")
	id := h.flying[i]
	h.flying = slices.Delete(h.flying, i, i+1)
	h.done = append(h.done, id)
	if rapid.Bool().Draw(t, "begins") {
		h.execute(Begin{id})
	}
	h.execute(h.outcome(t, id))
}

// stale hands in a result that was taken already: nothing may come of it.
func (h *history) stale(t *rapid.T) {
	if len(h.done) == 0 {
		return
	}
	id := rapid.SampledFrom(h.done).Draw(t, "attempt")
	if _, err := Decide(h.s, h.outcome(t, id), h.now); !errors.Is(err, ErrStale) {
		t.Fatalf("a result was taken twice: %v", err)
	}
	h.execute(Late{h.outcome(t, id)})
}

func (h *history) reject(t *rapid.T) {
	if tickets, _ := h.s.Ready(h.now, 4); len(tickets) > 0 && rapid.IntRange(0, 9).Draw(t, "really") == 0 {
		h.execute(Reject{Pos: tickets[0].Pos, Item: tickets[0].Item, Failure: Failure{Kind: "cannot_fit"}})
	}
}

func (h *history) answer(t *rapid.T) {
	for _, st := range h.s.Requests {
		if st.Kind == KindRead && !st.Status.Ended() {
			h.execute(Answer{Pos: st.Pos, Result: Content{Ref: "aa", Text: true}})
			return
		}
	}
}

func (h *history) rare(t *rapid.T) {
	switch rapid.IntRange(0, 60).Draw(t, "rare") {
	case 0:
		h.execute(Cancel{})
	case 1:
		h.execute(Diverge{Divergence{Pos: 1}})
	case 2:
		h.execute(Expire{Spent: time.Second})
	case 3:
		h.execute(Yield{End: &ScriptEnd{Error: &Error{Kind: "threw"}}})
	}
}

// check counts everything anew and compares.
func (h *history) check(t *rapid.T) {
	var all Counts
	flights, open := 0, 0
	for _, st := range h.s.Requests {
		var c Counts
		for i := range st.Items {
			it := &st.Items[i]
			*c.of(it.Status)++
			if it.Flight != nil {
				flights++
			}
			if (it.Flight != nil) != (it.Status == StepPlaced || it.Status == StepRunning) {
				t.Fatalf("item %d/%d is %s, in flight: %v", st.Pos, i, it.Status, it.Flight != nil)
			}
		}
		c.Total, c.Retried = len(st.Items), st.Counts.Retried
		if c != st.Counts {
			t.Fatalf("step %d counts %+v, is %+v", st.Pos, st.Counts, c)
		}
		if !st.Status.Ended() {
			open++
		}
		all.Total += c.Total
		all.Succeeded += c.Succeeded
		all.Failed += c.Failed
		all.Running += c.Running
		all.Waiting += c.Waiting
		all.Cancelled += c.Cancelled
		all.Retried += c.Retried
	}
	if all != h.s.Counts || flights != h.s.flights || open != h.s.open.n {
		t.Fatalf("the run counts %+v, %d flights, %d open; is %+v, %d, %d", h.s.Counts, h.s.flights, h.s.open.n, all, flights, open)
	}
	if sum := all.Succeeded + all.Failed + all.Running + all.Waiting + all.Cancelled; sum != all.Total {
		t.Fatalf("%+v does not add up", all)
	}
	if h.s.Status == Completed && all.Succeeded != all.Total {
		t.Fatalf("completed with %+v", all)
	}
	h.reachable(t)
}

// reachable checks that no waiting item is forgotten: every one is offered now or when its backoff is over.
func (h *history) reachable(t *rapid.T) {
	if h.s.Status != Running || h.s.Limit != nil {
		return
	}
	tickets, _ := h.s.Ready(h.now.Add(time.Hour), 1<<20)
	if len(tickets) != h.s.Counts.Waiting {
		t.Fatalf("%d items wait, %d are offered", h.s.Counts.Waiting, len(tickets))
	}
}
