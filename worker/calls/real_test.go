package calls

import (
	"os"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// A model that knows nothing, but keeps to the grammar, gets through every call.
func TestRealServerPlansAndEvaluates(t *testing.T) {
	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", tinymodel.Options{})
	c, err := ollama.New(ollama.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	common := Common{Model: "tiny", Options: Options{NumCtx: 8192, NumPredict: 1500}}
	plan := Plan(t.Context(), c, PlanRequest{Common: common, Goal: "Describe the pump."})
	if plan.Kind != OK || len(plan.Order) == 0 {
		t.Errorf("plan: %s %q %q, raw %q", plan.Kind, plan.Message, plan.Reasons, plan.Turns[0].Raw)
	}
	e := Evaluate(t.Context(), c, EvaluateRequest{Common: common, Criteria: []string{"It is about a pump."}, Subject: document})
	if e.Kind != OK || e.Verdict == "" {
		t.Errorf("evaluate: %s %q %q, raw %q", e.Kind, e.Message, e.Reasons, e.Turns[0].Raw)
	}
	t.Logf("plan %s, verdict %s by %s", plan.Value, e.Verdict, e.Rule)
}
