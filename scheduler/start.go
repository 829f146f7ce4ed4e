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
	for _, h := range p.hosts {
		h.front = math.MaxUint8
	}
	for _, r := range p.queue(priority) {
		g := p.of[r.task]
		t := &p.tasks[r.task]
		c, _ := p.decide(g, t)
		if (c.site < 0 || c.begin > 0) && !g.behind {
			g.first, g.behind = r.task, true
		}
		if c.site < 0 || p.open(g) == 0 && !p.overdue(g) {
			continue
		}
		s := &g.sites[c.site]
		h := p.hosts[s.host]
		res := &h.residents[s.at]
		p.take(h, res, c.end)
		res.wanted = true
		g.level = max(g.level, c.end)
		if c.begin == 0 {
			g.soon++
			h.front = min(h.front, r.share)
		}
	}
	for _, g := range p.groups {
		if g.key.priority == priority && g.key.pinned == "" {
			p.forecastRest(g)
		}
	}
}

// forecastRest books the tasks that are not looked at one by one, all of the mean size.
func (p *Planner) forecastRest(g *group) {
	g.rate = 0
	for k := range g.sites {
		s := &g.sites[k]
		if r := p.usable(s); r != nil {
			g.rate += p.throughput(p.hosts[s.host], r.slots, s.serve)
		}
	}
	rest := g.tasks - len(g.head)
	if g.rate == 0 || rest <= 0 {
		return
	}
	g.level += time.Duration(float64(rest) / g.rate)
	for k := range g.sites {
		s := &g.sites[k]
		if r := p.usable(s); r != nil {
			p.fill(r.ends, g.level)
			if !r.coming {
				p.fill(p.hosts[s.host].servers, g.level)
			}
		}
	}
}

// throughput is how many calls end per nanosecond on some slots of a host.
func (p *Planner) throughput(h *host, slots int, serve time.Duration) float64 {
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
func (p *Planner) save()    { p.saved = append(p.saved[:0], p.ends...) }
func (p *Planner) restore() { copy(p.ends, p.saved) }

// queue is the heads of all groups of a priority, in order.
func (p *Planner) queue(priority Priority) []rank {
	p.order = p.order[:0]
	for _, g := range p.groups {
		if g.key.priority == priority {
			p.order = append(p.order, g.head...)
		}
	}
	slices.SortFunc(p.order, rank.compare)
	return p.order
}

// usable is the resident that a site can use, or nil.
func (p *Planner) usable(s *site) *resident {
	h := p.hosts[s.host]
	if s.at < 0 {
		if s.at = h.find(s.fit); s.at < 0 {
			return nil
		}
	}
	if r := &h.residents[s.at]; !r.leaving {
		return r
	}
	return nil
}

// choice is where a task would run, and when; site is -1 when nowhere.
type choice struct {
	site       int
	begin, end time.Duration
}

// crowding is by how much each call that runs already slows another one of the same model, when free slots are compared
// (an assumption: batched decoding is bound by memory, so that a second call costs far less than the first).
const crowding = 0.35

// best (rule 5) is the site with the earliest expected end for a task, among what is loaded or coming. Among free slots company counts,
// and then which is the least busy for its slots, then the preferred node, then the first by id. A slot that is still busy is worth
// waiting for only when the call would end sooner there than on the free one alone.
func (p *Planner) best(g *group, t *Task) (free, later choice) {
	free.site, later.site = -1, -1
	var of *resident
	var least time.Duration
	for k := range g.sites {
		s := &g.sites[k]
		r := p.usable(s)
		if r == nil {
			continue
		}
		h := p.hosts[s.host]
		d, begin := p.serveOn(s, t), p.begins(h, r)
		c := choice{site: k, begin: begin, end: begin + d}
		if begin > 0 {
			if later.site < 0 || c.end < later.end {
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

// serveOn is how long a task takes on a site alone.
func (p *Planner) serveOn(s *site, t *Task) time.Duration {
	d := s.pace.serve(t.Work, t.Embed)
	if p.warm(s, t) {
		d = max(d-s.pace.shared(t), time.Millisecond)
	}
	return d
}

// decide chooses between a free slot and a later one. Beyond its bound a task takes what is free.
func (p *Planner) decide(g *group, t *Task) (c choice, waits bool) {
	free, later := p.best(g, t)
	switch {
	case free.site < 0:
		return later, false
	case later.site >= 0 && later.end < free.end && p.age(t.Ready) < g.bound:
		return later, true
	default:
		return free, false
	}
}

// warm reports whether what the task shares with others is in a slot's cache: one slot keeps one context.
func (p *Planner) warm(s *site, t *Task) bool {
	if t.Affinity == "" || s.at < 0 {
		return false
	}
	h := p.hosts[s.host]
	if s.at >= len(h.Loaded) {
		return false
	}
	recent := h.Loaded[s.at].Affinity
	return slices.Contains(recent[:min(len(recent), h.residents[s.at].slots)], t.Affinity)
}

// start (rule 5) starts the tasks of a priority whose best site has a free slot, in order. One that ends sooner on a slot that is
// still busy, or on a load under way, waits for that; beyond its bound it takes what is free.
func (p *Planner) start(priority Priority) {
	for _, r := range p.queue(priority) {
		g := p.of[r.task]
		t := &p.tasks[r.task]
		if p.closed(g) != nil {
			continue
		}
		c, waits := p.decide(g, t)
		if c.site < 0 {
			continue
		}
		s := &g.sites[c.site]
		h := p.hosts[s.host]
		if c.begin == 0 {
			p.launch(g, s, r.task)
		} else if waits {
			g.faster = h.name()
		}
		p.take(h, &h.residents[s.at], c.end)
	}
}

// launch writes the Start.
func (p *Planner) launch(g *group, s *site, task int32) {
	h := p.hosts[s.host]
	r := &h.residents[s.at]
	why := p.whyStart(g, s)
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
		g := p.of[i]
		if g.key.pinned == "" || len(g.sites) == 0 {
			continue
		}
		s := &g.sites[0]
		if h := p.hosts[s.host]; s.at >= 0 && s.at < len(h.Loaded) {
			for _, k := range g.resources { // held already
				p.resources[k].InUse--
				p.resources[k].Tokens++
				p.resources[k].free++
			}
			p.launch(g, s, int32(i))
			p.take(h, &h.residents[s.at], s.serve)
		}
	}
}
