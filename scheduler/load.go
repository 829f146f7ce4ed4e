package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// option is what it would take to have a group's model on a site where it is not.
type option struct {
	ok    bool
	now   bool // can be begun at once
	way   way
	ready time.Duration // when the model would be loaded
	cost  time.Duration // what reloading what it displaces is expected to cost
}

// keepPromises (rule 7) keeps a node for the task that room was made for, else an older one would take the room back. It
// does not hold when the room turned out too small.
func (p *Planner) keepPromises() {
	for _, h := range p.hosts {
		if h.RoomFor == "" || h.loading != nil {
			continue
		}
		t := slices.IndexFunc(p.tasks, func(t Task) bool { return t.Key == h.RoomFor })
		if t < 0 {
			continue
		}
		g := p.of[t]
		if k := g.siteOf(p, h); k >= 0 && !p.present(g) && h.clear(g.sites[k].fit, h.spare).ok {
			h.reserved = g
		}
	}
}

func (g *group) siteOf(p *Planner, h *host) int {
	return slices.IndexFunc(g.sites, func(s site) bool { return p.hosts[s.host] == h })
}

// turn (rule 7) clears a node for a group that has waited beyond the bound and whose model is nowhere: the models in
// the way take nothing new, so that they end and can go. Each of them has had the node for at least the bound itself,
// which keeps two wanted models from evicting each other all night.
func (p *Planner) turn(g *group) {
	if len(g.sites) == 0 || g.key.pinned != "" || !p.overdue(g) || p.present(g) || p.closed(g) != nil {
		return
	}
	var best *host
	var bestWay way
	var bestEnd time.Duration
	for k := range g.sites {
		s := &g.sites[k]
		h := p.hosts[s.host]
		if h.loading != nil || h.reserved != nil {
			continue
		}
		if h.clear(s.fit, h.spare).ok {
			return // the load phase can do it at once
		}
		w := h.clear(s.fit, func(j int) bool { return h.spare(j) || h.movable(j) && h.residents[j].since >= g.bound })
		if !w.ok {
			continue
		}
		end := p.vacated(h, w) + s.pace.load + s.serve
		if best == nil || end < bestEnd {
			best, bestWay, bestEnd = h, w, end
		}
	}
	if best != nil {
		best.reserve(g, bestWay)
	}
}

// reserve keeps the node for a group, and lets the models in its way take nothing new.
func (h *host) reserve(g *group, w way) {
	h.reserved = g
	for _, j := range w.evict {
		h.residents[j].leaving = true
	}
}

// vacated is when the models that have to go are expected to be idle.
func (p *Planner) vacated(h *host, w way) time.Duration {
	var at time.Duration
	for _, j := range w.evict {
		at = max(at, p.last(h.residents[j].ends))
	}
	return at
}

// load (rule 6) uses the free load token of every node: first for models that are nowhere yet, the most tasks for the
// least time first, then for further copies.
func (p *Planner) load(priority Priority) {
	p.cold = p.cold[:0]
	for _, g := range p.groups {
		if g.key.priority == priority && g.key.pinned == "" && g.waiting() > 0 && len(g.sites) > 0 && !p.present(g) {
			p.cold = append(p.cold, g)
		}
	}
	slices.SortStableFunc(p.cold, func(a, b *group) int { return cmp.Compare(p.urgency(a), p.urgency(b)) })
	for _, g := range p.cold {
		p.spread(g)
	}
	for _, g := range p.groups {
		if g.key.priority == priority && g.key.pinned == "" && g.waiting() > 0 && !slices.Contains(p.cold, g) {
			p.spread(g)
		}
	}
}

// urgency (Smith's rule) is the time per task that loading a group's model and serving it takes, less a share of its age.
func (p *Planner) urgency(g *group) time.Duration {
	n := time.Duration(max(p.open(g), 1))
	return g.swift.load/n + g.swift.serve(g.work, g.key.embed) - p.age(g.oldest)/patience
}

