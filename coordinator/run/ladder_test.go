package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// What a call gets after each failure, as who sends it sees it.
func TestTheCallSaysHowItDiffers(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindPlan, `{"feedback":["of the script"],"goal":"g","model":["small","large"]}`)
	call := func(node string) (AttemptID, Call) {
		id := tp.place(0, 0, node)
		c, err := tp.s.Call(id)
		if err != nil {
			t.Fatal(err)
		}
		return id, c
	}
	want := func(what string, c Call, feedback string, v Variation) {
		t.Helper()
		if got := strings.Join(c.Feedback, "|"); got != feedback || fmt.Sprintf("%+v", c.Variation) != fmt.Sprintf("%+v", v) {
			t.Errorf("%s: feedback %q, %+v; want %q, %+v", what, got, c.Variation, feedback, v)
		}
	}
	id, c := call("n1")
	want("the first", c, "of the script", Variation{})
	tp.refuse(id, "e1", "cycle: a", "numbers: b")
	id, c = call("n1")
	repair := Variation{Rejected: json.RawMessage(`{"a_note":"e1"}`)}
	want("a repair", c, "cycle: a|numbers: b", repair)
	tp.fail(id, KindNodeLost, OtherNode)
	tp.s = refold(t, tp.events) // and a crash
	id, c = call("n1")
	want("the same after a lost node", c, "cycle: a|numbers: b", repair)
	tp.refuse(id, "e2", "numbers: b", "cycle: a", "cycle: c") // the same rules: no repair helps
	id, c = call("n1")
	want("a fresh one", c, "of the script", Variation{})
	tp.fail(id, ladder.Truncated, Changed)
	id, c = call("n1")
	want("more room", c, "of the script", Variation{Room: true})
	tp.fail(id, ladder.NoStructure, Changed)
	id, c = call("n1")
	want("a look at how values are asked for, and the room stays", c, "of the script", Variation{Room: true, Probe: true})
	tp.fail(id, ladder.NoStructure, Changed)
	if got := tp.s.Requests[0].Failure; got == nil || got.Kind != ladder.NoStructure { // five were tried
		t.Errorf("it failed with %+v", got)
	}

	tp.ask(KindGenerate, `{"model":["small","large"],"prompt":"p"}`)
	again := func(kind string) (Call, *Flight) {
		tp.fail(tp.place(1, 0, "n1"), kind, Changed)
		id := tp.s.Requests[1].next(0)
		if tickets, _ := tp.s.Ready(tp.now.Add(1e12), 1); len(tickets) != 1 || tickets[0].AttemptID != id || tickets[0].Model != tp.s.Requests[1].Asked(0) {
			t.Fatalf("ready: %+v", tickets)
		}
		tp.do(Place{AttemptID: id, Node: "n1", Model: "m"})
		c, err := tp.s.Call(id)
		if err != nil {
			t.Fatal(err)
		}
		return c, tp.s.Requests[1].Items[0].Flight
	}
	if c, f := again(ladder.NoStructure); !c.Probe || f.Try != 2 {
		t.Errorf("after no structure: %+v, try %d", c.Variation, f.Try)
	}
	tp.fail(tp.s.Requests[1].Items[0].Flight.AttemptID, ladder.NoStructure, Changed)
	if asked := tp.s.Requests[1].Asked(0); asked != "large" {
		t.Errorf("then %s is asked", asked)
	}
	if f := tp.flight(1); f.Try != 1 || f.Number != 3 {
		t.Errorf("its first try is %d, number %d", f.Try, f.Number)
	}
}

// flight places what is ready of a step.
func (tp *tape) flight(pos int) *Flight {
	tp.place(pos, 0, "n1")
	return tp.s.Requests[pos].Items[0].Flight
}

