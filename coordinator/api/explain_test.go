package api_test

import (
	"strings"
	"testing"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

func TestExplainAModel(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	explain := func(model string, context int32) *coordinatorv1.Explanation {
		t.Helper()
		e, err := r.client.Explain(t.Context(), &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_Model{Model: model}, Context: context})
		if err != nil || len(e.GetExplanations()) != 1 {
			t.Fatal(e, err)
		}
		return e.GetExplanations()[0]
	}
	small := explain("small:1b", 0)
	// 16 layers of 8 heads of 64 for keys and as much for values, in 16 bits, for 4096 tokens in two slots.
	if kv := uint64(16 * 8 * 64 * 2 * 2 * 4096 * 2); small.GetNeed().GetKvBytes() != kv || small.GetNeed().GetWeightsBytes() != 1<<30 {
		t.Errorf("the need is %v, want a cache of %d", small.GetNeed(), kv)
	}
	if twice := explain("small:1b", 8192); twice.GetNeed().GetKvBytes() != 2*small.GetNeed().GetKvBytes() {
		t.Errorf("at 8192 tokens the need is %v", twice.GetNeed())
	}
	huge := explain("huge:70b", 0).GetNodes()[0]
	if huge.GetNeedBytes() <= huge.GetAvailableBytes() || huge.GetShortBytes() != huge.GetNeedBytes()-huge.GetAvailableBytes() || huge.GetWhy() == "" {
		t.Errorf("the verdict is %v", huge)
	}
}

// The need at the head is that of the machine that a call would go to, and not of the first one that has the model.
func TestTheNeedIsThatOfTheMachineThatACallGoesTo(t *testing.T) {
	barn := newMachine("barn")
	barn.report.Slots = 4
	barn.report.Loaded = []*workerv1.LoadedModel{{Name: "small:1b", Digest: "aa", Context: 4096, SizeBytes: 3 << 30, VramBytes: 3 << 30}}
	r := newRig(t, newMachine("attic"), barn)
	e, err := r.client.Explain(t.Context(), &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_Model{Model: "small:1b"}, Context: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if kv, got := uint64(16*8*64*2*2*4096*4), e.GetExplanations()[0].GetNeed().GetKvBytes(); got != kv {
		t.Errorf("a cache of %d, want %d, of four slots", got, kv)
	}
}

func TestDecisionsAreTold(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	id := r.mapOf("x")
	r.end(id)
	e, err := r.client.Explain(t.Context(), &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_RunId{RunId: id}, Step: "0"})
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, d := range e.GetDecisions() {
		actions = append(actions, d.GetAction())
		if d.GetAt() == nil || d.GetRunId() != id || len(d.GetNodes()) != 1 || d.GetNodes()[0].GetWhy() == "" {
			t.Errorf("the decision is %v", d)
		}
	}
	if got := strings.Join(actions, " "); got != "load wait start" {
		t.Errorf("decided %s", got)
	}
}
