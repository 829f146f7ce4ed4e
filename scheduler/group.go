package scheduler

import (
	"slices"
	"strings"
	"time"
)

// host is a node while a plan is made: the report plus what the plan has decided so far.
type host struct {
	*Node
	memory   *memory
	busy     []int  // by Loaded index: attempts of ours, those started by this plan included
	wanted   []bool // by Loaded index: some waiting task could run on it
	stuck    []bool // by Loaded index: an unload left it in memory a moment ago, so it stays for now
	leaving  []bool // by Loaded index: unloaded by this plan or before, or to be drained for reserved
	reserved *group // the group that models are drained for here
	clearing *group // the group that unloads decided or under way are for
	loading  *Claim // the load in flight, this plan's included
	incoming int    // slots of the load in flight that no waiting task counts on yet
}

// newHosts sorts the nodes, so that their order in the snapshot cannot matter.
func newHosts(s Snapshot, limits Limits) ([]*host, catalog) {
	nodes := make([]*Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[i] = &s.Nodes[i]
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int { return strings.Compare(a.ID, b.ID) })
	shapes := catalogOf(nodes)
	hosts := make([]*host, len(nodes))
	for i, node := range nodes {
		h := &host{Node: node, memory: newMemory(node, shapes, limits), loading: node.Loading}
		h.busy, h.wanted, h.leaving = make([]int, len(node.Loaded)), make([]bool, len(node.Loaded)), make([]bool, len(node.Loaded))
		h.stuck = make([]bool, len(node.Loaded))
		for j, l := range node.Loaded {
			h.busy[j], h.leaving[j], h.stuck[j] = l.Busy, l.Leaving, l.Stuck > 0 && s.Now.Before(l.Retry)
		}
		if c := node.Loading; c != nil {
			h.incoming = slotsOf(node, findDigest(node, c.Digest), shapes.byDigest[c.Digest])
		}
		hosts[i] = h
	}
	return hosts, shapes
}

// name is what people call the node.
func (h *host) name() string {
	if h.Name != "" {
		return h.Name
	}
	return h.ID
}

// running is the number of attempts of ours on the node.
func (h *host) running() int {
	sum := 0
	for _, n := range h.busy {
		sum += n
	}
	return sum
}

// find is the index of the loaded model that a fit can run on, leaving ones included, or -1.
func (h *host) find(f *fit) int {
	return slices.IndexFunc(h.Loaded, func(l Loaded) bool { return l.Digest == f.digest && l.Context == f.context })
}

// loads reports whether the load in flight is the one that a fit waits for.
func (h *host) loads(f *fit) bool {
	return h.loading != nil && h.loading.Digest == f.digest && h.loading.Context == f.context
}

// groupKey is all that a decision about a task depends on, apart from its age.
type groupKey struct {
	model   string
	context int
	avoid   string
	pinned  string
	prefer  string
	embed   bool
}

// group is the waiting tasks that look the same to every node; decisions are made once for all of them.
type group struct {
	key        groupKey
	avoid      []string
	fits       []*fit // by host index
	candidates []int  // hosts that may take it, ascending
	oldest     time.Time
	waiting    int          // tasks not started by this plan
	served     int          // of those, tasks that a load in flight will serve
	first      string       // key of the oldest task not started
	full       bool         // no free slot anywhere; in one plan slots only become fewer
	why        *Explanation // for all that wait
}

// newGroups sorts the waiting tasks into groups, in the order of the oldest task of each. of[i] is the group of task i.
func (p *planner) newGroups(tasks []Task) {
	type fitKey struct {
		model   string
		context int
	}
	known := map[groupKey]*group{}
	fits := map[fitKey][]*fit{}
	for _, t := range tasks {
		key := groupKey{model: tagged(t.Model), context: t.Context, avoid: avoidKey(t.Avoid), pinned: t.Pinned, prefer: t.Prefer, embed: t.Embed}
		g := known[key]
		if g == nil {
			fk := fitKey{key.model, key.context}
			if fits[fk] == nil {
				fits[fk] = p.fitsFor(key.model, key.context)
			}
			g = &group{key: key, avoid: t.Avoid, fits: fits[fk], oldest: t.Ready}
			p.choose(g)
			known[key] = g
			p.groups = append(p.groups, g)
		}
		g.waiting++
		p.of = append(p.of, g)
	}
}

func (p *planner) fitsFor(model string, context int) []*fit {
	fits := make([]*fit, len(p.hosts))
	for i, h := range p.hosts {
		fits[i] = fitOn(h, model, context, p.shapes, p.limits)
	}
	return fits
}

// avoidKey does not depend on the order of the node ids.
func avoidKey(ids []string) string {
	if len(ids) < 2 {
		return strings.Join(ids, "")
	}
	return strings.Join(slices.Sorted(slices.Values(ids)), "\x00")
}

// choose finds the nodes that may take a group. Those that an earlier attempt failed on count only when there is no
// other.
func (p *planner) choose(g *group) {
	var avoided []int
	for i, h := range p.hosts {
		if !p.eligible(g, i) {
			continue
		}
		if slices.Contains(g.avoid, h.ID) {
			avoided = append(avoided, i)
		} else {
			g.candidates = append(g.candidates, i)
		}
	}
	if len(g.candidates) == 0 {
		g.candidates = avoided
	}
}

// eligible (rule 4) reports whether a node could run a group now or after loads and unloads. A model that is loaded needs no
// memory figures. A pinned task may go back to a draining node that still has its model: it runs there already.
func (p *planner) eligible(g *group, i int) bool {
	h, f := p.hosts[i], g.fits[i]
	loaded := h.runs(f)
	switch {
	case g.key.pinned != "" && g.key.pinned != h.ID:
		return false
	case h.State == NodeDraining && g.key.pinned == h.ID && loaded:
		return true
	case h.State != NodeUp, f.model == nil, f.wrongKind(g.key.embed), p.shunned(h, f):
		return false
	default:
		return loaded || h.loads(f) || f.room.ok && !h.blocked(f)
	}
}

// runs reports whether the model is loaded at the right context and, as far as the node can tell, wholly on its devices.
func (h *host) runs(f *fit) bool {
	j := h.find(f)
	return j >= 0 && (len(f.needs) == 0 || f.room.ok || !h.memory.devices || h.Loaded[j].VRAMBytes >= h.Loaded[j].SizeBytes)
}

// wrongKind: an embedding model answers no generate call.
func (f *fit) wrongKind(embed bool) bool {
	return f.model != nil && f.model.Embedding && !embed
}

// shunned: the model spilled or ran out of memory there a short while ago.
func (p *planner) shunned(h *host, f *fit) bool {
	until, ok := h.Avoid[f.digest]
	return ok && p.now.Before(until)
}

// age is how long the oldest task of the group has waited; 0 when that is not known.
func (p *planner) age(g *group) time.Duration {
	if g.oldest.IsZero() {
		return 0
	}
	return p.now.Sub(g.oldest)
}
