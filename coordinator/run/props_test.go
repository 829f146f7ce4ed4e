package run

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
)

func equalStates(t rapid.TB, a, b *State) {
	t.Helper()
	if !reflect.DeepEqual(a, b) {
		x, _ := json.MarshalIndent(a, "", " ")
		y, _ := json.MarshalIndent(b, "", " ")
		t.Fatalf("the folded state differs from the live one:\n%s\n%s", x, y)
	}
}

// TestAnyHistory throws random commands, sensible and not, and crashes at a run and checks what must hold after each of them.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, s: &State{}, shadow: &State{}, now: birth, ended: map[string]bool{}, wrote: map[string]string{}}
		limits := Limits{Tokens: rapid.SampledFrom([]int64{0, 0, 0, 20}).Draw(t, "tokens"), Calls: rapid.SampledFrom([]int64{0, 0, 0, 6}).Draw(t, "calls"),
			ActiveSeconds: rapid.SampledFrom([]int64{0, 60}).Draw(t, "seconds"),
			ArtifactBytes: rapid.SampledFrom([]int64{0, 0, 12}).Draw(t, "bytes")}
		h.execute(Create{Created{ID: "k3f9", Script: "abc", Input: json.RawMessage(`{}`), Seed: rapid.Int64().Draw(t, "seed"), Clock: birth, Limits: limits, Roles: benchRoles}})
		h.execute(Start{})
		t.Repeat(map[string]func(*rapid.T){
			"yield": h.yield, "wait": h.wait, "phase": h.phase, "place": h.place, "finish": h.finish, "stale": h.stale, "reject": h.reject,
			"answer": h.answer, "settle": h.settle, "check": h.checks, "crash": h.crash, "person": h.person, "rare": h.rare, "": h.check,
		})
		equalStates(t, h.s, refold(t, h.events))
	})
}

type history struct {
	*rapid.T
	s      *State
	shadow *State // the events one by one
	now    time.Time
	events []Event
	flying []AttemptID
	done   []AttemptID
	ended  map[string]bool // items that ended
	active time.Duration
	wrote  map[string]string // what is known of an item's last external write
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
	h.events = append(h.events, events...)
	for _, e := range events {
		h.follow(e)
		h.note(e)
	}
}

// crash loses all that is not in an event.
func (h *history) crash(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
		h.s = refold(t, h.events)
	}
}

func (h *history) ask(t *rapid.T, kind, body string, note bool) {
	pos := len(h.s.Requests) + rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "skew")
	y := Yield{Requests: []Request{{Pos: pos, Kind: kind, Body: json.RawMessage(body), Note: note}}}
	if rapid.IntRange(0, 20).Draw(t, "ends") == 0 {
		y.End = &ScriptEnd{}
	}
	h.execute(y)
}

func (h *history) yield(t *rapid.T) {
	bodies := map[string]string{
		KindGenerate: `{"check":true,"model":"m","prompt":"p"}`, KindRead: `{"ref":"aa"}`, KindLog: `{"level":"info","text":"x"}`,
		KindBatch: `{"evaluate":{"criteria":["c"],"model":"judge"},"items":[1,2,3],"model":"writer","prompt":"p"}`,
		KindPlan:  rapid.SampledFrom([]string{`{}`, `{"goal":"g","model":["m","n"]}`}).Draw(t, "plan"), KindEvaluate: `{"criteria":["c"],"model":"judge","subject":"s"}`,
		KindOutput: `{"name":"o","sources":[0],"value":1}`, KindCollected: `{"failures":[],"label":"l"}`,
		KindTool: `{"input":{},"name":"mail.send"}`, KindPage: `{"step":1}`, KindExpect: `{"keys":["0","1"]}`, KindWaive: `{"reason":"r","step":1}`,
		KindFallback: `{"by":2,"step":1}`,
	}
	kind := rapid.SampledFrom(slices.Sorted(maps.Keys(bodies))).Draw(t, "kind")
	_, step := steps[kind]
	h.ask(t, kind, bodies[kind], !step)
}

func (h *history) wait(t *rapid.T) {
	bodies := map[string]string{
		KindApprove: `{"on_timeout":"rejected","timeout_seconds":10,"title":"t"}`, KindQuestion: `{"text":"t"}`, KindSleep: `{"seconds":5}`,
		KindSpawn: `{"input":{},"workflow":"w"}`,
	}
	kind := rapid.SampledFrom(slices.Sorted(maps.Keys(bodies))).Draw(t, "kind")
	h.ask(t, kind, bodies[kind], false)
}

func (h *history) phase(t *rapid.T) {
	body := `{"max_rollbacks":2,"phases":["a","b","c"],"pipeline":"p"}`
	if p := h.s.Pipeline("p"); p != nil && p.Phase() != nil {
		body = rapid.SampledFrom([]string{
			`{"done":{"outcome":"passed","phase":"` + p.Phase().Name + `"},"pipeline":"p"}`, `{"pipeline":"p"}`,
			`{"done":{"outcome":"needs_human","phase":"` + p.Phase().Name + `"},"pipeline":"p"}`,
			`{"done":{"outcome":"sent_back","phase":"` + p.Phase().Name + `","reason":"r","target":"a"},"pipeline":"p"}`,
			`{"done":{"outcome":"passed","phase":"b"},"pipeline":"p"}`, `{"phases":["x"],"pipeline":"q"}`,
		}).Draw(t, "body")
	}
	h.ask(t, KindPhase, body, false)
}

