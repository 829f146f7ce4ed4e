package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// load (rule 6) uses the free load token of every node: first for models that are nowhere yet, the most tasks for the
// least time first, then for further copies.
func (p *Planner) load(priority Priority) {
	p.cold = p.cold[:0]
	for _, g := range p.groups {
		if g.priority == priority && g.pinned == "" && g.waiting() > 0 && g.swift != nil && !p.present(g) {
			p.cold = append(p.cold, g)
		}
	}
	slices.SortStableFunc(p.cold, func(a, b *group) int { return cmp.Compare(p.urgency(a), p.urgency(b)) })
	for _, h := range p.hosts {
		h.suitors = h.suitors[:0]
	}
	for _, g := range p.cold {
		p.survey(g)
	}
	for _, g := range p.cold {
		p.spread(g)
	}
	for _, g := range p.groups {
		if g.priority == priority && g.pinned == "" && g.waiting() > 0 && g.swift != nil && !slices.Contains(p.cold, g) {
			p.spread(g)
		}
	}
}

// urgency (Smith's rule) is the time per task that loading a group's model and serving it takes, less a share of its age.
func (p *Planner) urgency(g *group) time.Duration {
	n := time.Duration(max(p.open(g), 1))
	return g.swift.load/n + g.swift.serve(g.work, g.embed) - p.age(g.oldest)/patience
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
	g.loss = farOff
	var first, second time.Duration
	best := -1
	for _, b := range p.bids(g) {
		total := b.total(n)
		switch {
		case best < 0 || total < first:
			best, first, second = b.s.host, total, first
		case second == 0 || total < second:
			second = total
		}
	}
	if best < 0 {
		return
	}
	if second > 0 {
		g.loss = second - first
	}
	p.hosts[best].suitors = append(p.hosts[best].suitors, g)
}

// spread decides on which further nodes the group's model is loaded. Another one is worth it as long as a call would end there before
// the last of the group does elsewhere.
func (p *Planner) spread(g *group) {
	n := p.needed(g)
	extra := time.Duration(0)
	if n <= 0 { // all could start now: a load has to shorten their calls by more than it takes itself
		if n = min(p.open(g), g.soon); n <= 0 {
			return
		}
		extra = g.swift.load
	}
	for s, r := range g.placed(p) {
		if r.coming && p.hosts[s.host].loads(s.fit) {
			g.planned += r.slots
		}
	}
	bids := p.bids(g)
	for range min(n, len(bids)) {
		k := p.pick(g, bids, n, extra)
		if k < 0 {
			return
		}
		p.plan(g, &bids[k], n)
		bids[k] = bids[len(bids)-1]
		bids = bids[:len(bids)-1]
	}
}

// pick is the bid to take next, or -1 for none. The first copy goes where all tasks end soonest in sum, a further one where a call
// would end soonest, as long as that is worth it. Beyond its bound a group takes what is idle.
func (p *Planner) pick(g *group, bids []bid, n int, extra time.Duration) int {
	best, forced := -1, false
	var least time.Duration
	overdue := p.overdue(g) && g.planned < n && extra == 0
	for k := range bids {
		b := &bids[k]
		h := p.hosts[b.s.host]
		if h.reserved == g && b.now {
			return k
		}
		idle := overdue && b.now && (g.rate == 0 || h.calls == 0)
		if forced && !idle {
			continue
		}
		value := b.score()
		if g.rate == 0 {
			value = b.total(n) + p.damage(g, b, n)
		}
		if best < 0 || idle && !forced || value < least || value == least && p.better(g, b, &bids[best]) {
			best, least, forced = k, value, idle
		}
	}
	if best < 0 || forced || g.rate == 0 || p.worth(g, &bids[best], n, extra) {
		return best
	}
	return -1
}

// worth reports whether what the tasks gain that would move to a further copy is more than what its load costs others.
func (p *Planner) worth(g *group, b *bid, n int, extra time.Duration) bool {
	gain := g.level - b.ready - b.serve - extra
	if gain <= 0 {
		return false
	}
	rate := p.hosts[b.s.host].throughput(b.s.fit.parallel(), b.serve)
	moved := min(max(int(float64(g.mixed(b, rate)-b.ready)*rate), 1), n, many)
	return gain*time.Duration(moved+1)/2 > b.o.cost+p.damage(g, b, moved)
}

// mixed is when the last task of the group would end with one more copy.
func (g *group) mixed(b *bid, rate float64) time.Duration {
	return time.Duration((g.rate*float64(g.level) + rate*float64(b.ready)) / (g.rate + rate))
}

// farOff is longer than anything that is weighed against it.
const farOff = time.Duration(1) << 60

