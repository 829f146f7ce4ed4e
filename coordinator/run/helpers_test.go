package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
)

var birth = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// tape drives one run in a test: commands in, events recorded.
type tape struct {
	t      testing.TB
	s      *State
	now    time.Time
	events []Event
	log    strings.Builder
}

func newTape(t testing.TB) *tape { return newTapeOf(t, Created{}) }

// newTapeOf begins a run of which some things are pinned.
func newTapeOf(t testing.TB, c Created) *tape {
	t.Helper()
	tp := created(t, c)
	tp.do(Start{})
	return tp
}

func created(t testing.TB, c Created) *tape {
	t.Helper()
	tp := &tape{t: t, s: &State{}, now: birth}
	c.ID, c.Workflow, c.Script, c.Input, c.Seed, c.Clock = "k3f9", "map", "abc", json.RawMessage(`{}`), 7, birth
	tp.do(Create{c})
	return tp
}

// do executes a command that must not be refused, a second after the one before.
func (tp *tape) do(cmd Command) []Event {
	tp.t.Helper()
	events, err := tp.try(cmd)
	if err != nil {
		tp.t.Fatalf("%T: %v", cmd, err)
	}
	return events
}

func (tp *tape) try(cmd Command) ([]Event, error) {
	tp.t.Helper()
	tp.now = tp.now.Add(time.Second)
	events, err := Execute(tp.s, cmd, tp.now)
	tp.events = append(tp.events, events...)
	fmt.Fprintf(&tp.log, "> %s\n", strings.TrimPrefix(fmt.Sprintf("%T", cmd), "run."))
	if err != nil {
		fmt.Fprintf(&tp.log, "  refused: %v\n", err)
	}
	for _, e := range events {
		kind, payload, err := Encode(e)
		if err != nil {
			tp.t.Fatal(err)
		}
		fmt.Fprintf(&tp.log, "  %d %s %s\n", e.Seq, kind, payload)
	}
	return events, err
}

func (tp *tape) ask(kind, body string) int {
	tp.t.Helper()
	pos := len(tp.s.Requests)
	_, step := steps[kind]
	note := !step && kind != "teleport"
	tp.do(Yield{Requests: []Request{{Pos: pos, Kind: kind, Body: json.RawMessage(body), Note: note}}})
	return pos
}

func (tp *tape) returns() { tp.t.Helper(); tp.do(Yield{End: &ScriptEnd{}}) }

// place places whatever is ready for an item, after its backoff.
func (tp *tape) place(pos, item int, node string) AttemptID {
	tp.t.Helper()
	id := tp.s.Requests[pos].next(item)
	digest := "d" // two models that judge are two digests
	if st := tp.s.Requests[pos]; steps[st.Kind].work == model && st.judges(st.Items[item].phase()) {
		digest = "d of " + st.Asked(item)
	}
	tp.do(Place{AttemptID: id, Node: node, Model: "m", Digest: digest, Context: 4096, Why: "it is loaded there"})
	return id
}

func (tp *tape) succeed(id AttemptID, value string) {
	tp.t.Helper()
	tp.do(Finish{AttemptID: id, Result: Content{Value: json.RawMessage(value)}, Evidence: Evidence{Report: Report{PromptTokens: 10, OutputTokens: 5}}})
}

// What a judge may say of one criterion, as its worker hands it in.
func met(criterion string) string     { return saying(criterion, "met", "met", true) }
func notMet(criterion string) string  { return saying(criterion, "not_met", "not_met", true) }
func missing(criterion string) string { return saying(criterion, "not_met", "cannot_tell", false) }
func unsure(criterion string) string  { return saying(criterion, "cannot_tell", "cannot_tell", false) }

func saying(criterion, said, counted string, line bool) string {
	quotes := "[]"
	if line {
		quotes = `[{"quote":"the words","in":"subject","line":1}]`
	}
	return `{"answers":[{"criterion":"` + criterion + `","said":"` + said + `","counted":"` + counted + `","reason":"r","against":"","quotes":` + quotes +
		`,"missing":[]}],"flags":[],"empty":false,"lines":3}`
}

func (tp *tape) fail(id AttemptID, kind string, advice Advice) {
	tp.t.Helper()
	tp.do(Finish{AttemptID: id, Failure: &Failure{Kind: kind, Message: "it was " + kind, Advice: advice}})
}

// refuse ends a plan's attempt with a plan that breaks rules.
func (tp *tape) refuse(id AttemptID, raw string, reasons ...string) {
	tp.t.Helper()
	tp.do(Finish{AttemptID: id, Evidence: Evidence{Raw: raw}, Failure: &Failure{Kind: ladder.PlanInvalid, Message: reasons[0], Advice: Changed},
		Rejected: &RejectedPlan{Plan: json.RawMessage(`{"a_note":"` + raw + `"}`), Reasons: reasons}})
}

func (tp *tape) want(status Status) {
	tp.t.Helper()
	if tp.s.Status != status {
		tp.t.Fatalf("the run is %s, want %s\n%s", tp.s.Status, status, tp.log.String())
	}
}

func refold(t rapid.TB, events []Event) *State {
	t.Helper()
	s := &State{}
	for _, e := range events {
		kind, payload, err := Encode(e)
		if err == nil {
			e, err = Decode(e.Seq, e.Time, kind, payload)
		}
		if err = errors.Join(err, Apply(s, e)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
