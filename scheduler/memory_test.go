package scheduler

import (
	"testing"
	"time"
)

func TestAvailable(t *testing.T) {
	// 24 GiB card, 0.25 GiB reserve, a model that claims 21.8 GiB (margin included) and gives 21.2 GiB back.
	loaded := loadedAt(big, 8192, 1, 0, time.Hour)
	claim, frees := NeedFor(qwen32b, 8192, 1, NeedOptions{GPUs: 1}).Total(), loaded.SizeBytes
	card := func(free float64) Node {
		n := gpuNode("alpha", 24, free, big)
		n.Loaded = []Loaded{loaded}
		return n
	}
	boastful := card(1)
	boastful.Loaded[0].SizeBytes, boastful.Loaded[0].VRAMBytes = 23*giB, 23*giB
	modest := card(1)
	modest.Loaded[0].SizeBytes, modest.Loaded[0].VRAMBytes = frees/8, frees/8
	for _, c := range []struct {
		name  string
		node  Node
		evict []string
		want  uint64
	}{
		{"what stays counts with Ollama's figure when that is larger", boastful, nil, giB - 256<<20},
		{"what goes gives back Ollama's figure when that is larger", boastful, []string{big.Digest}, 24*giB - 256<<20},
		{"what goes gives back ours when Ollama shows a fraction", modest, []string{big.Digest}, giB + frees},
		{"the ledger bounds: measured free is stale", card(23), nil, 24*giB - 256<<20 - claim},
		{"measured free bounds: other programs are using the card", card(1), nil, giB},
		{"evicting gives back what Ollama reserved", card(1), []string{big.Digest}, giB + frees},
		{"evicting cannot give more than the card has", card(23), []string{big.Digest}, 24*giB - 256<<20},
		{"a load in flight counts", withLoading(card(23), giB), nil, 24*giB - 256<<20 - claim - giB},
		{"never below zero", withLoading(card(0), 100*giB), nil, 0},
	} {
		if got := Available(c.node, "gpu0", c.evict, Limits{}); !got.Known || got.N != c.want {
			t.Errorf("%s: %s, want %s", c.name, gib(got.N), gib(c.want))
		}
	}
}

func withLoading(n Node, need uint64) Node {
	n.Loading = &Claim{Digest: "sha256:x", Name: "x", Need: need}
	return n
}

func TestUnknownStaysUnknown(t *testing.T) {
	noFree, noTotal := gpuNode("a", 24, 23, small), gpuNode("a", 24, 23, small)
	noFree.Pools[1].Free, noTotal.Pools[1].Total = Bytes{}, Bytes{}
	for name, n := range map[string]Node{"no free": noFree, "no total": noTotal, "no pools": {ID: "a", State: NodeUp, Models: []Model{small}}, "nothing": {}} {
		if got := Available(n, "gpu0", nil, Limits{}); got.Known {
			t.Errorf("%s: available is %v, want unknown", name, got)
		}
	}
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), noFree), "wait facts llama3.1:8b/1")
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), noFree, gpuNode("b", 24, 23, small)), "load b llama3.1:8b", "wait load llama3.1:8b/1")
	shapeless := gpuNode("a", 24, 23, Model{Name: "llama3.1:8b", Digest: small.Digest})
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), shapeless), "wait facts llama3.1:8b/1")
	shapeless.Loaded = []Loaded{loadedAt(small, 8192, 1, 0, 0)}
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), shapeless), "start a llama3.1:8b/1")
	// a shape belongs to the digest, whichever node reported it
	shapeless.Loaded = nil
	other := gpuNode("b", 24, 23, small)
	other.State = NodeLost
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), shapeless, other), "load a llama3.1:8b", "wait load llama3.1:8b/1")
}

func TestReserves(t *testing.T) {
	for _, c := range []struct {
		pool   Pool
		limits Limits
		want   uint64
	}{
		{Pool{Kind: PoolHost, Total: known(40)}, Limits{}, 4 * giB},
		{Pool{Kind: PoolUnified, Total: known(128)}, Limits{}, 8 * giB},
		{Pool{Kind: PoolDevice, Total: known(24)}, Limits{}, 256 << 20},
		{Pool{Kind: PoolHost, Total: known(40)}, Limits{ReserveHost: giB}, giB},
		{Pool{Kind: PoolDevice, Total: known(24)}, Limits{ReserveDevice: giB}, giB},
	} {
		if got := c.limits.reserve(c.pool); got != c.want {
			t.Errorf("%s of %s: reserve %s, want %s", c.pool.Kind, gib(c.pool.Total.N), gib(got), gib(c.want))
		}
	}
}

// ollama issue 13227: a model that runs on the CPU holds no device memory, and evicting it gives none back.
func TestHostAndDeviceMemoryAreSeparate(t *testing.T) {
	onCPU := loadedAt(big, 8192, 1, 0, time.Hour)
	onCPU.VRAMBytes = 0
	node := gpuNode("alpha", 24, 23.5, big, middle)
	node.Loaded = []Loaded{onCPU}
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), node), "load alpha qwen2.5:14b", "wait load qwen2.5:14b/1")
	node.Pools[1].Free = known(5) // a game
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), node), "wait memory qwen2.5:14b/1")
}

