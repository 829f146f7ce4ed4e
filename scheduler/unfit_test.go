package scheduler

import (
	"testing"
	"time"
)

// What spilled at 8192 tokens may well fit at 4096, and never at more than 8192.
func TestWhatSpilledIsTriedWithASmallerContextOnly(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	for context, want := range map[int]string{4096: "load alpha llama3.1:8b", 8192: "wait node llama3.1:8b/1", 16384: "wait node llama3.1:8b/1"} {
		node.Unfit = map[string]Unfit{small.Digest: {Context: 8192, Until: noon.Add(time.Minute)}}
		waiting := tasks(1, "llama3.1:8b", 0)
		waiting[0].Context = context
		if got := actions(place(t, waiting, node)); got[0] != want {
			t.Errorf("%d tokens: %v, want first %q", context, got, want)
		}
		node.Unfit[small.Digest] = Unfit{Context: 8192, Until: noon}
		if got := actions(place(t, waiting, node)); got[0] != "load alpha llama3.1:8b" {
			t.Errorf("%d tokens, later: %v", context, got)
		}
	}
	// A copy that spilled takes nothing new while it is still there.
	spilled := gpuNode("alpha", 24, 17, small).load(loadedAt(small, 8192, 1, 0, 0))
	spilled.Unfit = map[string]Unfit{small.Digest: {Context: 8192, Until: noon.Add(time.Minute)}}
	if got := actions(place(t, tasks(1, "llama3.1:8b", 0), spilled)); got[0] != "wait node llama3.1:8b/1" {
		t.Errorf("a copy that spilled: %v", got)
	}
}

// A measured load is an observation of what the model needed on the devices that the load was decided for.
func TestObserve(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	node.Slots = 2
	need := NeedFor(*small.Shape, 8192, 2, NeedOptions{GPUs: 1})
	load := Decision{Action: Load, Digest: small.Digest, Context: 8192, Need: need.Total()}
	o, ok := Observe(node, load, 12*giB)
	if want := need.Total() - need.Margin; !ok || o.Need != want || o.Observed != 12*giB || o.Slots != 2 || o.Context != 8192 || o.Version != node.OllamaVersion || o.Device == "" {
		t.Errorf("%+v %v, want a need of %d", o, ok, want)
	}
	node.Margins = LearnedMargins([]Observation{o}, node.OllamaVersion, node.Accelerator())
	if plan := place(t, []Task{{Key: "a", Model: small.Name, Context: 8192}}, node); plan.Decisions[0].Need != 12*giB {
		t.Errorf("the next load is taken for %d", plan.Decisions[0].Need)
	}
	if _, ok := Observe(hostNode("beta", 64, 60, small), load, 12*giB); ok {
		t.Error("a load into host memory was measured")
	}
	if _, ok := Observe(node, Decision{Digest: "nobody"}, 12*giB); ok {
		t.Error("a model without a shape has a need")
	}
}
