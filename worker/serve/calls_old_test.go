package serve

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestOldPlan(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("p")
	p, err := r.client.Plan(t.Context(), &workerv1.PlanRequest{Call: g.Call, Model: g.Model, Goal: "Write release notes from these commits",
		Context: []*workerv1.Body{body("fix: the seal")}, MaxSteps: 5, Models: []string{"qwen3:8b"}})
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Steps []map[string]any `json:"steps"`
		Order []string         `json:"order"`
	}
	if err := json.Unmarshal(p.GetOutcome().GetValueJson(), &v); err != nil {
		t.Fatalf("%v in %v", err, p.GetOutcome())
	}
	if len(v.Steps) == 0 || len(v.Steps) != len(p.GetSteps()) || len(v.Order) != len(v.Steps) {
		t.Fatalf("%v", p)
	}
	seen := map[string]bool{}
	for i, s := range p.GetSteps() {
		if s.GetId() != v.Order[i] || v.Steps[i]["id"] != s.GetId() || s.GetGoal() == "" {
			t.Errorf("step %d: %v, order %v", i, s, v.Order)
		}
		for _, d := range s.GetDependsOn() {
			if !seen[d] {
				t.Errorf("%s comes before %s, on which it depends", s.GetId(), d)
			}
		}
		seen[s.GetId()] = true
		for _, key := range []string{"id", "goal", "depends_on", "model", "writes", "external"} { // docs/requests.md
			if v.Steps[i][key] == nil {
				t.Errorf("step %d has no %s: %v", i, key, v.Steps[i])
			}
		}
	}
}

func TestOldEvaluate(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("e")
	source := body("The log says: seal worn at 02:14.")
	source.Name = "log.txt"
	e, err := r.client.Evaluate(t.Context(), &workerv1.EvaluateRequest{Call: g.Call, Model: g.Model, Goal: "Summarise the log", Criteria: []string{"it names the seal", "it is short"},
		Subject: body("A worn seal stopped the pump."), Sources: []*workerv1.Body{source}})
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(e.GetOutcome().GetValueJson(), &v); err != nil {
		t.Fatalf("%v in %v", err, e.GetOutcome())
	}
	if v["verdict"] != e.GetVerdict() || !slices.Contains([]string{"passed", "sent_back", "needs_human"}, e.GetVerdict()) || v["rule"] == "" {
		t.Errorf("verdict %q in %v", e.GetVerdict(), v)
	}
	for _, key := range []string{"reasons", "facts", "opinions"} {
		if _, ok := v[key].([]any); !ok {
			t.Errorf("%s is %T", key, v[key])
		}
	}
	if n := len(asked(r)); n != 2 {
		t.Errorf("%d calls for two criteria", n)
	}
	for _, c := range asked(r) {
		if !strings.Contains(c.Prompt, "Summarise the log") || !strings.Contains(c.Prompt, "seal worn at 02:14") {
			t.Errorf("the judge does not see goal and source: %s", c.Prompt)
		}
	}
}

func TestOldEvaluationNamesSourcesAsPeopleDo(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	req := &workerv1.EvaluateRequest{Sources: []*workerv1.Body{{}, {Name: "log.txt"}}}
	q := func(in string) calls.OldQuote {
		return calls.OldQuote{Text: "seal", In: in, Line: 1, Verified: in != ""}
	}
	quotes := []calls.OldQuote{q("subject"), q("source 1"), q("source 2"), q("")}
	out := r.server.oldEvaluation(req, calls.OldEvaluation{Outcome: calls.Outcome{Kind: calls.OK}, Verdict: calls.SentBack, Rule: calls.RuleNotMet,
		Facts: quotes[:3], Answers: []calls.CriterionAnswer{{Quotes: quotes}}})
	var v struct{ Facts []struct{ Quote, In string } }
	if err := json.Unmarshal(out.GetOutcome().GetValueJson(), &v); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"subject", "source 1", "log.txt", ""} {
		if got := out.GetQuotes()[i]; got.GetSource() != want || got.GetVerified() != (want != "") {
			t.Errorf("quote %d: %v", i, got)
		}
		if i < 3 && v.Facts[i].In != want {
			t.Errorf("fact %d: %v", i, v.Facts[i])
		}
	}
}
