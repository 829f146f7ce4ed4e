package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// host is a node while a plan is made: the report plus what the plan has decided so far. Times count from now.
type host struct {
	*Node
	memory     *memory
	facts      *facts
	version    uint32       // see change
	described  uint32       // version of which known[0] is the condition
	known      [2]condition // the present one, and the one before
	conditions uint32       // that were numbered
	kind       PoolKind
	bandwidth  float64       // bytes per second, see measure
	residents  []resident    // Node.Loaded by index, then what is loading or planned
	servers    places        // when each of MaxCalls calls is expected to end; empty without a cap
	next       time.Duration // when the first of them is free, 0 without a cap
	calls      int           // that run now, those started by this plan included
	front      uint8         // least share of the tasks that could start here now, see rank
	token      time.Duration // until the load in flight is expected to end
	loading    *Claim        // the load in flight, this plan's included
	reserved   *group        // the group that the node is kept for
	suitors    []*group      // groups whose model is nowhere and for which this node is the best
	slack      slack         // see slack
	stay       []Stay        // models that stay, as of stayed
	stayed     uint32
	gone       []bool // scratch of makeRoom
	order      []int
	order32    []uint32 // scratch of describe
	asks       string   // digest of the model that makeRoom looks for room for
	clearing   *group   // the group that unloads decided or under way are for
}

// resident is a model in a node's memory, or on its way there.
type resident struct {
	digest  string
	context int
	slots   int
	embeds  bool // makes embeddings only
	busy    int  // attempts of ours, those started by this plan included
	pace    pace
	ends    places        // when each slot is expected to be free
	next    time.Duration // when the first of them is free
	coming  bool          // not in memory yet
	foreign bool          // not ours: never unloaded
	pinned  bool          // a person keeps it in memory: it goes only for itself at another context
	leaving bool          // unloaded by this plan or before, or to be drained: takes nothing new
	stuck   bool          // an unload left it in memory a moment ago, so it stays for now
	barred  bool          // takes nothing: it spilled there
	queued  bool          // some waiting task could run on it
	wanted  bool          // a waiting task of this priority or above counts on it
	since   time.Duration // how long it has been there
	idle    time.Duration // since its last use
}

// places is a range of Planner.ends: when each is free.
type places struct{ from, to int32 }

// furnish takes up the nodes, sorted, so that their order in the snapshot cannot matter.
func (p *Planner) furnish(nodes []Node) {
	p.nodes = p.nodes[:0]
	for i := range nodes {
		p.nodes = append(p.nodes, &nodes[i])
	}
	slices.SortStableFunc(p.nodes, func(a, b *Node) int { return strings.Compare(a.ID, b.ID) })
	for len(p.hosts) < len(p.nodes) {
		p.hosts = append(p.hosts, &host{})
	}
	p.hosts, p.ends, p.asked = p.hosts[:len(p.nodes)], p.ends[:0], false
	clear(p.warmth)
	p.learn()
	for i, node := range p.nodes {
		h := p.hosts[i]
		*h = host{Node: node, memory: h.facts.ledger(node, p), facts: h.facts, version: h.version + 1, described: h.described, known: h.known, conditions: h.conditions,
			loading: node.Loading, residents: h.residents[:0], gone: h.gone, order: h.order, order32: h.order32, suitors: h.suitors[:0]}
		h.kind = h.memory.kind()
	}
	for _, h := range p.hosts {
		p.occupy(h)
	}
}

// occupy notes what is loaded and running on a host, and until when.
func (p *Planner) occupy(h *host) {
	p.all = p.all[:0]
	for j := range h.Loaded {
		l := &h.Loaded[j]
		r := p.newResident(h, l.Digest, l.Context)
		r.busy, r.leaving, r.stuck = l.Busy, l.Leaving, l.Stuck > 0 && p.now.Before(l.Retry)
		r.foreign, r.pinned = l.Foreign, l.Pinned || p.limits.pinned(h, l.Name)
		r.since, r.idle = p.now.Sub(l.Since), p.now.Sub(l.LastUsed)
		r.barred = p.now.Before(h.shunnedUntil(l.Digest, l.Context))
		h.calls += l.Busy
		for _, context := range l.Affinity {
			p.warmth[context] = true
		}
		began := len(p.all)
		for k := range min(l.Busy, mostAtOnce) {
			left := r.pace.serve(Work{}, r.embeds) / 2 // on average
			if k < len(l.Calls) {
				left = r.pace.remaining(l.Calls[k], r.embeds, p.now)
			}
			p.all = append(p.all, left)
		}
		r.ends = p.book(p.all[began:], r.slots)
		h.residents = append(h.residents, r)
	}
	if c := h.loading; c != nil {
		r := p.newResident(h, c.Digest, c.Context)
		r.coming = true
		h.token = max(r.pace.load-p.age(c.Since), 500*time.Millisecond)
		p.all = append(p.all, h.token)
		h.calls++
		r.ends = p.book(nil, r.slots)
		p.fill(r.ends, h.token)
		h.residents = append(h.residents, r)
	}
	if h.MaxCalls > 0 {
		h.servers = p.book(p.all, min(h.MaxCalls, mostAtOnce))
	}
	p.settleEnds(h)
}

