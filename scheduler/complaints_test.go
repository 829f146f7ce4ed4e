package scheduler

import (
	"testing"
	"time"
)

// What users of other programs report, as far as it is about whether a model fits; each test is named after what goes wrong.

// verdictOf is the fit of a model on one node.
func verdictOf(t *testing.T, node Node, model string, context int) NodeFit {
	t.Helper()
	r := Fit(Snapshot{Now: noon, Nodes: []Node{node}}, FitQuestion{Model: model, Context: context}, Limits{})
	if len(r.Nodes) != 1 {
		t.Fatalf("%d nodes in the report", len(r.Nodes))
	}
	return r.Nodes[0]
}

// unifiedNode is a machine whose accelerator computes in a pool of so many bytes.
func unifiedNode(version string, total, free uint64, models ...Model) Node {
	n := hostNode("box", 0, 0, models...)
	n.OllamaVersion = version
	n.Pools = []Pool{{ID: "host", Kind: PoolUnified, Total: Bytes{total, true}, Free: Bytes{free, true}}}
	n.Devices = []Device{{Name: "Radeon 8060S", Pool: "host", Usable: true}}
	return n
}

// ollama#17251: /api/ps says 12 GB, really about 90 are taken. What the device lost around the load counts, under both
// generations of Ollama, for what stays and for what goes.
func TestPSShowsAFractionOfWhatIsTaken(t *testing.T) {
	for _, version := range []string{"0.17.4", "0.30.1"} {
		node := unifiedNode(version, 96*giB, 60*giB, huge, big) // the measured figure is of a moment ago
		liar := loadedAt(huge, 8192, 1, 0, time.Hour)
		liar.SizeBytes, liar.VRAMBytes = 12*giB, 12*giB
		node.Loaded = []Loaded{liar}
		if a := Available(node, "host", nil, Limits{}); a.N < 30*giB {
			t.Errorf("%s: %s available before anything was measured: our own figure is 44 GiB", version, gib(a.N))
		}
		node.Loaded[0].Observed = Bytes{N: 80 * giB, Known: true}
		if a := Available(node, "host", nil, Limits{}); a.N > 8*giB {
			t.Errorf("%s: %s available beside a model that took 80 of 96 GiB", version, gib(a.N))
		}
		if fit := verdictOf(t, node, big.Name, 8192); fit.Verdict != FitEvict || fit.Evict[0].Bytes != 80*giB {
			t.Errorf("%s: %s, %+v", version, fit.Verdict, fit.Evict)
		}
	}
}

// ollama#12323: Docker loses the GPU after hours. A probe that failed is not a card without room: nothing is known.
func TestLostGPUIsUnknownNotFull(t *testing.T) {
	node := gpuNode("alpha", 24, 23, small)
	node.Pools[1].Free = Bytes{}
	if fit := verdictOf(t, node, small.Name, 8192); fit.Verdict != FitUnknown || fit.Available.Known {
		t.Errorf("%s, available %v", fit.Verdict, fit.Available)
	}
}

// ollama#12062, gpustack#4848: an APU's graphics memory is taken for all that it has. The figures are those of a Strix Halo of
// 128 GB, 4 GiB carved out and 96 GiB of GTT, and of a Ryzen 7040 of 64 GB (fixtures amd-sysfs-strixhalo-gtt96, -phoenix).
func TestAPUHasMoreThanItsCarveOut(t *testing.T) {
	halo := unifiedNode("0.17.4", 107374182400, 100<<30, huge)
	if fit := verdictOf(t, halo, huge.Name, 8192); fit.Verdict != FitYes {
		t.Errorf("70b on 100 GiB: %s: %s", fit.Verdict, fit.Why)
	}
	phoenix := unifiedNode("0.17.4", 35728945152, 34244653056, big, huge)
	if fit := verdictOf(t, phoenix, big.Name, 8192); fit.Verdict != FitYes || fit.Need.Constant != 512<<20 {
		t.Errorf("32b on 33 GiB: %s: %s", fit.Verdict, fit.Why)
	}
	if fit := verdictOf(t, phoenix, huge.Name, 8192); fit.Verdict != FitNo {
		t.Errorf("70b on 33 GiB: %s: %s", fit.Verdict, fit.Why)
	}
}

// ollama#16462: of a Strix Halo's 96 GB, 27.5 were available. What is measured bounds what the total promises.
func TestTotalIsNotWhatIsAvailable(t *testing.T) {
	node := unifiedNode("0.30.1", 103079215104, 29527900160, huge, middle)
	if fit := verdictOf(t, node, huge.Name, 8192); fit.Verdict != FitBlocked || fit.Pools[0].Foreign != 103079215104-29527900160 {
		t.Errorf("70b: %s, foreign use %s", fit.Verdict, gib(fit.Pools[0].Foreign))
	}
	if fit := verdictOf(t, node, middle.Name, 8192); fit.Verdict != FitYes {
		t.Errorf("14b: %s: %s", fit.Verdict, fit.Why)
	}
}

// ROCm/legacy-rocm-build#6004: carve-out and GTT add up to more than the machine has. They are one pool here, and host memory
// beside it is not counted on top.
func TestUnifiedMemoryIsCountedOnce(t *testing.T) {
	node := unifiedNode("0.17.4", 40*giB, 40*giB, huge)
	node.Pools = append(node.Pools, Pool{ID: "gpu:0", Kind: PoolDevice, Total: known(40), Free: known(40)}) // of a device that cannot be used
	if fit := verdictOf(t, node, huge.Name, 8192); fit.Verdict != FitNo || len(fit.Pools) != 1 {
		t.Errorf("44 GiB on a machine of 40: %s over %d pools", fit.Verdict, len(fit.Pools))
	}
}

