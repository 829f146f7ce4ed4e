package scheduler

import (
	"cmp"
	"time"
)

// FreshFor is how long a figure of free memory counts in full: three reports at the usual heartbeat. An older one may
// only lower what is available: it still bounds it, but what an eviction gives back is not added, because other programs
// may have taken that since. It never becomes zero, and it says nothing about an empty machine.
const FreshFor = 10 * time.Second

// Defaults of Limits, in bytes.
const (
	reserveHostMost = 8 << 30
	reserveDevice   = 256 << 20
)

// reserve is what has to stay free in a pool, in bytes.
func (l Limits) reserve(p Pool) uint64 {
	if p.Reserve > 0 {
		return p.Reserve
	}
	if p.Kind == PoolDevice {
		return cmp.Or(l.ReserveDevice, reserveDevice)
	}
	return cmp.Or(l.ReserveHost, min(p.Total.N/10, reserveHostMost))
}

// Available (rule 2) is what a model could take in a pool of a node once the models with the evictable digests are gone:
// min(measured free + what they give back, total − remaining claims − reserve). It is unknown when the pool's total or
// free memory is unknown, or when the pool is not one that models of this node go to.
func Available(node Node, pool string, evictable []string, limits Limits) Bytes {
	m := newMemory(&node, catalogOf([]*Node{&node}), limits)
	if !m.known {
		return Bytes{}
	}
	gone := make([]bool, len(node.Loaded))
	for i := range node.Loaded {
		for _, digest := range evictable {
			gone[i] = gone[i] || node.Loaded[i].Digest == digest
		}
	}
	for p := range m.pools {
		if m.pools[p].ID == pool {
			return Bytes{N: m.available(p, gone), Known: true}
		}
	}
	return Bytes{}
}

// memory is the claim ledger of one node: the pools that its models go to, and what each loaded model holds there.
type memory struct {
	pools   []Pool
	devices bool // pools belong to accelerators (device or unified), so the per-GPU constant applies
	metal   bool // the pool is unified
	known   bool // total and free of every pool are known
	limits  Limits
	held    []holding // one per Node.Loaded
	loading uint64    // claim of the load in flight
}

// holding is what one loaded model holds, by pool. Ollama's figure, ours and what was measured around the load may differ, and
// Ollama's can be a fraction of the truth (ollama#17251): the largest counts, for what stays and for what goes. Counting too
// much as given back costs an unload in vain, because the load itself waits for what is measured after it; too little would
// leave a run waiting for ever.
type holding struct {
	claim []uint64
	frees []uint64
}

// modelPools are the pools that Ollama puts a model of this node into: those of usable discrete devices, else those of
// usable unified ones, else the host's.
func modelPools(node *Node) (pools []Pool, kind PoolKind) {
	for _, kind := range []PoolKind{PoolDevice, PoolUnified} {
		for _, p := range node.Pools {
			if p.Kind == kind && hasUsable(node, p.ID) {
				pools = append(pools, p)
			}
		}
		if len(pools) > 0 {
			return pools, kind
		}
	}
	for _, p := range node.Pools {
		if p.Kind != PoolDevice {
			return []Pool{p}, PoolHost
		}
	}
	return nil, PoolHost
}

func hasUsable(node *Node, pool string) bool {
	for _, d := range node.Devices {
		if d.Pool == pool && d.Usable {
			return true
		}
	}
	return false
}

func newMemory(node *Node, shapes catalog, limits Limits) *memory {
	return recallMemory(node, shapes, limits, map[sizeKey][2]uint64{})
}

// sizeKey is what the size of a loaded model depends on, beside the facts about its node.
type sizeKey struct {
	digest     string
	context    int
	size, vram uint64
	observed   Bytes
	shape      *Shape
}

// recallMemory is newMemory with the sizes that were computed before for a node of which the same facts are known.
func recallMemory(node *Node, shapes catalog, limits Limits, sizes map[sizeKey][2]uint64) *memory {
	pools, kind := modelPools(node)
	m := &memory{pools: pools, devices: kind != PoolHost, metal: kind == PoolUnified, known: len(pools) > 0, limits: limits}
	for _, p := range pools {
		m.known = m.known && p.Total.Known && p.Free.Known
	}
	if node.Loading != nil {
		m.loading = node.Loading.Need
	}
	m.attribute(node, shapes, sizes)
	return m
}

// kind is of the pools that models go to.
func (m *memory) kind() PoolKind {
	switch {
	case !m.devices:
		return PoolHost
	case m.metal:
		return PoolUnified
	default:
		return PoolDevice
	}
}

// attribute says which pool each loaded model sits in. Ollama does not tell; with several pools it is inferred from
// what is in use in each: the largest model first, into the pool whose use it matches most closely.
func (m *memory) attribute(node *Node, shapes catalog, known map[sizeKey][2]uint64) {
	used := make([]uint64, len(m.pools))
	for p, pool := range m.pools {
		used[p] = below(pool.Total.N, pool.Free.N)
	}
	m.held = make([]holding, len(node.Loaded))
	sizes := make([][2]uint64, len(node.Loaded))
	for i := range node.Loaded {
		l := &node.Loaded[i]
		key := sizeKey{l.Digest, l.Context, l.SizeBytes, l.VRAMBytes, l.Observed, shapes.byDigest[l.Digest]}
		size, ok := known[key]
		if !ok {
			size[0], size[1] = m.sizes(node, l, shapes)
			known[key] = size
		}
		sizes[i] = size
	}
	for range node.Loaded {
		next := -1
		for i := range node.Loaded {
			if m.held[i].claim == nil && (next < 0 || sizes[i][0] > sizes[next][0]) {
				next = i
			}
		}
		m.held[next] = spread(sizes[next][0], sizes[next][1], used)
	}
}

