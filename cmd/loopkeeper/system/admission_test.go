package system

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// refused submits a map over one item with a model and returns why it was refused.
func (h *house) refused(model string) *apierr.Error {
	h.t.Helper()
	raw, err := json.Marshal(map[string]any{"model": model, "prompt": prompt, "items": reports(1)})
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := h.client.Submit(h.t.Context(), &coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"},
		InputJson: raw, Models: []string{model}})
	if err == nil {
		h.t.Fatalf("%s was admitted: %v", model, r)
	}
	return apierr.As(apierr.FromStatus(err))
}

func TestModelTooLargeForEveryMachineIsRefused(t *testing.T) {
	t.Parallel()
	large := []ollamatest.Model{{Name: "llama3.3:70b", Vocab: 4096}, {Name: model, Vocab: 4096}}
	h := start(t, ollamatest.Config{Memory: 24 << 30, Models: large}, ollamatest.Config{Memory: 16 << 30, Models: large})
	e := h.refused("llama3.3:70b")
	if e.Code != apierr.CannotFit || len(e.Next) == 0 {
		t.Errorf("code %s, next %v", e.Code, e.Next)
	}
	for _, want := range []string{"llama3.3:70b", "machine 1 needs ", "machine 2 needs ", "has 2", "has 1", " short"} {
		if !strings.Contains(e.Message, want) {
			t.Errorf("the refusal lacks %q: %s", want, e.Message)
		}
	}
	t.Log(e.Message, e.Next)
	h.end(h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(2)}, model), "completed")
}

func TestUnknownModelIsRefusedWithThePull(t *testing.T) {
	t.Parallel()
	h := start(t, brisk())
	e := h.refused("mistral:7b")
	if e.Code != apierr.NotFound || len(e.Next) == 0 || e.Next[0] != "loopkeeper models pull mistral:7b --on node-1" {
		t.Errorf("code %s, next %v: %s", e.Code, e.Next, e.Message)
	}
}
