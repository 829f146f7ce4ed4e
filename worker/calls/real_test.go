package calls

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/calls/plan"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// tiny is a real server with a model that knows nothing, but keeps to the grammar.
func tiny(t *testing.T) (*ollama.Client, Common) {
	t.Helper()
	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", tinymodel.Options{})
	c, err := ollama.New(ollama.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, Common{Model: "tiny", Options: Options{NumCtx: 8192, NumPredict: 1500}}
}

// The model gets through every call; what it plans may not hold, but a plan it is.
func TestRealServerPlansAndEvaluates(t *testing.T) {
	c, common := tiny(t)
	p := Plan(t.Context(), c, PlanRequest{Common: common, Task: plan.Task{Goal: "Describe the pump.", MaxSteps: 3, Parts: []string{"the pump", "its seal"},
		Inputs: []string{"log.txt", "Protokoll „März“ | 1.txt"}, Lists: []plan.List{{Name: "seals", Count: 3}}}})
	if p.Kind != OK && p.Kind != PlanInvalid {
		t.Errorf("plan: %s %q %q, raw %q", p.Kind, p.Message, p.Reasons, p.Turns[len(p.Turns)-1].Raw)
	}
	e := Evaluate(t.Context(), c, EvaluateRequest{Common: common, Criteria: []Criterion{{Text: "It is about a pump."}}, Subject: document})
	if e.Kind != OK || len(e.Answers) != 1 {
		t.Errorf("evaluate: %s %q %q, raw %q", e.Kind, e.Message, e.Reasons, e.Turns[len(e.Turns)-1].Raw)
	}
	t.Logf("plan %s %q from %s, evaluation %s", p.Kind, p.Reasons, p.Text, e.Value)
}

// A plan of twelve steps asks three criteria of each result, one subject after the other: each subject is read once, and its later
// questions find it in the server's cache, whichever endpoint asks. Only prompt_eval_duration shows it. A token of this model is a
// byte, so a subject is one of some 2000 tokens.
func TestRealServerReusesThePrefixOverAPlan(t *testing.T) {
	c, common := tiny(t)
	common.Options.NumPredict = 300
	for subject := range 12 {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "Pump %d of hall %d ran well and its seal still holds.\n", i+100, subject+1)
		}
		r := EvaluateRequest{Common: common, Subject: b.String()}
		for _, text := range []string{"It names every pump.", "It says how each seal is.", "It is short."} {
			r.Criteria = append(r.Criteria, Criterion{Text: text})
		}
		e := Evaluate(t.Context(), c, r)
		if e.Kind != OK {
			t.Fatalf("subject %d: %s %s", subject+1, e.Kind, e.Message)
		}
		first := e.Turns[0].Report.Counts.PromptDuration
		var parts []string
		for i, turn := range e.Turns[:2*len(r.Criteria)] {
			part := turn.Report.Counts.PromptDuration.Seconds() / first.Seconds()
			parts = append(parts, fmt.Sprintf("%.1f%%", 100*part))
			later := i != 0 && i != len(r.Criteria)        // the first of each kind also reads what is said about how to answer
			if later && part >= 0.1 || i > 0 && part > 1 { // one that finds nothing of its longer prompt takes more than the first
				t.Errorf("subject %d: call %d read its prompt in %.0f%% of the time of the first", subject+1, i, 100*part)
			}
		}
		t.Logf("subject %d: first %s, then %s", subject+1, first, strings.Join(parts[1:], " "))
	}
}
