package system

import (
	"fmt"
	"strings"
	"testing"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

const prompt = "Sum the report up.\n\n{{item}}"

// brisk is a machine that answers in some ten milliseconds.
func brisk() ollamatest.Config { return ollamatest.Config{DecodeRate: 1000} }

func TestBatchOverTwoWorkers(t *testing.T) {
	t.Parallel()
	h := start(t, brisk(), brisk())
	const n = 60
	id := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(n)}, model)
	r := h.end(id, "completed")

	if c := r.GetItems(); c.GetTotal() != n || c.GetSucceeded() != n || c.GetRetried() != 0 {
		t.Errorf("counts are %v", c)
	}
	if !r.GetSimulated() {
		t.Error("nobody says that it was simulated")
	}
	done := int64(0)
	for _, s := range r.GetNodes() {
		done += s.GetItems()
		if s.GetItems() < n/4 {
			t.Errorf("%s did only %d of %d items", s.GetName(), s.GetItems(), n)
		}
	}
	if done != n || len(r.GetNodes()) != 2 {
		t.Errorf("shares are %v", r.GetNodes())
	}
	for i, item := range h.items(id) {
		if item.GetIndex() != int32(i) || item.GetText() != report(i) || item.GetAttempts() != 1 {
			t.Errorf("item %d is %v", i, item)
		}
	}
	for name, calls := range byItem(h.calls()) {
		if calls != 1 {
			t.Errorf("%s was asked %d times", name, calls)
		}
	}
	for i, s := range h.seats {
		if s.stand.Loads() != 1 {
			t.Errorf("stand-in %d loaded a model %d times", i+1, s.stand.Loads())
		}
	}
}

func TestPlanOverTwoWorkers(t *testing.T) {
	t.Parallel()
	h := start(t, brisk(), brisk())
	id := h.submit("plan", map[string]any{"goal": "Write release notes from the commits of this week.", "planner": planner, "model": model},
		planner, model)
	r := h.end(id, "completed")
	calls := map[string]int{}
	for _, s := range r.GetSteps() {
		calls[s.GetKind()]++
		if s.GetState() != "succeeded" {
			t.Errorf("step %s %s %s is %s", s.GetId(), s.GetKind(), s.GetLabel(), s.GetState())
		}
	}
	if calls["plan"] != 1 || calls["generate"] < 5 || calls["evaluate"] < 6 {
		t.Errorf("calls are %v, want one plan, five steps and their judges, and one for the whole", calls)
	}
	out, err := h.client.GetResult(t.Context(), &coordinatorv1.GetResultRequest{RunId: id})
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for _, o := range out.GetOutputs() {
		outputs[o.GetName()] = fmt.Sprintf("%s%v", o.GetValueJson(), o.GetRef())
	}
	if n := strings.Count(outputs["steps"], `"status":"succeeded"`); n != 5 {
		t.Errorf("%d of 5 steps succeeded: %s", n, outputs["steps"])
	}
	if !strings.Contains(outputs["evaluation"], `"verdict":"passed"`) || outputs["result"] == "" {
		t.Errorf("outputs are %v", outputs)
	}
}