// spread decides on which further nodes the group's model is loaded. Another one is worth it as long as a call would end there before
// the last of the group does elsewhere.
func (p *Planner) spread(g *group) {
	n := p.open(g) - g.soon
	if p.overdue(g) {
		n = max(n, g.waiting()-g.soon, 1)
	}
	if n <= 0 {
		return
	}
	for k := range g.sites {
		g.sites[k].option = p.option(g, &g.sites[k])
	}
	for range n {
		k := p.bestOption(g)
		if k < 0 {
			return
		}
		p.plan(g, &g.sites[k], n)
	}
}

// option looks at one site.
func (p *Planner) option(g *group, s *site) option {
	h, f := p.hosts[s.host], s.fit
	if j := h.find(f); j >= 0 && !(j < len(h.Loaded) && h.Loaded[j].Leaving) {
		return option{}
	}
	if !f.room.ok || h.State != NodeUp || h.reserved != nil && h.reserved != g || h.clearing != nil {
		return option{}
	}
	_, server := p.first(h.servers)
	o := option{way: h.clear(f, func(j int) bool { return h.spareFor(j) || h.drained(j, g) })}
	o.ok = o.way.ok
	o.now = o.ok && h.loading == nil && server == 0
	o.ready = max(h.token, server)
	if !o.ok {
		o.way = h.clear(f, h.movable)
		if o.ok = o.way.ok; !o.ok {
			return o
		}
		o.ready = max(o.ready, p.vacated(h, o.way))
		for _, j := range o.way.evict {
			if r := &h.residents[j]; r.queued {
				o.ready = max(o.ready, residency(r.pace.load)-r.since)
			}
		}
	}
	if o.way.effort() > 0 {
		o.ready += unloadTime
	}
	o.ready += s.pace.load
	for _, j := range o.way.evict {
		o.cost += h.regret(j)
	}
	return o
}

// regret is the expected cost of reloading a model that is displaced: all of the load when somebody waits for it, else less the
// longer it was not used.
func (h *host) regret(j int) time.Duration {
	return time.Duration(h.demand(j) * float64(h.residents[j].pace.load))
}

// recent is how long a use of a model keeps half of its weight.
const recent = 2 * time.Minute

// demand is how likely a model is needed again soon.
func (h *host) demand(j int) float64 {
	r := &h.residents[j]
	if r.wanted {
		return 1
	}
	return 0.5 / (1 + float64(max(r.idle, 0))/float64(recent))
}

// bestOption is the site where the group's model should be loaded next, or -1 when nowhere. Beyond its bound a group takes
// what is idle.
func (p *Planner) bestOption(g *group) int {
	overdue := p.overdue(g) && g.planned < g.waiting()-g.soon
	forced := overdue && slices.ContainsFunc(g.sites, func(s site) bool { return p.idleNow(g, &s) })
	best := -1
	for k := range g.sites {
		s := &g.sites[k]
		if !s.option.ok || forced && !p.idleNow(g, s) {
			continue
		}
		if p.hosts[s.host].reserved == g && s.option.now {
			return k
		}
		if best < 0 || p.better(g, s, &g.sites[best]) {
			best = k
		}
	}
	if best < 0 || forced {
		return best
	}
	if s := &g.sites[best]; g.rate > 0 && s.score() >= g.level {
		return -1
	}
	return best
}

// idleNow reports whether a load could begin at once, for a further copy on a node that does nothing.
func (p *Planner) idleNow(g *group, s *site) bool {
	return s.option.now && (g.rate == 0 || p.hosts[s.host].calls == 0)
}

// score is when a call of the group would end on a site after a load there, and what the load costs others.
func (s *site) score() time.Duration { return s.option.ready + s.option.cost + s.serve }