func (p *Planner) newResident(h *host, digest string, context int) resident {
	m, shape := findDigest(h.Node, digest), p.shapes.byDigest[digest]
	var weights, file uint64
	embeds := false
	if m != nil {
		file, weights, embeds = m.FileBytes, m.FileBytes, m.Embedding
	}
	if shape.believable() {
		weights = shape.WeightBytes
	}
	return resident{digest: digest, context: context, embeds: embeds, slots: min(slotsOf(h.Node, m, shape), mostAtOnce), pace: p.paceOf(h, digest, shape, weights, file)}
}

// book writes down when n places are free, of which some are taken until the given times. With more taken than there are,
// the first ends free nothing.
func (p *Planner) book(until []time.Duration, n int) places {
	if len(until) > 1 {
		slices.Sort(until)
	}
	from := int32(len(p.ends))
	for range n - len(until) {
		p.ends = append(p.ends, 0)
	}
	p.ends = append(p.ends, until[max(0, len(until)-n):]...)
	return places{from, int32(len(p.ends))}
}

// settleEnds notes when the first of a host's servers and of each resident's slots is free.
func (p *Planner) settleEnds(h *host) {
	_, h.next = p.first(h.servers)
	for j := range h.residents {
		_, h.residents[j].next = p.first(h.residents[j].ends)
	}
}

// first is the place that is free first, and when.
func (p *Planner) first(s places) (place int32, at time.Duration) {
	place, at = -1, 0
	for k := s.from; k < s.to; k++ {
		if place < 0 || p.ends[k] < at {
			place, at = k, p.ends[k]
		}
	}
	return place, at
}

// last is when all places are free.
func (p *Planner) last(s places) time.Duration {
	var at time.Duration
	for k := s.from; k < s.to; k++ {
		at = max(at, p.ends[k])
	}
	return at
}

// begins is when a call could begin on a resident.
func (h *host) begins(r *resident) time.Duration { return max(r.next, h.next) }

// take books a call on a resident. What waits for a model to come keeps nothing else from the node meanwhile.
func (p *Planner) take(h *host, r *resident, until time.Duration) {
	k, _ := p.first(r.ends)
	p.ends[k] = until
	_, r.next = p.first(r.ends)
	if h.MaxCalls > 0 && !r.coming {
		k, _ := p.first(h.servers)
		p.ends[k] = until
		_, h.next = p.first(h.servers)
	}
}

// name is what people call the node.
func (h *host) name() string { return cmp.Or(h.Name, h.ID) }

// find is the index of the resident that a fit can run on, leaving and coming ones included, or -1.
func (h *host) find(f *fit) int {
	for j := range h.residents {
		if r := &h.residents[j]; r.digest == f.digest && r.context == f.context {
			return j
		}
	}
	return -1
}

// loads reports whether the load in flight is the one that a fit waits for.
func (h *host) loads(f *fit) bool {
	return h.loading != nil && h.loading.Digest == f.digest && h.loading.Context == f.context
}

// pinned reports whether a person keeps the model in the memory of the node.
func (l Limits) pinned(h *host, model string) bool {
	nodes := byName(l.Pins, tagged(model))
	return slices.Contains(nodes, h.ID) || h.Name != "" && slices.Contains(nodes, h.Name)
}

// contextOf is the configured context of a model, 0 when there is none.
func (l Limits) contextOf(model string) int { return byName(l.Contexts, model) }

// byName looks a model up by its name with tag, or by that without when the tag is the default one.
func byName[V any](of map[string]V, tagged string) V {
	if v, ok := of[tagged]; ok {
		return v
	}
	base, _ := strings.CutSuffix(tagged, ":latest")
	return of[base]
}

// newHosts are the nodes of a snapshot, sorted by id, before any plan.
func newHosts(s Snapshot, limits Limits) ([]*host, catalog) {
	p := new(Planner)
	s.Waiting = nil
	p.begin(&s, limits)
	return p.hosts, p.shapes
}
