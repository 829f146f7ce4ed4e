package calls

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// Every recorded schema, and each of our own, goes to a real Ollama 0.17.4 in the form in which we send it. In their
// original form more than twenty of them end in an error, a dead runner, a dead server or a full memory.
func TestRealServerTakesEveryFormat(t *testing.T) {
	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", tinymodel.Options{})
	c, err := ollama.New(ollama.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	schemas := map[string]string{
		"plan": string(planSchema([]string{"tiny"}, 12)), "check": string(checkSchema()),
		"rewritten pattern": `{"type":"object","properties":{"v":{"type":"string","pattern":"^(?:\\d{2}|[\\w.-]{3})\\.(a|b)$"}},"required":["v"]}`,
		"many bounds":       `{"type":"array","maxItems":2000,"items":{"type":"array","maxItems":2000,"items":{"type":"string","minLength":2,"maxLength":2000}}}`,
	}
	enforced := map[string]bool{"plan": true, "check": true, "rewritten pattern": true}
	for _, r := range recordings(t) {
		schemas[r.Name], enforced[r.Name] = r.text(), r.enforced()
	}
	limits := Limits{FirstToken: time.Minute, NextToken: time.Minute}
	sent := 0
	for name, schema := range schemas {
		if CheckSchema(json.RawMessage(schema)) != nil {
			continue
		}
		out := Generate(t.Context(), c, GenerateRequest{
			Common: Common{Model: "tiny", Options: Options{NumCtx: 4096, NumPredict: 300}, Limits: limits},
			Prompt: "Fill it in.", Schema: json.RawMessage(schema),
		})
		sent++
		switch {
		case out.Kind == OK || out.Kind == Truncated:
		case out.Kind == SchemaViolation && !enforced[name]: // what no grammar holds, or nothing can satisfy
		default:
			t.Errorf("%s: %s %q %q, raw %q", name, out.Kind, out.Message, out.Reasons, out.Turns[0].Raw)
		}
	}
	if sent < 100 {
		t.Errorf("only %d of %d schemas were sent", sent, len(schemas))
	}
}

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