// settle answers what waits for a person, a timer, a child or a resolution.
func (h *history) settle(t *rapid.T) {
	if at := h.s.NextTimer(); at.After(h.now) && rapid.Bool().Draw(t, "late") {
		h.now = at
	}
	var open []*Step
	for st := range h.s.Open {
		if st.WaitingFor() != "" {
			open = append(open, st)
		}
	}
	if len(open) == 0 {
		return
	}
	st := rapid.SampledFrom(open).Draw(t, "step")
	switch {
	case st.Status == StepUnknown:
		h.execute(Resolve{Pos: st.Pos, Happened: rapid.Bool().Draw(t, "happened"), By: "ada"})
	case st.Question() != nil:
		h.execute(Permit{Pos: st.Pos, Outcome: rapid.SampledFrom([]string{Approved, Rejected}).Draw(t, "outcome"), By: "ada"})
	case st.Kind == KindSleep:
		h.execute(Fire{})
	case st.Kind == KindSpawn && st.Child == nil:
		h.execute(Spawned{Pos: st.Pos, Run: "c"})
	case st.Kind == KindSpawn:
		h.execute(ChildEnded{Pos: st.Pos, End: ChildEnd{Run: "c", Status: rapid.SampledFrom([]Status{Completed, Incomplete}).Draw(t, "end")}, Report: Content{Value: json.RawMessage(`{}`)}})
	default:
		h.execute(Settle{Pos: st.Pos, Outcome: Approved, Answer: json.RawMessage(`1`), By: "ada"})
	}
}

// checks answers a check delivery.
func (h *history) checks(t *rapid.T) {
	for _, d := range h.s.Deliveries {
		if d.Check && d.Given == nil && rapid.Bool().Draw(t, "this") {
			h.execute(Yield{Checks: []CheckAnswer{{d.Pos, d.Item, Checked{Passed: rapid.Bool().Draw(t, "passed")}}}})
			return
		}
	}
}

func (h *history) person(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "person") {
	case 0:
		h.execute(Suspend{By: "ada"})
	case 1, 2, 3:
		h.execute(Resume{By: "ada"})
	case 4:
		h.execute(Rollback{Pipeline: "p", Phase: "a", Reason: "r", By: "ada"})
	case 6:
		if tickets, _ := h.s.ReadyTools(h.now, 4); len(tickets) > 0 {
			h.execute(Doubt{Pos: tickets[0].Pos, Item: tickets[0].Item})
		}
	case 7, 8:
		if tickets, _ := h.s.ReadyTools(h.now, 4); len(tickets) > 0 {
			h.execute(Ask{Pos: tickets[0].Pos, Item: tickets[0].Item, Question: Question{Title: "may it?"}})
		}
	case 5:
		if tickets, _ := h.s.Ready(h.now, 4); len(tickets) > 0 {
			h.execute(Reuse{Pos: tickets[0].Pos, Item: tickets[0].Item, Result: Content{Value: json.RawMessage(`1`)}})
		}
	}
}

func (h *history) place(t *rapid.T) {
	tickets, b := h.s.Ready(h.now, 4)
	if more, _ := h.s.ReadyTools(h.now, 4); len(more) > 0 {
		tickets = append(tickets, more...)
	}
	if len(tickets) == 0 {
		if !b.Next.IsZero() {
			h.now = b.Next
		}
		return
	}
	tk := rapid.SampledFrom(tickets).Draw(t, "ticket")
	h.execute(Place{AttemptID: tk.AttemptID, Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), Model: tk.Model, External: tk.Tool != ""})
}

func (h *history) outcome(t *rapid.T, id AttemptID) Finish {
	f := Finish{AttemptID: id, Evidence: Evidence{Report: Report{OutputTokens: 3}}, Result: Content{Value: json.RawMessage(met("c"))}}
	switch rapid.IntRange(0, 6).Draw(t, "outcome") {
	case 4:
		f.Failure = &Failure{Kind: KindUnknown, Advice: Never}
	case 0:
		f.Failure = &Failure{Kind: rapid.SampledFrom([]string{"empty_turn", ladder.Truncated, ladder.NoStructure, ladder.PlanInvalid}).Draw(t, "kind"), Advice: rapid.SampledFrom([]Advice{Never, Again, Changed, OtherNode}).Draw(t, "advice")}
	case 1:
		f.Failure = &Failure{Kind: KindNodeLost, Advice: OtherNode}
	case 2:
		f.Result.Value = json.RawMessage(rapid.SampledFrom([]string{notMet("c"), missing("c"), unsure("c")}).Draw(t, "judgement"))
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
		h.execute(Expire{})
	case 3:
		h.execute(Yield{End: &ScriptEnd{Error: &Error{Kind: "threw"}}})
	}
}