// spread puts a model into the pool with the smallest use that covers it, else piece by piece into the fullest ones. It
// takes what it attributes out of used.
func spread(claim, frees uint64, used []uint64) holding {
	h := holding{claim: make([]uint64, len(used)), frees: make([]uint64, len(used))}
	for rest, round := claim, 0; rest > 0 && round < len(used); round++ {
		best := -1
		for p := range used {
			switch {
			case h.claim[p] > 0:
			case best < 0,
				used[p] >= rest && (used[best] < rest || used[p] < used[best]),
				used[best] < rest && used[p] > used[best]:
				best = p
			}
		}
		take := min(rest, used[best])
		if round == len(used)-1 || take == 0 {
			take = rest // nothing measured shows it yet: it still counts
		}
		h.claim[best] += take
		used[best] = below(used[best], take)
		rest -= take
	}
	for p := range used {
		if claim > 0 {
			h.frees[p] = toBytes(float64(frees) * float64(h.claim[p]) / float64(claim))
		}
	}
	return h
}

// sizes are what a loaded model holds (the largest of Ollama's figure, ours with its margin and the device's own, measured
// around the load) and what its end gives back (the same, without margin). Since 0.30 Ollama's own figure can be far off in
// either direction, so it only counts when there is no other. A model that sits wholly in host memory holds nothing on a
// device pool.
func (m *memory) sizes(node *Node, l *Loaded, shapes catalog) (claim, frees uint64) {
	reported := l.SizeBytes
	if m.devices && !m.metal && l.SizeBytes > 0 {
		if l.VRAMBytes == 0 && l.Observed.N == 0 {
			return 0, 0
		}
		reported = l.VRAMBytes
	}
	shape := shapes.byDigest[l.Digest]
	if !shape.believable() {
		return max(reported, l.Observed.N), max(reported, l.Observed.N)
	}
	slots := slotsOf(node, findDigest(node, l.Digest), shape)
	need := NeedFor(*shape, l.Context, slots, m.options(node, 1, l.Digest, l.Context, slots))
	claim, frees = max(need.Total(), l.Observed.N), max(need.Total()-need.Margin, l.Observed.N)
	if RuleSet(node.OllamaVersion) == RulesRunner {
		return claim, frees
	}
	return max(claim, reported), max(frees, reported)
}

// options are the NeedOptions for a load on n devices of the node.
func (m *memory) options(node *Node, n int, digest string, context, slots int) NeedOptions {
	if !m.devices {
		n = 0
	}
	return NeedOptions{GPUs: n, Metal: m.metal, KVType: node.KVType, Overhead: node.GPUOverhead, Rules: knownRules(node.OllamaVersion),
		Learned: node.learned(digest, context, slots)}
}

// available is what pool p could give to a new model, in bytes, once the models marked as gone are unloaded.
func (m *memory) available(p int, gone []bool) uint64 {
	ledger := m.empty(p)
	for i, h := range m.held {
		if !gone[i] {
			ledger = below(ledger, h.claim[p])
		}
	}
	return min(m.freeAfter(p, gone), below(ledger, m.loading))
}

// freeAfter is what will be measured as free in pool p once the models marked as gone are unloaded, in bytes.
func (m *memory) freeAfter(p int, gone []bool) uint64 {
	free, fresh := m.pools[p].Free.N, m.pools[p].FreeAge <= FreshFor
	for i, h := range m.held {
		if gone[i] && fresh {
			free += h.frees[p]
		}
	}
	return min(free, m.pools[p].Total.N)
}

// empty is what pool p could give on a node without any model and any other program, in bytes.
func (m *memory) empty(p int) uint64 {
	return below(m.pools[p].Total.N, m.limits.reserve(m.pools[p]))
}

// below is a − b, but never less than zero.
func below(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}

// empties are the pools of an empty node, in bytes.
func (m *memory) empties() []uint64 {
	return m.each(m.empty)
}

// availables are the pools once the models marked as gone are unloaded, in bytes.
func (m *memory) availables(gone []bool) []uint64 {
	return m.each(func(p int) uint64 { return m.available(p, gone) })
}

func (m *memory) each(f func(p int) uint64) []uint64 {
	out := make([]uint64, len(m.pools))
	for p := range out {
		out[p] = f(p)
	}
	return out
}

// unclaimed is what the claims leave of all pools together, in bytes. With several pools it holds even where attribute
// put a model into a pool that is too small for it.
func (m *memory) unclaimed(gone []bool) uint64 {
	var empty, claimed uint64
	for p := range m.pools {
		empty += m.empty(p)
		for i, h := range m.held {
			if !gone[i] {
				claimed += h.claim[p]
			}
		}
	}
	return below(empty, claimed+m.loading)
}

// freeSum is the free memory that Ollama will see once the models marked as gone are unloaded, in bytes.
func (m *memory) freeSum(gone []bool) uint64 {
	var sum uint64
	for p := range m.pools {
		sum += m.freeAfter(p, gone)
	}
	return sum
}