// The second judge is another model, asked first without temperature, with another seed, elsewhere, and the answers in the other order.
func TestTheSecondJudgeIsAskedOtherwise(t *testing.T) {
	tp := newTapeOf(t, Created{Roles: benchRoles, Models: map[string]string{"qwen3:8b": "llama3.1:8b"}}) // a fork, which has two of one family
	tp.ask(KindEvaluate, `{"criteria":["short"],"model":"judge","subject":"a text"}`)
	one := *tp.flight(0)
	tp.fail(one.AttemptID, "empty_turn", Changed)
	again := *tp.flight(0)
	c, _ := tp.s.Call(again.AttemptID)
	if again.Try != 2 || again.Seed == one.Seed || c.Reversed {
		t.Errorf("the first judge's second try: %+v, %+v", again, c)
	}
	tp.succeed(again.AttemptID, met("short"))
	tickets, _ := tp.s.Ready(tp.now, 1)
	if len(tickets) != 1 || tickets[0].Model != "gemma3:12b" || fmt.Sprint(tickets[0].Avoid) != "[n1]" {
		t.Fatalf("next is %+v", tickets)
	}
	two := *tp.flight(0)
	if c, _ = tp.s.Call(two.AttemptID); two.Try != 1 || two.Seed == one.Seed || !c.Reversed || c.Kind != KindEvaluate {
		t.Errorf("the second judge: %+v, %+v", two, c)
	}
	tp.succeed(two.AttemptID, met("short"))
	var v panel.Verdict
	if s, err := tp.s.Settle(0); err != nil || json.Unmarshal(s.Value, &v) != nil || v.Judges[0].Model != "llama3.1:8b" || v.Judges[0].Family != "llama" {
		t.Errorf("%+v, %v", v, err)
	}
	if n := tp.s.Counts.Retried; n != 1 {
		t.Errorf("%d retries: the second judge is none", n)
	}
}

// A role that nobody has defined is asked for as a model of that name, and those of others are pinned.
func TestModelsAndRoles(t *testing.T) {
	for body, want := range map[string]string{
		`"qwen3:8b"`:                             "[qwen3:8b]",
		`"judge"`:                                "[qwen3:8b house-tune:1 gemma3:12b]",
		`["phi4","judge","writer","gemma3:12b"]`: "[phi4 qwen3:8b house-tune:1 gemma3:12b qwen3:14b mistral-small:24b]",
		`"critic"`:                               "[critic]",
	} {
		tp := newTapeOf(t, Created{Roles: benchRoles})
		tp.ask(KindGenerate, `{"model":`+body+`,"prompt":"p"}`)
		if st := tp.s.Requests[0]; fmt.Sprint(st.Models) != want || st.Model != st.Models[0] {
			t.Errorf("%s: %v, first %s", body, st.Models, st.Model)
		}
	}
}

// Whatever fails in whatever order, with crashes between: no item is tried more often than it may be, no rung is taken more often than
// the ladder has it, nobody is judged by more than three, and all comes to an end.
func TestNoBoundIsExceeded(t *testing.T) {
	kinds := []string{ladder.Truncated, ladder.Broken, ladder.Empty, ladder.NoStructure, ladder.Violation, ladder.PlanInvalid, "server_error", KindNodeLost}
	rapid.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(1, 7).Draw(t, "attempts")
		body := rapid.SampledFrom([][2]string{
			{KindPlan, `{"goal":"g","model":["a","b"]%s}`}, {KindPlan, `{"goal":"g","model":"a"%s}`},
			{KindGenerate, `{"model":["a","b","c"],"prompt":"p"%s}`},
			{KindGenerate, `{"evaluate":{"criteria":["c"],"model":"judge"},"model":"writer","prompt":"p"%s}`},
			{KindEvaluate, `{"criteria":["c"],"model":"judge","subject":"s"%s}`},
		}).Draw(t, "step")
		retry := fmt.Sprintf(`,"retry":{"attempts":%d}`, attempts)
		if body[0] == KindPlan && rapid.Bool().Draw(t, "default") {
			attempts, retry = 5, ""
		}
		var events []Event
		s, now := &State{}, birth
		do := func(cmd Command) {
			more, err := Execute(s, cmd, now)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, more...)
		}
		do(Create{Created{ID: "k3f9", Script: "abc", Input: json.RawMessage(`{}`), Clock: birth, Roles: benchRoles}})
		do(Start{})
		do(Yield{Requests: []Request{{Kind: body[0], Body: json.RawMessage(fmt.Sprintf(body[1], retry))}}})
		for calls := 0; !s.Requests[0].Status.Ended(); calls++ {
			if calls > 2000 {
				t.Fatal("it does not come to an end")
			}
			if rapid.IntRange(0, 5).Draw(t, "crash") == 0 {
				s = refold(t, events)
			}
			tickets, b := s.Ready(now, 1)
			if len(tickets) == 0 {
				now = b.Next
				continue
			}
			id := tickets[0].AttemptID
			do(Place{AttemptID: id, Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), Model: tickets[0].Model})
			f := Finish{AttemptID: id, Evidence: Evidence{Raw: rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "raw")}}
			if rapid.IntRange(0, 2).Draw(t, "fails") > 0 {
				f.Failure = &Failure{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Advice: Changed}
				if f.Failure.Kind == ladder.PlanInvalid {
					f.Rejected = &RejectedPlan{Plan: json.RawMessage(`{}`), Reasons: []string{rapid.SampledFrom([]string{"cycle: x", "numbers: y"}).Draw(t, "rule")}}
				}
			} else {
				f.Result.Value = json.RawMessage(rapid.SampledFrom([]string{met("c"), notMet("c"), missing("c"), unsure("c")}).Draw(t, "judgement"))
			}
			do(f)
		}
		bounds(t, events, body[0], attempts)
		equalStates(t, s, refold(t, events))
	})
}

