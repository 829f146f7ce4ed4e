package scheduler

import (
	"math"
	"testing"
	"time"
)

// The boundary is exact: the largest context fits, one step more does not, on an empty machine and now.
func TestLargestContextIsTheBoundary(t *testing.T) {
	for name, node := range map[string]Node{
		"a card":         gpuNode("alpha", 24, 23.5, big),
		"beside a model": gpuNode("alpha", 32, 31.5, big, small).load(loadedAt(small, 8192, 1, 1, time.Hour)),
		"two cards":      twoCards(11.5, 15.5, big),
		"host memory":    hostNode("alpha", 32, 26, big),
		"0.30 beside": func() Node {
			n := gpuNode("alpha", 36, 35.5, big, small).load(loadedAt(small, 8192, 1, 1, time.Hour))
			n.OllamaVersion = "0.31.0"
			return n
		}(),
		"a quantised cache": func() Node { n := gpuNode("alpha", 24, 23.5, big); n.KVType = "q8_0"; return n }(),
	} {
		fit := verdictOf(t, node, big.Name, 4096)
		if fit.Largest == 0 || fit.Largest >= 32768 || fit.Empty < fit.Largest {
			t.Errorf("%s: largest %d, empty %d", name, fit.Largest, fit.Empty)
			continue
		}
		if v := verdictOf(t, node, big.Name, fit.Largest).Verdict; v != FitYes {
			t.Errorf("%s: %d tokens are the largest context, and yet: %s", name, fit.Largest, v)
		}
		if v := verdictOf(t, node, big.Name, fit.Largest+contextStep).Verdict; v == FitYes {
			t.Errorf("%s: %d tokens fit, too", name, fit.Largest+contextStep)
		}
	}
}

// What fits at the model's own maximum is reported with it, though it may be no multiple of a step.
func TestLargestContextIsBoundedByTheModel(t *testing.T) {
	odd := llama8b
	odd.ContextLength = 5000
	if fit := verdictOf(t, gpuNode("alpha", 24, 23.5, model("odd:8b", odd)), "odd:8b", 0); fit.Largest != 5000 || fit.Empty != 5000 {
		t.Errorf("largest %d, empty %d", fit.Largest, fit.Empty)
	}
}

func TestFitVerdicts(t *testing.T) {
	card := func() Node { return gpuNode("alpha", 24, 23.5, big, middle) }
	idle := card().load(loadedAt(big, 8192, 1, 0, time.Hour))
	busy := card().load(loadedAt(big, 8192, 1, 2, time.Hour))
	foreign, pinned := idle, idle
	foreign.Loaded = []Loaded{idle.Loaded[0]}
	foreign.Loaded[0].Foreign = true
	pinned.Loaded = []Loaded{idle.Loaded[0]}
	pinned.Loaded[0].Pinned = true
	for _, c := range []struct {
		name    string
		node    Node
		model   string
		verdict FitVerdict
		evict   []Eviction
	}{
		{"free", card(), middle.Name, FitYes, nil},
		{"there", idle, big.Name, FitLoaded, nil},
		{"an idle model is in the way", idle, middle.Name, FitEvict, []Eviction{{big.Name, idle.Loaded[0].SizeBytes, 0}}},
		{"a busy one", busy, middle.Name, FitEvict, []Eviction{{big.Name, busy.Loaded[0].SizeBytes, 2}}},
		{"somebody else's", foreign, middle.Name, FitBlocked, nil},
		{"one that a person keeps", pinned, middle.Name, FitBlocked, nil},
		{"too small", gpuNode("alpha", 8, 7.5, middle), middle.Name, FitNo, nil},
		{"no such model", card(), "nobody:1b", FitUnknown, nil},
	} {
		fit := verdictOf(t, c.node, c.model, 8192)
		if fit.Verdict != c.verdict || len(fit.Evict) != len(c.evict) || len(c.evict) > 0 && fit.Evict[0] != c.evict[0] {
			t.Errorf("%s: %s %+v, want %s %+v", c.name, fit.Verdict, fit.Evict, c.verdict, c.evict)
		}
		if (fit.Short == 0) != (c.verdict == FitYes || c.verdict == FitEvict || c.verdict == FitLoaded || c.verdict == FitUnknown) || fit.Why == "" {
			t.Errorf("%s: %d bytes short, %q", c.name, fit.Short, fit.Why)
		}
	}
}

