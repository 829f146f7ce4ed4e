package scheduler

import (
	"math"
	"slices"
	"time"
)

// forecast (rule 5) books all waiting tasks of a priority on what is loaded or coming, in order, and so finds which
// models are counted on, and when the last task of every group would end. It decides nothing.
func (p *Planner) forecast(priority Priority) {
	p.save()
	p.epoch++
	for _, h := range p.hosts {
		h.front = math.MaxUint8
	}
	for _, r := range p.queue(priority, false) {
		g := p.groupOf(r.task)
		c, _ := p.decide(g, r.task)
		if (c.s == nil || c.begin > 0) && !g.behind {
			g.first, g.behind = r.task, true
		}
		if c.s == nil || p.open(g) == 0 && !p.overdue(g) {
			continue
		}
		h := p.hosts[c.s.host]
		res := &h.residents[c.s.at]
		p.take(h, res, c.end)
		res.wanted = true
		g.level = max(g.level, c.end)
		if c.begin == 0 {
			g.soon++
			h.front = min(h.front, r.share)
		}
	}
	for _, g := range p.groups {
		if g.priority == priority && g.pinned == "" {
			p.forecastRest(g)
		}
	}
}

// forecastRest books the tasks that are not looked at one by one, all of the mean size.
func (p *Planner) forecastRest(g *group) {
	for s, r := range g.placed(p) {
		h := p.hosts[s.host]
		g.rate += h.throughput(r.slots, g.serve(s))
	}
	rest := min(g.tasks, p.open(g)) - len(g.head)
	if g.rate == 0 || rest <= 0 {
		return
	}
	g.level += time.Duration(float64(rest) / g.rate)
	for s, r := range g.placed(p) {
		h := p.hosts[s.host]
		p.fill(r.ends, g.level)
		r.wanted = true
		if !r.coming {
			p.fill(h.servers, g.level)
		}
		p.settleEnds(h)
	}
}

// throughput is how many calls end per nanosecond on some slots of a host.
func (h *host) throughput(slots int, serve time.Duration) float64 {
	if h.MaxCalls > 0 {
		slots = min(slots, h.MaxCalls)
	}
	return float64(slots) / float64(serve)
}

// fill books places until a time.
func (p *Planner) fill(s places, until time.Duration) {
	for k := s.from; k < s.to; k++ {
		p.ends[k] = max(p.ends[k], until)
	}
}

// save and restore keep what is really taken while a forecast is made.
func (p *Planner) save() { p.saved = append(p.saved[:0], p.ends...) }
func (p *Planner) restore() {
	copy(p.ends, p.saved)
	for _, h := range p.hosts {
		p.settleEnds(h)
	}
}

// queue is the heads of all groups of a priority, in order, or only of those for which a slot is free.
func (p *Planner) queue(priority Priority, free bool) []rank {
	p.order = p.order[:0]
	for _, g := range p.groups {
		if g.priority == priority && (!free || g.free) {
			p.order = append(p.order, g.head...)
		}
	}
	slices.SortFunc(p.order, rank.compare)
	return p.order
}

// choice is where a task would run, and when; s is nil when nowhere.
type choice struct {
	s          *site
	begin, end time.Duration
}

// crowding is by how much each call that runs already slows another one of the same model, when free slots are compared
// (an assumption: batched decoding is bound by memory, so that a second call costs far less than the first).
const crowding = 0.35

// best (rule 5) is the site with the earliest expected end for a task, among what is loaded or coming. Among free slots company counts,
// and then which is the least busy for its slots, then the preferred node, then the first by id. A slot that is still busy is worth
// waiting for only when the call would end sooner there than on the free one alone.
func (p *Planner) best(g *group, t *Task) (free, later choice) {
	var of *resident
	var least time.Duration
	for s, r := range g.placed(p) {
		h := p.hosts[s.host]
		d := s.pace.serve(t.Work, t.Embed)
		if h.warm(s.at, r, t) {
			d = max(d-s.pace.shared(t), time.Millisecond)
		}
		c := choice{s: s, begin: h.begins(r)}
		if c.end = c.begin + d; c.begin > 0 {
			if later.s == nil || c.end < later.end {
				later = c
			}
			continue
		}
		crowded := d + time.Duration(float64(d)*crowding*float64(r.busy))
		if of != nil {
			mine, other := r.busy*of.slots, of.busy*r.slots
			if crowded > least || crowded == least && (mine > other || mine == other && h.ID != t.Prefer) {
				continue
			}
		}
		free, least, of = c, crowded, r
	}
	return free, later
}

// decide chooses between a free slot and a later one. Beyond its bound a task takes what is free.
func (p *Planner) decide(g *group, i int32) (c choice, waits bool) {
	t := &p.tasks[i]
	free, later := p.best(g, t)
	switch {
	case free.s == nil:
		return later, false
	case later.s != nil && later.end < free.end && p.ages[i] < g.bound:
		return later, true
	default:
		return free, false
	}
}

// warm reports whether what a task shares with others is in a slot's cache: one slot keeps one context.
func (h *host) warm(j int, r *resident, t *Task) bool {
	if t.Affinity == "" || !h.inMemory(j) {
		return false
	}
	recent := h.Loaded[j].Affinity
	return slices.Contains(recent[:min(len(recent), r.slots)], t.Affinity)
}

// start (rule 5) starts the tasks of a priority whose best site has a free slot, in order. One that ends sooner on a slot that is
// still busy, or on a load under way, waits for that; beyond its bound it takes what is free.
func (p *Planner) start(priority Priority) {
	for _, r := range p.queue(priority, true) {
		g := p.groupOf(r.task)
		if p.closed(g) != nil {
			continue
		}
		c, waits := p.decide(g, r.task)
		if c.s == nil {
			continue
		}
		h := p.hosts[c.s.host]
		if c.begin == 0 {
			p.launch(g, c.s, r.task)
		} else if waits {
			g.faster = h.name()
		}
		p.take(h, &h.residents[c.s.at], c.end)
	}
}

// launch writes the Start.
func (p *Planner) launch(g *group, s *site, task int32) {
	h := p.hosts[s.host]
	r := &h.residents[s.at]
	why := p.whyStart(g, s)
	if h.MaxCalls > 0 || r.busy == 0 && !r.queued { // else no other model sees a difference
		h.change()
	}
	r.busy++
	h.calls++
	g.started++
	p.hold(g)
	p.begun[task] = true
	p.decisions = append(p.decisions, Decision{
		Action: Start, Task: p.tasks[task].Key, Node: h.ID, Model: h.Loaded[s.at].Name, Digest: r.digest, Context: r.context, Why: why,
	})
}

// reattach gives pinned tasks back to their nodes. They need no free slot and no resource, because they hold them.
func (p *Planner) reattach() {
	for i := range p.tasks {
		g := p.groupOf(int32(i))
		if g.pinned == "" || len(g.place) == 0 {
			continue
		}
		s := &g.place[0]
		if h := p.hosts[s.host]; h.inMemory(s.at) {
			for _, k := range g.needs { // held already
				p.resources[k].InUse--
				p.resources[k].Tokens++
				p.resources[k].free++
			}
			p.launch(g, s, int32(i))
			p.take(h, &h.residents[s.at], g.serve(s))
		}
	}
}