// bounds counts over the events of a run with one item.
func bounds(t *rapid.T, events []Event, kind string, attempts int) {
	work, fails, judgements := 0, 0, 0
	taken := map[string]int{}
	for _, e := range events {
		switch p := e.Data.(type) {
		case *AttemptSucceeded:
			if kind == KindEvaluate || p.Phase == Judge {
				judgements, fails = judgements+1, 0
			} else {
				work, judgements = work+1, 0
			}
			clear(taken)
		case *AttemptFailed:
			switch {
			case !p.Counted:
				continue
			case kind == KindEvaluate || p.Phase == Judge:
				fails++
			default:
				work++
			}
			rung := p.Cause.Kind + " " + string(p.Step)
			taken[rung]++
			most := map[ladder.Step]int{ladder.Room: 1, ladder.Mode: 1, ladder.Repair: 2, ladder.Fresh: 1, ladder.Person: 1}[p.Step]
			if most > 0 && taken[rung] > most {
				t.Fatalf("%s is taken %d times", rung, taken[rung])
			}
			if p.Step == ladder.Model && (kind == KindEvaluate || p.Phase == Judge) {
				fails = 0
				clear(taken)
			}
		}
		if work > attempts || fails > attempts || judgements > panel.Most {
			t.Fatalf("%d tries of the work, %d of a judge, %d judgements; %d may be", work, fails, judgements, attempts)
		}
	}
}

// scripted is a model that breaks some rules and mends as many of them as it can of those that a repair names.
type scripted struct {
	breaks, mends int
}

// plans answers a call: the rules that its plan breaks.
func (m scripted) plans(t *testing.T, c Call) []string {
	all := []string{"cycle: a", "numbers: b", "outcome: c", "fan_out: d"}[:m.breaks]
	if c.Rejected == nil {
		return all
	}
	var was struct {
		Note string `json:"a_note"`
	}
	if err := json.Unmarshal(c.Rejected, &was); err != nil || was.Note != strings.Join(c.Feedback, ", ") {
		t.Fatalf("the repair is about %s, and lists %q", c.Rejected, c.Feedback)
	}
	return c.Feedback[min(m.mends, len(c.Feedback)):]
}

// The list of what is wrong leads a model that can follow it to a plan, within five tries; one that cannot gets a person.
func TestARepairListLeadsToAPlan(t *testing.T) {
	for name, c := range map[string]struct {
		models []scripted
		tries  int
		fails  string // "" for a plan
	}{
		"right at once":                                {[]scripted{{0, 0}}, 1, ""},
		"mends all that is listed":                     {[]scripted{{4, 4}}, 2, ""},
		"needs both repairs":                           {[]scripted{{4, 2}}, 3, ""},
		"mends too little":                             {[]scripted{{4, 1}}, 4, KindNeedsHuman},
		"mends nothing: one repair is wasted, not two": {[]scripted{{1, 0}}, 3, KindNeedsHuman},
		"the next model knows better":                  {[]scripted{{1, 0}, {0, 0}}, 4, ""},
		"nor does the next model":                      {[]scripted{{4, 1}, {1, 0}}, 5, KindNeedsHuman},
	} {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t)
			names := []string{"a", "b"}[:len(c.models)]
			tp.ask(KindPlan, `{"goal":"g","model":["`+strings.Join(names, `","`)+`"]}`)
			for tries := 1; !tp.s.Requests[0].Status.Ended(); tries++ {
				if tries > 5 {
					t.Fatal("more than five tries")
				}
				model := c.models[strings.Index("ab", tp.s.Requests[0].Asked(0))]
				id := tp.place(0, 0, "n1")
				call, err := tp.s.Call(id)
				if err != nil {
					t.Fatal(err)
				}
				if wrong := model.plans(t, call); len(wrong) > 0 {
					tp.refuse(id, strings.Join(wrong, ", "), wrong...)
				} else {
					tp.succeed(id, `{"outcome":"plan"}`)
				}
				tp.s = refold(t, tp.events)
			}
			st := tp.s.Requests[0]
			if failed := st.Failure != nil; failed != (c.fails != "") || failed && st.Failure.Kind != c.fails || st.Items[0].Sent[0] != c.tries {
				t.Errorf("after %d tries %+v, want %d and %q", st.Items[0].Sent[0], st.Failure, c.tries, c.fails)
			}
		})
	}
}
