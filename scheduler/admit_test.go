package scheduler

import (
	"strings"
	"testing"
	"time"
)

func TestAdmit(t *testing.T) {
	lostBig := gpuNode("gamma", 48, 47, huge)
	lostBig.State, lostBig.LastSeen = NodeLost, noon.Add(-10*time.Minute)
	lostSmall := gpuNode("gamma", 24, 23, small)
	lostSmall.State = NodeLost
	blind := gpuNode("delta", 24, 0, huge)
	blind.Pools[1].Free = Bytes{}
	draining := gpuNode("alpha", 48, 47, huge)
	draining.State = NodeDraining
	a, b := gpuNode("alpha", 24, 23.5, huge, small), gpuNode("beta", 12, 11.5, huge)
	for _, c := range []struct {
		name  string
		model string
		nodes []Node
		ok    bool
		wait  WaitFor
		says  []string
	}{
		{"fits", "llama3.1:8b", []Node{a, b}, true, "", []string{"can run on alpha"}},
		{"too large for all", "llama3.3:70b", []Node{a, b}, false, "", []string{"alpha needs 44.3 GiB, has 23.8 GiB, 20.6 GiB short", "beta needs 44.3 GiB, has 11.8 GiB, 32.6 GiB short"}},
		{"too large, lost ones count", "llama3.3:70b", []Node{a, lostSmall}, false, "", []string{"gamma needs 44.3 GiB, has 23.8 GiB"}},
		{"only a lost one fits", "llama3.3:70b", []Node{a, lostBig}, true, WaitNode, []string{"waits for a machine: gamma (lost, last seen 10 min ago)"}},
		{"only a draining one fits", "llama3.3:70b", []Node{draining}, true, WaitNode, []string{"draining"}},
		{"no machine known", "llama3.3:70b", nil, true, WaitNode, []string{"none is known yet"}},
		{"memory unknown", "llama3.3:70b", []Node{b, blind}, true, WaitFacts, []string{"delta (its memory is not known)"}},
		{"nobody has it", "qwen3:8b", []Node{a, b}, false, WaitModel, []string{"`loopkeeper models pull qwen3:8b --on alpha`, or on beta"}},
		{"only a lost one has it", "llama3.1:8b", []Node{b, lostSmall}, true, WaitNode, []string{"gamma"}},
		{"who has it is too small, who could hold it lacks it", "llama3.3:70b", []Node{b, gpuNode("zeta", 80, 79)}, false, WaitModel, []string{"`loopkeeper models pull llama3.3:70b --on zeta`"}},
		{"the default tag", "llama3.1", []Node{gpuNode("alpha", 24, 23, model("llama3.1:latest", llama8b))}, true, "", []string{"llama3.1:latest"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ok, why := Admit(Snapshot{Now: noon, Nodes: c.nodes}, c.model, 0, Limits{})
			if ok != c.ok || why.Wait != c.wait || len(why.Nodes) != len(c.nodes) {
				t.Errorf("ok %v wait %q, want %v %q\n%s", ok, why.Wait, c.ok, c.wait, why)
			}
			for _, want := range c.says {
				if !strings.Contains(why.Summary, want) {
					t.Errorf("summary lacks %q:\n%s", want, why.Summary)
				}
			}
		})
	}
}

// The refusal names the largest context that would fit, and that context is then admitted while one step more is not.
func TestLargestContextIsTheLargest(t *testing.T) {
	nodes := []Node{gpuNode("alpha", 24, 23.5, big), gpuNode("beta", 22, 21.5, big)}
	s := Snapshot{Now: noon, Nodes: nodes}
	ok, why := Admit(s, "qwen2.5:32b", 32768, Limits{})
	if ok {
		t.Fatalf("29 GiB fit a 24 GiB card: %s", why)
	}
	alpha, beta := why.Nodes[0].Largest, why.Nodes[1].Largest
	if alpha <= beta || beta == 0 || !strings.Contains(why.Summary, "the largest context that fits is") {
		t.Errorf("largest contexts %d and %d\n%s", alpha, beta, why)
	}
	if ok, why := Admit(s, "qwen2.5:32b", alpha, Limits{}); !ok {
		t.Errorf("%d tokens were named, and are refused: %s", alpha, why)
	}
	if ok, _ := Admit(s, "qwen2.5:32b", alpha+256, Limits{}); ok {
		t.Errorf("%d tokens fit as well", alpha+256)
	}
}