// better orders sites for a load: the earliest expected end, then the least to unload, then fewest attempts running, then
// the preferred node, then by id.
func (p *Planner) better(g *group, a, b *site) bool {
	ha, hb := p.hosts[a.host], p.hosts[b.host]
	order := cmp.Or(
		cmp.Compare(a.score(), b.score()),
		cmp.Compare(a.option.way.effort(), b.option.way.effort()),
		cmp.Compare(ha.calls, hb.calls),
		cmp.Compare(a.option.way.bytes, b.option.way.bytes),
	)
	return order < 0 || order == 0 && ha.ID == g.prefer
}

// plan carries out a load that can begin now, and counts on one that cannot. A node whose models in the way nobody of this
// priority counts on takes nothing new for them meanwhile.
func (p *Planner) plan(g *group, s *site, n int) {
	h, o := p.hosts[s.host], &s.option
	switch {
	case o.now:
		p.carryOut(g, s)
		g.planned += s.fit.slots
	case !slices.ContainsFunc(o.way.evict, func(j int) bool {
		return h.residents[j].wanted || h.residents[j].since < residency(h.residents[j].pace.load)
	}) && h.loading == nil:
		h.reserve(g, o.way)
	}
	p.expect(g, s, n)
	o.ok = false
}

// expect books what is coming.
func (p *Planner) expect(g *group, s *site, n int) {
	h, o := p.hosts[s.host], &s.option
	rate := p.throughput(h, s.fit.slots, s.serve)
	if g.rate == 0 {
		rounds := (n + s.fit.slots - 1) / s.fit.slots
		g.level = o.ready + time.Duration(rounds)*s.serve
	} else {
		g.level = time.Duration((g.rate*float64(g.level) + rate*float64(o.ready)) / (g.rate + rate))
	}
	g.level = max(g.level, o.ready+s.serve)
	g.rate += rate
	r := resident{digest: s.fit.digest, context: s.fit.context, slots: s.fit.slots, pace: s.pace, coming: true, wanted: true, queued: true}
	from := int32(len(p.ends))
	for range r.slots {
		p.ends, p.saved = append(p.ends, o.ready), append(p.saved, o.ready)
	}
	r.ends = places{from, int32(len(p.ends))}
	h.residents = append(h.residents, r)
	s.at = len(h.residents) - 1
	if o.now && h.MaxCalls > 0 {
		k, _ := p.first(h.servers)
		p.ends[k], p.saved[k] = o.ready, o.ready
		h.calls++
	}
}

// carryOut writes the Load and claims its memory, or writes the Unloads that have to come first and keeps the node for
// the group meanwhile.
func (p *Planner) carryOut(g *group, s *site) {
	h, f, w := p.hosts[s.host], s.fit, s.option.way
	if w.effort() > 0 {
		h.clearing = g
		for _, j := range w.evict {
			h.residents[j].leaving = true
			p.unload(h, j, p.tasks[g.first].Key, p.whyUnload(g, s, j))
		}
		return
	}
	p.loadOn(h, f, w, s.option.ready, p.tasks[g.first].Key, p.whyLoad(g, s))
}

// loadOn writes the Load and claims its memory.
func (p *Planner) loadOn(h *host, f *fit, w way, ready time.Duration, task string, why Explanation) {
	h.loading = &Claim{Digest: f.digest, Name: f.model.Name, Context: f.context, Need: w.room.need, Since: p.now}
	h.token, h.memory.loading = ready, w.room.need
	p.moves = append(p.moves, Decision{
		Action: Load, Task: task, Node: h.ID, Model: f.model.Name, Digest: f.digest, Context: f.context, Need: w.room.need, Why: why,
	})
}

func (p *Planner) unload(h *host, j int, task string, why Explanation) {
	l := &h.Loaded[j]
	p.moves = append(p.moves, Decision{Action: Unload, Task: task, Node: h.ID, Model: l.Name, Digest: l.Digest, Context: l.Context, Why: why})
}
