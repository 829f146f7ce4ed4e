package answers_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

var (
	birth  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	script = strings.Repeat("5", 64)
	docA   = strings.Repeat("a", 64)
	docB   = strings.Repeat("b", 64)
	prompt = strings.Repeat("e", 64)
	reply  = strings.Repeat("f", 64)
)

// tape drives the real state machine: commands in, events recorded, a second apart.
type tape struct {
	t      *testing.T
	s      *run.State
	now    time.Time
	events []run.Event
}

func begin(t *testing.T, input string, submitted ...run.Submitted) *tape {
	t.Helper()
	tp := &tape{t: t, s: &run.State{}, now: birth}
	tp.do(run.Create{Created: run.Created{ID: "k3f9", Workflow: "flow", Script: script, Input: json.RawMessage(input), Clock: birth, Submitted: submitted}})
	tp.do(run.Start{})
	return tp
}

func (tp *tape) do(c run.Command) {
	tp.t.Helper()
	tp.now = tp.now.Add(time.Second)
	events, err := run.Execute(tp.s, c, tp.now)
	if err != nil {
		tp.t.Fatalf("%T: %v", c, err)
	}
	tp.events = append(tp.events, events...)
}

var notes = map[string]bool{run.KindOutput: true, run.KindExpect: true, run.KindCover: true, run.KindWaive: true, run.KindFallback: true, run.KindCollected: true}

// ask has the script ask for things in one turn: kind and body by turns. It returns the first position.
func (tp *tape) ask(kindsAndBodies ...string) int {
	tp.t.Helper()
	first := len(tp.s.Requests)
	var y run.Yield
	for i := 0; i < len(kindsAndBodies); i += 2 {
		kind := kindsAndBodies[i]
		y.Requests = append(y.Requests, run.Request{Pos: first + i/2, Kind: kind, Body: json.RawMessage(kindsAndBodies[i+1]), Note: notes[kind]})
	}
	tp.do(y)
	return first
}

func (tp *tape) place(pos, item int, phase run.Phase, external bool) run.AttemptID {
	tp.t.Helper()
	at := 0
	if phase == run.Judge {
		at = 1
	}
	id := run.AttemptID{Pos: pos, Item: item, Phase: phase, Number: tp.s.Step(pos).Items[item].Sent[at] + 1}
	tp.now = tp.now.Add(time.Hour) // after any backoff
	model := "qwen3:8b"
	if phase == run.Judge {
		model = "judge:8b"
	}
	tp.do(run.Place{AttemptID: id, Node: "n1", Model: model, Digest: "500a", Context: 4096, Why: "it is loaded there", External: external})
	return id
}

// value ends a step's item with a value, text with a stored text.
func (tp *tape) value(pos, item int, v string) {
	tp.t.Helper()
	tp.finish(tp.place(pos, item, run.Work, false), run.Content{Value: json.RawMessage(v)})
}

func (tp *tape) text(pos, item int, sha string) {
	tp.t.Helper()
	tp.finish(tp.place(pos, item, run.Work, false), run.Content{Ref: sha, Bytes: 9, Text: true})
}

func (tp *tape) judge(pos, item int, verdict string) {
	tp.t.Helper()
	tp.finish(tp.place(pos, item, run.Judge, false), run.Content{Value: json.RawMessage(verdict)})
}

func (tp *tape) finish(id run.AttemptID, c run.Content) {
	tp.t.Helper()
	tp.do(run.Finish{AttemptID: id, Result: c, Evidence: run.Evidence{Node: "n1", Prompt: prompt, Raw: reply,
		Report: run.Report{Model: "qwen3:8b", LoadNanos: int64(500 * time.Millisecond)}}})
}

func (tp *tape) fail(pos, item int, kind string, advice run.Advice, prompt, raw string) {
	tp.t.Helper()
	tp.do(run.Finish{AttemptID: tp.place(pos, item, run.Work, false), Evidence: run.Evidence{Node: "n1", Prompt: prompt, Raw: raw},
		Failure: &run.Failure{Kind: kind, Message: "it was " + kind, Advice: advice}})
}

func (tp *tape) returns() { tp.t.Helper(); tp.do(run.Yield{End: &run.ScriptEnd{}}) }

// recorded are the events as the ledger would give them back.
func (tp *tape) recorded() answers.Events {
	return func(yield func(run.Event, error) bool) {
		for _, e := range tp.events {
			kind, payload, err := run.Encode(e)
			if err == nil {
				e, err = run.Decode(e.Seq, e.Time, kind, payload)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

var nodes = answers.Names{"n1": "attic"}

func (tp *tape) why(subject string) *answers.Reason {
	tp.t.Helper()
	r, err := answers.Why(tp.recorded(), subject, nodes)
	if err != nil {
		tp.t.Fatal(err)
	}
	return r
}

func basis(t *testing.T, r *answers.Reason, subject string) answers.Basis {
	t.Helper()
	var have []string
	for _, b := range r.Bases {
		if b.Subject == subject {
			return b
		}
		have = append(have, b.Subject)
	}
	t.Fatalf("there is no link %q, only %q", subject, have)
	return answers.Basis{}
}

func has(t *testing.T, what string, list []string, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(list, "\n"), want) {
		t.Errorf("%s lacks %q: %q", what, want, list)
	}
}

func lacks(t *testing.T, what string, list []string, not string) {
	t.Helper()
	if strings.Contains(strings.Join(list, "\n"), not) {
		t.Errorf("%s has %q: %q", what, not, list)
	}
}

var errRead = errors.New("the disk is gone")
