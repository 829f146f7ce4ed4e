package scheduler

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// view is how the nodes look to one model at one context, as tasks ask for it. It is kept from plan to plan.
type view struct {
	model   string        // with tag
	digest  string        // that the run means, empty for any of that name
	asked   int           // context that tasks ask for
	context int           // tokens per slot that they mean, 0 for the default
	embed   bool          // for embeddings
	fits    []*fit        // by host
	sites   []site        // the hosts that may take it, in their order
	hot     []int32       // indices of sites where it is in memory or coming
	at      []int32       // by host: index of its site, or -1
	groups  []*group      // of the tasks that ask for it
	plan    uint64        // that it was looked at for
	lore    uint64        // Planner.lore that fits are true for
	meant   int           // context that fits are true for
	from    []*facts      // by host: what its fit was computed from
	all     sizes         // of the tasks that ask for it
	why     *Explanation  // for all that wait and have nothing special about them
	sights  [][2]sight    // by host: what was found last, and before
	final   []NodeVerdict // see finalVerdicts
}

// site is a host that a model may run on.
type site struct {
	host   int
	fit    *fit
	pace   pace
	serve  time.Duration // a call of the mean size of all that ask for the model
	at     int           // index of the resident that it is, or -1
	option option        // to load it there, as of seen
	seen   uint64
}

// viewOf is the view of the model that a task asks for.
func (p *Planner) viewOf(t *Task) *view {
	for _, v := range p.views[t.Model] {
		if v.meets(t) {
			if v.plan != p.plans {
				p.look(v)
			}
			return v
		}
	}
	v := &view{model: tagged(t.Model), digest: t.Digest, asked: t.Context, embed: t.Embed}
	p.views[t.Model] = append(p.views[t.Model], v)
	p.look(v)
	return v
}

// meets reports whether a task that names the model means the same by it.
func (v *view) meets(t *Task) bool {
	return v.asked == t.Context && v.embed == t.Embed && v.digest == t.Digest
}

// look takes a new look at the nodes. What a model needs is computed again only where something changed.
func (p *Planner) look(v *view) {
	v.plan, v.context, v.why, v.final = p.plans, v.asked, nil, nil
	if v.context <= 0 {
		v.context = p.limits.contextOf(v.model)
	}
	v.sites, v.hot, v.at, v.groups, v.all = v.sites[:0], v.hot[:0], v.at[:0], v.groups[:0], sizes{}
	if v.lore != p.lore || v.meant != v.context || len(v.fits) != len(p.hosts) {
		v.lore, v.meant, v.fits, v.from = p.lore, v.context, make([]*fit, len(p.hosts)), make([]*facts, len(p.hosts))
		v.sights = make([][2]sight, len(p.hosts))
	}
	for i, h := range p.hosts {
		if v.from[i] != h.facts {
			v.from[i], v.fits[i] = h.facts, fitOn(h, v.model, v.digest, v.context, p.shapes, p.limits)
			v.sights[i] = [2]sight{}
		}
		v.at = append(v.at, -1)
		f := v.fits[i]
		j := h.find(f)
		if !p.eligible(h, f, j, v.embed, "") {
			continue
		}
		n := len(v.sites)
		v.at[i] = int32(n)
		if j >= 0 {
			v.hot = append(v.hot, int32(n))
		}
		if n < cap(v.sites) {
			v.sites = v.sites[:n+1]
		} else {
			v.sites = append(v.sites, site{})
		}
		p.settleSite(&v.sites[n], i, f, j)
	}
}

// warmUp notes that the model is coming to a site.
func (v *view) warmUp(s *site) { v.hot = append(v.hot, v.at[s.host]) }

// settle computes what depends on the mean size of the tasks that ask for the model.
func (v *view) settle() {
	mean := v.all.mean()
	for k := range v.sites {
		s := &v.sites[k]
		s.serve = s.pace.serve(mean, v.embed)
	}
}

// settleSite fills in a site, which may be one of an earlier plan; what it offered then does not count.
func (p *Planner) settleSite(s *site, i int, f *fit, resident int) {
	h := p.hosts[i]
	s.host, s.fit, s.at, s.seen = i, f, resident, 0
	if resident >= 0 {
		s.pace = h.residents[resident].pace
		return
	}
	var file uint64
	if f.model != nil {
		file = f.model.FileBytes
	}
	s.pace = p.paceOf(h, f.digest, f.shape, f.weights, file)
}

// eligible (rule 4) reports whether a node could run a model now or after loads and unloads. A model that is loaded needs no
// memory figures. A task that is pinned to a node may go back to it while it drains and still has its model: it runs there already.
func (p *Planner) eligible(h *host, f *fit, resident int, embed bool, pinned string) bool {
	loaded := h.runs(f, resident)
	switch {
	case pinned != "" && pinned != h.ID:
		return false
	case h.State == NodeDraining && pinned == h.ID && loaded:
		return true
	case h.State != NodeUp, f.model == nil, f.wrongKind(embed), p.shunned(h, f):
		return false
	default:
		return loaded || h.loads(f) || f.room.ok && !h.blocked(f)
	}
}

