package scheduler

import (
	"math"
	"testing"
)

func TestMarginBeforeAnythingWasObserved(t *testing.T) {
	if small := NeedFor(qwen7b, 512, 1, NeedOptions{}); small.Margin != 256<<20 {
		t.Errorf("margin %d, want at least 256 MiB", small.Margin)
	}
	large := NeedFor(llama70b, 8192, 1, NeedOptions{})
	if share := float64(large.Margin) / float64(large.Total()-large.Margin); math.Abs(share-0.03) > 1e-6 {
		t.Errorf("margin share %f, want 3 %%", share)
	}
}

func observations(key MarginKey, version, device string, excess ...int) []Observation {
	var out []Observation
	for _, e := range excess {
		out = append(out, Observation{MarginKey: key, Version: version, Device: device, Need: 10 * giB, Observed: uint64(10*giB + e<<20)})
	}
	return out
}

func TestLearnedMargins(t *testing.T) {
	key := MarginKey{Digest: "d", Context: 8192, Slots: 1}
	twenty := make([]int, 20)
	for i := range twenty {
		twenty[i] = 20 - i // MiB, in no order that helps
	}
	for _, c := range []struct {
		name   string
		excess []int // MiB
		want   uint64
	}{
		{"one load", []int{100}, 100 << 20},
		{"the 19th of 20", twenty, 19 << 20},
		{"less than computed is no margin, not a negative one", []int{-500, -300}, 0},
		{"the largest of a few", []int{-500, 40, 10}, 40 << 20},
	} {
		got, ok := LearnedMargins(observations(key, "0.17.4", "card", c.excess...), "0.17.4", "card")[key]
		if !ok || got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := LearnedMargins(nil, "0.17.4", "card"); len(got) != 0 {
		t.Errorf("nothing observed, and yet %v", got)
	}
}

// Another Ollama, card, context or number of slots takes other memory.
func TestMarginsAreLearnedForTheirOwnLoadsOnly(t *testing.T) {
	key := MarginKey{Digest: "d", Context: 8192, Slots: 1}
	all := observations(key, "0.17.4", "card", 100)
	all = append(all, observations(key, "0.30.1", "card", 900)...)
	all = append(all, observations(key, "0.17.4", "other card", 800)...)
	all = append(all, observations(MarginKey{Digest: "d", Context: 4096, Slots: 1}, "0.17.4", "card", 700)...)
	if got := LearnedMargins(all, "0.17.4", "card"); got[key] != 100<<20 || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestLearnedMarginReplacesTheGuess(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, huge, big, small)
	opts := func(n Node) NeedOptions {
		return newMemory(&n, catalogOf([]*Node{&n}), Limits{}).options(&n, 1, big.Digest, 8192, 1)
	}
	guess := NeedFor(qwen32b, 8192, 1, opts(node))
	node.Margins = map[MarginKey]uint64{{Digest: big.Digest, Context: 8192, Slots: 1}: 900 << 20}
	learned := NeedFor(qwen32b, 8192, 1, opts(node))
	if learned.Margin != 900<<20 || learned.Total()-learned.Margin != guess.Total()-guess.Margin {
		t.Errorf("learned %+v, guess %+v", learned, guess)
	}
	// what was never loaded so keeps the guess
	if other := newMemory(&node, catalogOf([]*Node{&node}), Limits{}).options(&node, 1, big.Digest, 4096, 1); other.Learned.Known {
		t.Errorf("%v", other.Learned)
	}
}

// Ollama up to 0.2x keeps a layer and its part of the cache free on each card; less would have it spill by itself, whatever was
// observed. 0.30 does not.
func TestMarginIsNeverBelowTheLayerThatOllamaKeepsFree(t *testing.T) {
	none := Bytes{Known: true}
	layer := qwen32b.LayerBytes[0] + 8192*4*1024 // 256 KiB per token over 64 layers
	for _, c := range []struct {
		opts NeedOptions
		want uint64
	}{
		{NeedOptions{GPUs: 1, Learned: none, Rules: RulesClassic}, layer}, {NeedOptions{GPUs: 2, Learned: none, Rules: RulesClassic}, 2 * layer},
		{NeedOptions{GPUs: 1, Learned: none, Rules: RulesRunner}, 0}, {NeedOptions{Learned: none, Rules: RulesClassic}, 0},
	} {
		if got := NeedFor(qwen32b, 8192, 1, c.opts).Margin; got != c.want {
			t.Errorf("%+v: margin %d, want %d", c.opts, got, c.want)
		}
	}
}

func TestAccelerator(t *testing.T) {
	two := twoCards(23, 23)
	two.Devices[1].Name = "another"
	broken := gpuNode("b", 24, 23)
	broken.Devices[0].Usable = false
	for name, node := range map[string]Node{"another + card": two, "card": gpuNode("a", 24, 23), "": broken} {
		if got := node.Accelerator(); got != name {
			t.Errorf("%q, want %q", got, name)
		}
	}
}