// The smallest set goes, and what is idle goes before what is not.
func TestFitEvictsTheLeast(t *testing.T) {
	a, b := model("a:7b", qwen7b), model("b:7b", qwen7b)
	node := gpuNode("alpha", 24, 23.5, a, b, middle).load(loadedAt(a, 8192, 1, 1, 2*time.Hour)).load(loadedAt(b, 8192, 1, 0, time.Hour))
	node.Pools[1].Free.N -= 4 * giB
	fit := verdictOf(t, node, middle.Name, 8192)
	if fit.Verdict != FitEvict || len(fit.Evict) != 1 || fit.Evict[0].Model != "b:7b" {
		t.Errorf("%s %+v", fit.Verdict, fit.Evict)
	}
}

// A model that is nowhere yet can be asked for by its shape, and the parts are those of the need.
func TestFitOfAFile(t *testing.T) {
	r := Fit(Snapshot{Now: noon, Nodes: []Node{gpuNode("alpha", 24, 23.5), gpuNode("beta", 8, 7.5)}},
		FitQuestion{Model: "new.gguf", Shape: &qwen14b, FileBytes: 9 * giB, Context: 8192, Slots: 2}, Limits{})
	want := NeedFor(qwen14b, 8192, 2, NeedOptions{GPUs: 1, Rules: RulesClassic})
	if !r.Known || r.Digest != "" || r.Context != 8192 || len(r.Nodes) != 2 {
		t.Fatalf("%+v", r)
	}
	if n := r.Nodes[0]; n.Verdict != FitYes || n.Need != want || n.Slots != 2 || n.Devices != 1 || n.Pulled {
		t.Errorf("%+v, want %+v", n, want)
	}
	if n := r.Nodes[1]; n.Verdict != FitNo || n.Short != want.Total()-n.Available.N {
		t.Errorf("%s, %d short", n.Verdict, n.Short)
	}
}

// With several cards the needs of the report are those on the fewest that take it.
func TestFitCountsDevices(t *testing.T) {
	fit := verdictOf(t, twoCards(23.9, 23.9, huge), huge.Name, 4096)
	if fit.Verdict != FitYes || fit.Devices != 2 || fit.Need.Constant != 2*457<<20 || len(fit.Pools) != 2 {
		t.Errorf("%s on %d devices, constant %d", fit.Verdict, fit.Devices, fit.Need.Constant)
	}
	if fit := verdictOf(t, twoCards(23.9, 23.9, middle), middle.Name, 4096); fit.Devices != 1 {
		t.Errorf("14b on %d devices", fit.Devices)
	}
}

func TestUnplaced(t *testing.T) {
	for _, c := range []struct {
		units, available []uint64
		each, want       uint64
	}{
		{[]uint64{0, 5, 5, 5, 1}, []uint64{12, 9}, 1, 0},
		{[]uint64{0, 5, 5, 5, 1}, []uint64{9, 9}, 1, 6}, // one layer on each, and 3 of 8 left over on both
		{[]uint64{7, 1}, []uint64{3, 9}, 1, 0},          // what does not go onto the first goes onto the second
		{[]uint64{1, 1}, []uint64{2, 2}, 5, 2},
	} {
		if got := unplaced(c.units, c.available, c.each); got != c.want {
			t.Errorf("%v on %v, %d each: %d left over, want %d", c.units, c.available, c.each, got, c.want)
		}
	}
}

// The pieces that are put onto devices are all that is not the same on each of them.
func TestUnitsAddUp(t *testing.T) {
	shape := llama70b
	shape.ProjectorBytes, shape.AdapterBytes = 600<<20, 100<<20
	for _, s := range []Shape{shape, {Architecture: "llama", WeightBytes: 8 * giB, Layers: 32, EmbeddingLength: 4096, Heads: 32, KVHeads: []int{8}}} {
		opts := NeedOptions{GPUs: 2, Rules: RulesClassic}
		need := NeedFor(s, 8192, 1, opts)
		if got, want := sum(units(s, 8192, 1, opts, need)), need.Weights+need.KV+need.Projector+need.Adapter; math.Abs(float64(got)-float64(want)) > 100 {
			t.Errorf("units of %d bytes, want %d", got, want)
		}
	}
}

// Ollama 0.30 adds a flat amount for a large batch that the Modelfile asks for, and counts embeddings without.
func TestPredictionOfALargeBatch(t *testing.T) {
	at := func(batch int, pooling bool) uint64 {
		s := llama8b
		s.Batch, s.Pooling = batch, pooling
		return predictRunner(5*giB, s, 8192, 1) - predictRunner(5*giB, llama8b, 8192, 1)
	}
	for batch, want := range map[int]uint64{0: 0, 512: 0, 1023: 0, 1024: 768 << 20, 2047: 768 << 20, 2048: 2 * giB, 4096: 2 * giB} {
		if got := at(batch, false); got != want {
			t.Errorf("batch %d: %d, want %d", batch, got, want)
		}
	}
	if got := at(2048, true); got != 0 {
		t.Errorf("an embedding model: %d", got)
	}
}
