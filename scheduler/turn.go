package scheduler

import (
	"time"
)

// keepPromises (rule 7) keeps a node for the task that room was made for, else an older one would take the room back. It
// does not hold when the room turned out too small.
func (p *Planner) keepPromises() {
	clear(p.promised)
	for _, h := range p.hosts {
		if h.RoomFor != "" && h.loading == nil {
			p.promised[h.RoomFor] = -1
		}
	}
	if len(p.promised) == 0 {
		return
	}
	for i := range p.tasks {
		if _, ok := p.promised[p.tasks[i].Key]; ok {
			p.promised[p.tasks[i].Key] = int32(i)
		}
	}
	for i, h := range p.hosts {
		t, ok := p.promised[h.RoomFor]
		if !ok || t < 0 || h.loading != nil {
			continue
		}
		if g := p.groupOf(t); g.candidate(i) && !p.present(g) && h.clear(g.fits[i], h.spare).ok {
			h.reserved = g
			h.change()
		}
	}
}

// turn (rule 7) clears a node for a group that has waited beyond the bound and whose model is nowhere: the models in
// the way take nothing new, so that they end and can go. Each of them has had the node for at least the bound itself,
// which keeps two wanted models from evicting each other all night. Until one has, nothing else is loaded on the node
// that will be the first.
func (p *Planner) turn(g *group) {
	if g.pinned != "" || !p.overdue(g) || p.present(g) || p.closed(g) != nil {
		return
	}
	var best *host
	var bestWay way
	var bestEnd, bestRest time.Duration
	for s := range g.nodes {
		h := p.hosts[s.host]
		if h.loading != nil || h.reserved != nil || s.fit.exceeds(h, p.slack(h).later) {
			continue
		}
		if !s.fit.exceeds(h, p.slack(h).free) && h.clear(s.fit, h.spare).ok {
			return // the load phase can do it at once
		}
		w := h.clear(s.fit, func(j int) bool { return h.movable(j) && h.restOf(j, g.bound) == 0 })
		if !w.ok {
			w = h.clear(s.fit, h.movable)
		}
		if !w.ok {
			continue
		}
		rest := h.rest(w, g.bound)
		end := rest + p.vacated(h, w) + s.pace.load + g.serve(s)
		if best == nil || end < bestEnd {
			best, bestWay, bestEnd, bestRest = h, w, end, rest
		}
	}
	switch {
	case best == nil:
	case bestRest > 0:
		best.reserved = g
		best.change()
	default:
		best.reserve(g, bestWay)
	}
}

// rest is how much longer the models that have to go may stay.
func (h *host) rest(w way, bound time.Duration) (rest time.Duration) {
	for _, j := range w.evict {
		rest = max(rest, h.restOf(j, bound))
	}
	return rest
}

// restOf is how much longer loaded model j may stay when each that is waited for has the node for so long.
func (h *host) restOf(j int, bound time.Duration) time.Duration {
	if r := &h.residents[j]; r.queued {
		return max(bound-r.since, 0)
	}
	return 0
}

// reserve keeps the node for a group, and lets the models in its way take nothing new.
func (h *host) reserve(g *group, w way) {
	h.reserved = g
	h.change()
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