// facts is what the fits of a node depend on, kept from plan to plan.
type facts struct {
	node    Node
	models  []Model
	limits  Limits
	sizes   map[sizeKey][2]uint64 // claims and what is given back, of loaded models
	memory  *memory               // as of the plan before
	ledgers uint64                // how often it was computed
	loaded  []Loaded              // that it counts
	lore    uint64                // Planner.lore that it is true for
}

// The bounds of what is kept from plan to plan.
const (
	mostSizes = 256 // of loaded models, per node
	mostViews = 256
)

// learn takes up the shapes of the models and the facts about the nodes, and keeps what is as it was.
func (p *Planner) learn() {
	p.plans++
	if len(p.facts) > 2*len(p.nodes)+16 {
		clear(p.facts)
	}
	if len(p.views) > mostViews {
		clear(p.views)
	}
	same := len(p.nodes) == len(p.hosts)
	for i, n := range p.nodes {
		known := p.facts[n.ID]
		fresh, shaped := p.recall(n)
		same = same && shaped && known == fresh && p.hosts[i].facts == fresh
		p.hosts[i].facts = fresh
	}
	if same && p.lore > 0 {
		return
	}
	before := p.shapes
	p.shapes = catalogOf(p.nodes)
	for digest, shape := range p.shapes.byDigest {
		if old := before.byDigest[digest]; old != nil && (old == shape || reflect.DeepEqual(old, shape)) {
			p.shapes.byDigest[digest] = old
		}
	}
	if p.lore == 0 || !maps.Equal(before.byDigest, p.shapes.byDigest) || !maps.Equal(before.digestByName, p.shapes.digestByName) {
		p.lore++
	}
}

// recall finds what is still true of what was known of a node. shaped says that the shapes of its models are, which become known
// after everything else about them.
func (p *Planner) recall(n *Node) (k *facts, shaped bool) {
	k = p.facts[n.ID]
	if k != nil && k.same(n, &p.limits) {
		if len(k.sizes) > mostSizes {
			clear(k.sizes)
		}
		shaped = true
		for i := range k.models {
			shaped = shaped && k.models[i].Shape == n.Models[i].Shape
			k.models[i].Shape = n.Models[i].Shape
		}
		return k, shaped
	}
	k = &facts{node: *n, models: slices.Clone(n.Models), limits: p.limits, sizes: map[sizeKey][2]uint64{}}
	k.node.Pools, k.node.Devices, k.node.Margins = slices.Clone(n.Pools), slices.Clone(n.Devices), maps.Clone(n.Margins)
	p.facts[n.ID] = k
	return k, false
}

// ledger is the memory of the node, computed again only when a figure changed.
func (k *facts) ledger(n *Node, p *Planner) *memory {
	sameSize := func(a, b Loaded) bool {
		return a.Digest == b.Digest && a.Context == b.Context && a.SizeBytes == b.SizeBytes && a.VRAMBytes == b.VRAMBytes && a.Observed == b.Observed
	}
	sameFigures := func(a, b Pool) bool {
		fresh := a.FreeAge <= FreshFor
		a.FreeAge = b.FreeAge
		return a == b && fresh == (b.FreeAge <= FreshFor)
	}
	if k.memory == nil || k.lore != p.lore || !slices.EqualFunc(k.node.Pools, n.Pools, sameFigures) || !slices.EqualFunc(k.loaded, n.Loaded, sameSize) {
		k.memory = recallMemory(n, p.shapes, p.limits, k.sizes)
		k.ledgers++
		k.lore, k.loaded, k.node.Pools = p.lore, append(k.loaded[:0], n.Loaded...), append(k.node.Pools[:0], n.Pools...)
	}
	k.memory.loading = 0
	if n.Loading != nil {
		k.memory.loading = n.Loading.Need
	}
	return k.memory
}

func (k *facts) same(n *Node, l *Limits) bool {
	samePool := func(a, b Pool) bool {
		return a.ID == b.ID && a.Kind == b.Kind && a.Total == b.Total && a.Reserve == b.Reserve && a.Free.Known == b.Free.Known
	}
	sameModel := func(a, b Model) bool {
		return a.Name == b.Name && a.Digest == b.Digest && a.FileBytes == b.FileBytes && a.Embedding == b.Embedding
	}
	a := &k.node
	return a.OllamaVersion == n.OllamaVersion && a.Slots == n.Slots && a.KVType == n.KVType && a.GPUOverhead == n.GPUOverhead &&
		k.limits.ReserveHost == l.ReserveHost && k.limits.ReserveDevice == l.ReserveDevice && k.limits.DefaultContext == l.DefaultContext &&
		slices.EqualFunc(a.Pools, n.Pools, samePool) && slices.Equal(a.Devices, n.Devices) && maps.Equal(a.Margins, n.Margins) &&
		slices.EqualFunc(k.models, n.Models, sameModel)
}