// damage is what groups lose that this load keeps from their best node while it serves n tasks.
func (p *Planner) damage(g *group, b *bid, n int) time.Duration {
	h := p.hosts[b.s.host]
	var sum time.Duration
	for _, x := range h.suitors {
		if f := x.fits[b.s.host]; x == g || x.rate > 0 || h.MaxCalls != 1 && f.room.need+b.s.fit.room.need <= f.room.available {
			continue
		}
		span := b.ready + b.rounds(n)*b.serve
		sum = min(sum+min(time.Duration(min(max(p.needed(x), 1), many))*span, x.loss), farOff)
	}
	return sum
}

// better orders bids that are equally good: the least to unload, then fewest attempts running, then the preferred node, then by id.
func (p *Planner) better(g *group, a, b *bid) bool {
	ha, hb := p.hosts[a.s.host], p.hosts[b.s.host]
	order := cmp.Or(
		cmp.Compare(a.o.way.effort(), b.o.way.effort()),
		cmp.Compare(ha.calls, hb.calls),
		cmp.Compare(a.o.way.bytes, b.o.way.bytes),
		compareBool(hb.ID == g.prefer, ha.ID == g.prefer),
		cmp.Compare(a.s.host, b.s.host),
	)
	return order < 0
}

// plan carries out a load that can begin now, and counts on one that cannot. A node whose models in the way nobody of this
// priority counts on takes nothing new for them meanwhile.
func (p *Planner) plan(g *group, b *bid, n int) {
	h := p.hosts[b.s.host]
	switch {
	case b.now:
		p.carryOut(g, b)
		g.planned += b.s.fit.parallel()
	case !b.held && h.loading == nil && h.clearing == nil && !slices.ContainsFunc(b.o.way.evict, h.defended):
		h.reserve(g, b.o.way)
	}
	p.expect(g, b, n)
}

// defended reports whether loaded model j is one that a task of the priority at hand counts on, or that has not had its time.
func (h *host) defended(j int) bool {
	r := &h.residents[j]
	return r.wanted || r.queued && r.since < residency(r.pace.load)
}

// expect books what is coming.
func (p *Planner) expect(g *group, b *bid, n int) {
	h := p.hosts[b.s.host]
	rate := h.throughput(b.s.fit.parallel(), b.serve)
	if g.rate == 0 {
		g.level = b.ready + b.rounds(n)*b.serve
	} else {
		g.level = g.mixed(b, rate)
	}
	g.level = max(g.level, b.ready+b.serve)
	g.rate += rate
	if b.s.at < 0 {
		g.warmUp(b.s)
	}
	p.come(h, b.s, b.ready, g.level)
	if b.now {
		p.occupyServer(h, b.ready)
	}
	h.change()
}

// come adds a model that is on its way: ready when it is loaded, until it has served what waits for it.
func (p *Planner) come(h *host, s *site, ready, until time.Duration) {
	r := resident{digest: s.fit.digest, context: s.fit.context, slots: s.fit.parallel(), pace: s.pace, coming: true, wanted: true, queued: true}
	from := int32(len(p.ends))
	for range r.slots {
		p.ends, p.saved = append(p.ends, until), append(p.saved, ready)
	}
	r.ends = places{from, int32(len(p.ends))}
	r.next = until
	h.residents = append(h.residents, r)
	s.at = len(h.residents) - 1
}

// occupyServer counts a load as a call of the node.
func (p *Planner) occupyServer(h *host, until time.Duration) {
	h.calls++
	if h.MaxCalls > 0 {
		k, _ := p.first(h.servers)
		p.ends[k], p.saved[k] = until, until
		_, h.next = p.first(h.servers)
	}
}

// carryOut writes the Load and claims its memory, or writes the Unloads that have to come first and keeps the node for
// the group meanwhile.
func (p *Planner) carryOut(g *group, b *bid) {
	h, w := p.hosts[b.s.host], b.o.way
	if w.effort() == 0 {
		p.loadOn(h, b.s.fit, w, b.ready, p.tasks[g.first].Key, p.whyLoad(g, b.s, w))
		return
	}
	h.clearing = g
	h.change()
	for _, j := range w.evict {
		h.residents[j].leaving = true
		p.unload(h, j, p.tasks[g.first].Key, p.whyUnload(g, b.s, j))
	}
}

// loadOn writes the Load and claims its memory.
func (p *Planner) loadOn(h *host, f *fit, w way, ready time.Duration, task string, why Explanation) {
	h.loading = &Claim{Digest: f.digest, Name: f.model.Name, Context: f.context, Need: w.room.need, Since: p.now}
	h.token, h.memory.loading = ready, w.room.need
	h.change()
	p.moves = append(p.moves, Decision{
		Action: Load, Task: task, Node: h.ID, Model: f.model.Name, Digest: f.digest, Context: f.context, Need: w.room.need, Why: why,
	})
}

func (p *Planner) unload(h *host, j int, task string, why Explanation) {
	l := &h.Loaded[j]
	h.change()
	p.moves = append(p.moves, Decision{Action: Unload, Task: task, Node: h.ID, Model: l.Name, Digest: l.Digest, Context: l.Context, Why: why})
}
