package scheduler

import (
	"cmp"
	"math"
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

// vacated is when the models that have to go are expected to be idle, and to have had their time.
func (p *Planner) vacated(h *host, w way) time.Duration {
	var at time.Duration
	for _, j := range w.evict {
		r := &h.residents[j]
		at = max(at, p.last(r.ends))
		if r.queued {
			at = max(at, residency(r.pace.load)-r.since)
		}
	}
	for j := len(h.Loaded); j < len(h.residents); j++ {
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
		p.survey(g)
	}
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

// needed is how many tasks of the group need more than the slots that are free.
func (p *Planner) needed(g *group) int {
	n := p.open(g) - g.soon
	if p.overdue(g) {
		n = max(n, min(g.waiting()-g.soon, 1))
	}
	return n
}

// survey finds the best node for a group whose model is nowhere, and what it loses when that is taken.
func (p *Planner) survey(g *group) {
	n := max(p.needed(g), 1)
	g.best, g.loss = -1, 0
	var first, second time.Duration
	for k := range g.sites {
		s := &g.sites[k]
		if s.option = p.option(g, s); !s.option.ok {
			continue
		}
		total := s.total(n)
		switch {
		case g.best < 0 || total < first:
			g.best, first, second = s.host, total, first
		case second == 0 || total < second:
			second = total
		}
	}
	g.loss = second - first
	if second == 0 {
		g.loss = math.MaxInt64
	}
}

// total is the sum of the ends of n tasks on a site after a load, and what the load costs others.
func (s *site) total(n int) time.Duration {
	rounds := time.Duration(n+s.fit.slots-1) / time.Duration(s.fit.slots)
	return time.Duration(n)*(s.option.ready+(rounds+1)*s.serve/2) + s.option.cost
}

// spread decides on which further nodes the group's model is loaded. Another one is worth it as long as a call would end there before
// the last of the group does elsewhere.
func (p *Planner) spread(g *group) {
	n := p.needed(g)
	if n <= 0 {
		return
	}
	for k := range g.sites {
		g.sites[k].option = p.option(g, &g.sites[k])
	}
	for range n {
		k := p.bestOption(g, n)
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
	if !f.room.ok || h.State != NodeUp || h.reserved != nil && h.reserved != g {
		return option{}
	}
	server := p.serverFor(g, h)
	o := option{}
	if h.clearing == nil {
		o.way = h.clear(f, func(j int) bool { return h.spareFor(j) || h.drained(j, g) })
	}
	o.ok = o.way.ok
	o.now = o.ok && h.loading == nil && server == 0
	o.ready = max(h.token, server)
	if !o.ok {
		if o.way = p.wayLater(h, f); !o.way.ok {
			return option{}
		}
		o.ok = true
		o.ready = max(o.ready, p.vacated(h, o.way))
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

// serverFor is when a load for the group could begin on a node with a cap on calls, as which a load counts: after the calls that count
// on it, unless the group is overdue or of a run that got less.
func (p *Planner) serverFor(g *group, h *host) time.Duration {
	_, at := p.first(h.servers)
	if at > 0 && (p.overdue(g) || len(g.head) > 0 && g.head[0].share < h.front) {
		at = p.saved[h.servers.from]
		for k := h.servers.from; k < h.servers.to; k++ {
			at = min(at, p.saved[k])
		}
	}
	return at
}

// wayLater is how room could be made once what runs and waits on the node has ended, what is coming included.
func (p *Planner) wayLater(h *host, f *fit) way {
	claim := h.memory.loading
	h.memory.loading = 0
	w := h.clear(f, func(j int) bool { return !h.residents[j].kept })
	h.memory.loading = claim
	return w
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
func (p *Planner) bestOption(g *group, n int) int {
	overdue := p.overdue(g) && g.planned < g.waiting()-g.soon
	forced := overdue && slices.ContainsFunc(g.sites, func(s site) bool { return p.idleNow(g, &s) })
	best, least := -1, time.Duration(0)
	for k := range g.sites {
		s := &g.sites[k]
		if !s.option.ok || forced && !p.idleNow(g, s) {
			continue
		}
		if p.hosts[s.host].reserved == g && s.option.now {
			return k
		}
		value := p.value(g, s, n)
		if best < 0 || value < least || value == least && p.better(g, s, &g.sites[best]) {
			best, least = k, value
		}
	}
	if best < 0 || forced || g.rate == 0 || least < 0 {
		return best
	}
	return -1
}

// value is what a load on a site costs: for the first copy the sum of the ends of all tasks; for a further one, less what its tasks
// gain. Lower is better, and a further copy is worth it below zero.
func (p *Planner) value(g *group, s *site, n int) time.Duration {
	if g.rate == 0 {
		return s.total(n) + p.damage(g, s, n)
	}
	gain := g.level - s.option.ready - s.serve
	moved := 1
	if gain > 0 {
		rate := p.throughput(p.hosts[s.host], s.fit.slots, s.serve)
		level := time.Duration((g.rate*float64(g.level) + rate*float64(s.option.ready)) / (g.rate + rate))
		moved = min(max(int(float64(level-s.option.ready)*rate), 1), n)
	}
	return s.option.cost + p.damage(g, s, moved) - gain*time.Duration(moved+1)/2
}

// damage is what groups lose that this load keeps from their best node while it serves n tasks.
func (p *Planner) damage(g *group, s *site, n int) time.Duration {
	h := p.hosts[s.host]
	rounds := time.Duration(n+s.fit.slots-1) / time.Duration(s.fit.slots)
	span := s.option.ready + rounds*s.serve
	var sum time.Duration
	for _, x := range p.cold {
		if x == g || x.best != s.host || x.rate > 0 {
			continue
		}
		if f := x.fits[s.host]; h.MaxCalls != 1 && f.room.need+s.fit.room.need <= f.room.available {
			continue
		}
		m := max(p.needed(x), 1)
		sum += min(time.Duration(m)*span, x.loss)
	}
	return sum
}

// idleNow reports whether a load could begin at once, for a further copy on a node that does nothing.
func (p *Planner) idleNow(g *group, s *site) bool {
	return s.option.now && (g.rate == 0 || p.hosts[s.host].calls == 0)
}

// better orders sites that are equally good: the least to unload, then fewest attempts running, then the preferred node, then by id.
func (p *Planner) better(g *group, a, b *site) bool {
	ha, hb := p.hosts[a.host], p.hosts[b.host]
	order := cmp.Or(
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
	case h.loading == nil && h.clearing == nil && !slices.ContainsFunc(o.way.evict, h.defended):
		h.reserve(g, o.way)
	}
	p.expect(g, s, n)
	o.ok = false
}

// defended reports whether loaded model j is one that a task of the priority at hand counts on, or that has not had its time.
func (h *host) defended(j int) bool {
	r := &h.residents[j]
	return r.wanted || r.queued && r.since < residency(r.pace.load)
}

// expect books what is coming.
func (p *Planner) expect(g *group, s *site, n int) {
	h, o := p.hosts[s.host], &s.option
	rate := p.throughput(h, s.fit.slots, s.serve)
	if g.rate == 0 {
		g.level = o.ready + time.Duration((n+s.fit.slots-1)/s.fit.slots)*s.serve
	} else {
		g.level = time.Duration((g.rate*float64(g.level) + rate*float64(o.ready)) / (g.rate + rate))
	}
	g.level = max(g.level, o.ready+s.serve)
	g.rate += rate
	r := resident{digest: s.fit.digest, context: s.fit.context, slots: s.fit.slots, pace: s.pace, coming: true, wanted: true, queued: true}
	from := int32(len(p.ends))
	for range r.slots {
		p.ends, p.saved = append(p.ends, g.level), append(p.saved, o.ready)
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