// ollama#16667: on a notebook the integrated GPU is chosen and the card dropped. The card's pool is the one that counts.
func TestDiscreteCardGoesBeforeIntegratedGPU(t *testing.T) {
	node := unifiedNode("0.17.4", 32*giB, 28*giB, small, big)
	node.Pools = append(node.Pools, Pool{ID: "gpu:0", Kind: PoolDevice, Total: known(8), Free: known(7.5)})
	node.Devices = append(node.Devices, Device{Name: "card", Pool: "gpu:0", Usable: true})
	if fit := verdictOf(t, node, small.Name, 8192); fit.Verdict != FitYes || fit.Pools[0].ID != "gpu:0" || fit.Available.N > 8*giB {
		t.Errorf("8b: %s in %s, %s available", fit.Verdict, fit.Pools[0].ID, gib(fit.Available.N))
	}
	if fit := verdictOf(t, node, big.Name, 8192); fit.Verdict != FitNo {
		t.Errorf("32b on a card of 8 GiB: %s", fit.Verdict)
	}
}

// ollama#11997: a larger context runs out of memory. The fit is made anew for each context.
func TestLargerContextIsAnotherFit(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big)
	if fit := verdictOf(t, node, big.Name, 8192); fit.Verdict != FitYes {
		t.Errorf("8192: %s: %s", fit.Verdict, fit.Why)
	}
	fit := verdictOf(t, node, big.Name, 32768) // what Ollama takes by default on a card of 24 GB: 29 GiB
	if fit.Verdict != FitNo || fit.Largest <= 8192 || fit.Largest >= 32768 {
		t.Errorf("32768: %s, largest %d", fit.Verdict, fit.Largest)
	}
}

// ollama#17201, #5136, #16866: graph and projector are not counted, and the load runs out of memory.
func TestProjectorAndGraphTakeMemory(t *testing.T) {
	shape := qwen14b
	shape.ProjectorBytes = 1300 << 20
	blind, seeing := model("blind:14b", qwen14b), model("seeing:14b", shape)
	room := float64(NeedFor(qwen14b, 8192, 1, NeedOptions{GPUs: 1, Rules: RulesClassic}).Total()+1<<30) / giB
	node := gpuNode("alpha", 24, room, blind, seeing)
	if fit := verdictOf(t, node, blind.Name, 8192); fit.Verdict != FitYes || fit.Need.Graph < 600<<20 {
		t.Errorf("without a projector: %s, graph %s", fit.Verdict, gib(fit.Need.Graph))
	}
	if fit := verdictOf(t, node, seeing.Name, 8192); fit.Verdict != FitBlocked {
		t.Errorf("with 1.3 GiB of projector and 1 GiB to spare: %s", fit.Verdict)
	}
}

// gguf-parser-go#21, #27: a projector estimated at 9.8 GiB more than its file, or at less. Ours stays between once and twice.
func TestProjectorIsNeitherForgottenNorInflated(t *testing.T) {
	for _, file := range []uint64{100 << 20, 600 << 20, 1400 << 20} {
		shape := llama8b
		shape.ProjectorBytes = file
		if got := NeedFor(shape, 131072, 4, NeedOptions{GPUs: 1}).Projector; got < file || got > 2*file {
			t.Errorf("a projector of %d bytes is counted with %d", file, got)
		}
	}
}

// gpustack#6044: memory that other programs use is ignored.
func TestForeignUseCounts(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big).load(loadedAt(small, 8192, 1, 0, time.Hour))
	node.Pools[1].Free.N -= 9 * giB // a game
	fit := verdictOf(t, node, big.Name, 8192)
	if fit.Verdict != FitBlocked {
		t.Errorf("%s: %s", fit.Verdict, fit.Why)
	}
	if got := float64(fit.Pools[0].Foreign) / giB; got < 9.4 || got > 9.6 { // 0.5 were in use before
		t.Errorf("%.2f GiB of foreign use", got)
	}
}

// ollama#13235: memory runs out when models are loaded one after another. What is being loaded counts before it shows.
func TestLoadInFlightCountsBeforeItShows(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, middle, big)
	node.Loading = &Claim{Digest: middle.Digest, Name: middle.Name, Context: 8192, Need: 11 * giB}
	if fit := verdictOf(t, node, big.Name, 8192); fit.Verdict != FitBlocked || fit.Pools[0].Claims != 11*giB {
		t.Errorf("%s with claims of %s", fit.Verdict, gib(fit.Pools[0].Claims))
	}
}

// A figure of free memory that is old may only lower what is available: it does not say what an unload would give back.
func TestStaleFreeMemoryMayOnlyLower(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 0, time.Hour))
	at := func(age time.Duration) Node {
		n := node
		n.Pools = append([]Pool{}, node.Pools...)
		n.Pools[1].FreeAge = age
		return n
	}
	if fit := verdictOf(t, at(FreshFor), middle.Name, 8192); fit.Verdict != FitEvict {
		t.Errorf("fresh: %s", fit.Verdict)
	}
	fit := verdictOf(t, at(FreshFor+time.Second), middle.Name, 8192)
	if fit.Verdict != FitBlocked || !fit.Pools[0].Stale {
		t.Errorf("old: %s", fit.Verdict)
	}
	if fresh, old := Available(at(0), "gpu0", nil, Limits{}), Available(at(time.Hour), "gpu0", nil, Limits{}); fresh != old {
		t.Errorf("without an unload: %v, and %v when it is old", fresh, old)
	}
	// it never makes a machine too small for good
	if fit.Empty != verdictOf(t, node, middle.Name, 8192).Empty || fit.Empty == 0 {
		t.Errorf("empty, it takes %d tokens", fit.Empty)
	}
}