func TestPoolsThatModelsGoTo(t *testing.T) {
	apple := Node{
		ID: "mac", Name: "mac", State: NodeUp, OllamaVersion: "0.17.4", Models: []Model{small},
		Pools:   []Pool{{ID: "host", Kind: PoolUnified, Total: known(16), Free: known(12)}},
		Devices: []Device{{Name: "Apple M2", Pool: "host", Usable: true}},
	}
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), apple), "load mac llama3.1:8b", "wait load llama3.1:8b/1")
	cpu := hostNode("cpu", 16, 12, small)
	plan := place(t, tasks(1, "llama3.1:8b", 0), cpu)
	need := NeedFor(llama8b, 8192, 1, NeedOptions{})
	if plan.Decisions[0].Need != need.Total() {
		t.Errorf("claims %s on the host, want %s: no per-GPU constant there", gib(plan.Decisions[0].Need), gib(need.Total()))
	}
	// a card that cannot be used leaves the host; an integrated GPU beside a usable card is not counted
	broken := gpuNode("broken", 24, 23.5, huge)
	broken.Devices[0].Usable = false
	expect(t, place(t, tasks(1, "llama3.3:70b", 0), broken), "load broken llama3.3:70b", "wait load llama3.3:70b/1")
	mixed := gpuNode("mixed", 24, 23.5, huge)
	mixed.Pools[0].Kind = PoolUnified
	mixed.Devices = append(mixed.Devices, Device{Name: "integrated", Pool: "host", Usable: true})
	expect(t, place(t, tasks(1, "llama3.3:70b", 0), mixed), "impossible llama3.3:70b/1")
}

func twoCards(free0, free1 float64, models ...Model) Node {
	n := gpuNode("alpha", 24, free0, models...)
	n.Pools = append(n.Pools, Pool{ID: "gpu1", Kind: PoolDevice, Total: known(24), Free: known(free1)})
	n.Devices = append(n.Devices, Device{Name: "card", Pool: "gpu1", Usable: true})
	return n
}

func TestSeveralCards(t *testing.T) {
	// 43.0 GiB before margin on one card; on two it adds a constant and a graph
	two := twoCards(23.9, 23.9, huge, big, middle)
	task := tasks(1, "llama3.3:70b", 0)
	task[0].Context = 4096
	expect(t, place(t, task, two), "load alpha llama3.3:70b", "wait load llama3.3:70b/1")
	// layers are not divisible: what would just fill both cards together does not go, one more layer does
	need := NeedFor(llama70b, 4096, 1, NeedOptions{GPUs: 2, Rules: RulesClassic}).Total()
	for _, c := range []struct {
		spare uint64
		want  string
	}{{llama70b.LayerBytes[0], "load alpha llama3.3:70b"}, {0, "wait memory llama3.3:70b/1"}} {
		exact := twoCards(0, 0, huge)
		exact.Pools[1].Free.N, exact.Pools[2].Free.N = need/2, need-need/2+c.spare
		if got := actions(place(t, task, exact)); got[0] != c.want {
			t.Errorf("%d bytes beyond the need: %v, want %q", c.spare, got, c.want)
		}
	}
	// what does not fit one card's rest is not split by counting both rests as one without slack
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), twoCards(5.5, 5.5, middle)), "wait memory qwen2.5:14b/1")
	// the model in use sits where the memory is in use: the other card is free
	busy := twoCards(2.6, 23.9, big, middle)
	busy.Loaded = []Loaded{loadedAt(big, 8192, 1, 1, time.Hour)}
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), busy), "load alpha qwen2.5:14b", "wait load qwen2.5:14b/1")
	// Ollama claims more than the cards show as used: what a card cannot hold is not forgotten
	over := twoCards(0, 6, model("qwen2.5:7b", qwen7b), middle, small)
	over.Pools[1].Total, over.Pools[2].Total = known(4), known(11)
	over.Loaded = []Loaded{loadedAt(middle, 4096, 1, 1, time.Hour), loadedAt(small, 4096, 1, 1, time.Hour)}
	expect(t, place(t, tasks(1, "qwen2.5:7b", 0), over), "wait memory qwen2.5:7b/1")
	// both cards taken: the idle one of the two goes
	full := twoCards(2.6, 13.4, big, middle, small)
	full.Loaded = []Loaded{loadedAt(big, 8192, 1, 1, time.Hour), loadedAt(middle, 8192, 1, 0, time.Hour)}
	other := model("other:14b", qwen14b)
	full.Models = append(full.Models, other)
	full.Pools[2].Free = known(5)
	expect(t, place(t, tasks(1, "other:14b", 0), full), "unload alpha qwen2.5:14b", "wait load other:14b/1")
}
