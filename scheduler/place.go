package scheduler

import (
	"fmt"
	"slices"
	"time"
)

// Place decides what to do now for every waiting task. It is a pure function: the same snapshot gives the same plan,
// whatever the order of the nodes. The rules are numbered in README.md; the phases below carry the same numbers.
func Place(s Snapshot, limits Limits) Plan {
	p := &planner{now: s.Now, limits: limits}
	p.hosts, p.shapes = newHosts(s, limits)
	p.newGroups(s.Waiting)
	p.markWanted()
	p.keepPromises(s.Waiting)
	for _, g := range p.groups {
		p.reserve(g)
	}
	left := p.start(s.Waiting)
	p.markWanted()
	p.load()
	for _, i := range left {
		p.settle(&s.Waiting[i], p.of[i])
	}
	return Plan{Decisions: p.decisions}
}

// Admit says whether a run that needs the model may be submitted. context is in tokens per slot, 0 for the default.
//
//   - true and an empty Wait: a node that is up can take it, now or once others end.
//   - true and a Wait of WaitNode or WaitFacts: it will wait, for a machine that is lost, draining or not known yet.
//   - false and WaitModel: machines are up and could hold it, but none has it; the summary says where to pull it.
//   - false and an empty Wait: it fits no known machine even when empty, lost ones counted; the explanation has need,
//     available and shortfall per machine and the largest context that would fit.
func Admit(s Snapshot, model string, context int, limits Limits) (bool, Explanation) {
	p := &planner{now: s.Now, limits: limits}
	p.hosts, p.shapes = newHosts(s, limits)
	p.newGroups([]Task{{Model: model, Context: context, Embed: true}})
	g := p.groups[0]
	e := Explanation{Nodes: p.verdicts(g)}
	if len(g.candidates) > 0 {
		e.Summary = fmt.Sprintf("%s at %d tokens can run on %s", g.key.model, g.context(), and(p.names(g.candidates)))
		return true, e
	}
	e.Wait, e.Summary = p.outlook(g, e.Nodes)
	return e.Wait == WaitNode || e.Wait == WaitFacts, e
}

func (p *planner) names(hosts []int) []string {
	names := make([]string, len(hosts))
	for k, i := range hosts {
		names[k] = p.hosts[i].name()
	}
	return names
}

// planner is the state of one call of Place.
type planner struct {
	now       time.Time
	limits    Limits
	hosts     []*host
	shapes    catalog
	groups    []*group // in the order of their oldest task
	of        []*group // by task
	decisions []Decision
}

// markWanted notes which loaded models some waiting task could run on.
func (p *planner) markWanted() {
	for _, h := range p.hosts {
		clear(h.wanted)
	}
	for _, g := range p.groups {
		if g.waiting == 0 {
			continue
		}
		for _, i := range g.candidates {
			if j := p.hosts[i].find(g.fits[i]); j >= 0 {
				p.hosts[i].wanted[j] = true
			}
		}
	}
}

// present reports whether the group's model is loaded or being loaded on a node that may take it.
func (p *planner) present(g *group) bool {
	return slices.ContainsFunc(g.candidates, func(i int) bool {
		h, f := p.hosts[i], g.fits[i]
		j := h.find(f)
		return j >= 0 && !h.leaving[j] || h.loads(f)
	})
}

// keepPromises (rule 7) keeps a node for the task that room was made for, else an older one would take the room back. It
// does not hold when the room turned out too small.
func (p *planner) keepPromises(tasks []Task) {
	for i, h := range p.hosts {
		t := slices.IndexFunc(tasks, func(t Task) bool { return t.Key == h.RoomFor })
		if h.RoomFor == "" || t < 0 {
			continue
		}
		if g := p.of[t]; g.isCandidate(i) && !p.present(g) && h.loading == nil && h.clear(g.fits[i], h.idle).ok {
			h.reserved = g
		}
	}
}

// reserve (rule 7) clears a node for a group that has waited beyond the bound and whose model is nowhere: the models in
// the way take nothing new, so that they end and can go. Each of them has had the node for at least the bound itself,
// which keeps two wanted models from evicting each other all night.
func (p *planner) reserve(g *group) {
	if len(g.candidates) == 0 || p.present(g) {
		return
	}
	bound := p.limits.maxWait(g.fits[g.candidates[0]].weights)
	if p.age(g) < bound {
		return
	}
	var best *host
	var bestWay way
	for _, i := range g.candidates {
		h := p.hosts[i]
		if h.loading != nil || h.reserved != nil {
			continue
		}
		if h.clear(g.fits[i], h.idle).ok {
			return // the load phase can do it at once
		}
		w := h.clear(g.fits[i], func(j int) bool { return h.idle(j) || !h.leaving[j] && p.now.Sub(h.Loaded[j].Since) >= bound })
		if w.ok && (best == nil || w.busy < bestWay.busy || w.busy == bestWay.busy && len(w.evict) < len(bestWay.evict)) {
			best, bestWay = h, w
		}
	}
	if best != nil {
		best.reserved = g
		for _, j := range bestWay.evict {
			best.leaving[j] = true
		}
	}
}

// start (rule 5) gives free slots of loaded models to the oldest tasks, and returns those that found none.
func (p *planner) start(tasks []Task) (left []int) {
	for i := range tasks {
		g := p.of[i]
		best := -1
		if !g.full {
			best = p.freeSlot(g)
		}
		if best < 0 {
			if !g.full {
				g.full, g.first = true, tasks[i].Key
			}
			left = append(left, i)
			continue
		}
		h, f := p.hosts[best], g.fits[best]
		j := h.find(f)
		why := p.whyStart(g, best)
		h.busy[j]++
		g.waiting--
		p.decisions = append(p.decisions, Decision{
			Action: Start, Task: tasks[i].Key, Node: h.ID, Model: h.Loaded[j].Name, Digest: f.digest, Context: f.context, Why: why,
		})
	}
	return left
}

// freeSlot is the candidate with a free slot that is the least busy for its slots; then the preferred one, then the
// first by id. A pinned task needs no free slot: it holds one already.
func (p *planner) freeSlot(g *group) int {
	best, bestBusy := -1, 0
	for _, i := range g.candidates {
		h, f := p.hosts[i], g.fits[i]
		j := h.find(f)
		if j < 0 || (h.leaving[j] || h.busy[j] >= f.slots) && g.key.pinned == "" {
			continue
		}
		if best >= 0 {
			// compare busy/slots without dividing
			mine, other := h.busy[j]*g.fits[best].slots, bestBusy*f.slots
			if mine > other || mine == other && h.ID != g.key.prefer {
				continue
			}
		}
		best, bestBusy = i, h.busy[j]
	}
	return best
}

// load (rule 6) uses the free load token of every node: first for models that are nowhere yet, then for further copies.
func (p *planner) load() {
	for _, g := range p.groups {
		if g.waiting > 0 && !p.present(g) {
			p.loadOnce(g, false)
		}
	}
	for _, g := range p.groups {
		for p.demand(g) > 0 && p.loadOnce(g, true) {
		}
	}
}

// demand is the number of waiting tasks that no load in flight will serve. It takes what will be served off the
// incoming slots, so that two groups do not count on the same one.
func (p *planner) demand(g *group) int {
	for _, i := range g.candidates {
		if h := p.hosts[i]; h.serves(g, g.fits[i]) {
			served := min(g.waiting-g.served, h.incoming)
			g.served += served
			h.incoming -= served
		}
	}
	return g.waiting - g.served
}

// serves reports whether the load in flight, or the one that room is being made for, is the group's.
func (h *host) serves(g *group, f *fit) bool {
	return h.loads(f) || h.clearing == g
}

// loadOnce loads the group's model on the best node that can take it, or makes room for it there, and reports whether
// there was one. A further copy goes onto free memory for any queue, but evicts an idle model only for more than a round
// of the slots there are.
func (p *planner) loadOnce(g *group, copied bool) bool {
	best, bestWay := -1, way{}
	for _, i := range g.candidates {
		h, f := p.hosts[i], g.fits[i]
		if j := h.find(f); j >= 0 && !h.Loaded[j].Leaving {
			continue
		}
		if h.loading != nil || h.clearing != nil || h.reserved != nil && h.reserved != g {
			continue
		}
		w := h.clear(f, func(j int) bool { return h.idle(j) || h.drained(j, g) })
		if !w.ok || copied && len(w.evict) > 0 && g.waiting <= p.slotsThere(g) {
			continue
		}
		if best < 0 || p.better(g, i, w, best, bestWay) {
			best, bestWay = i, w
		}
	}
	if best < 0 {
		return false
	}
	p.carryOut(g, best, bestWay)
	return true
}

// better orders nodes for a load: no unload needed, then one that is under way, then fewest attempts running, then
// fewest bytes evicted, then the preferred node, then by id.
func (p *planner) better(g *group, a int, wa way, b int, wb way) bool {
	ha, hb := p.hosts[a], p.hosts[b]
	switch {
	case wa.effort() != wb.effort():
		return wa.effort() < wb.effort()
	case ha.running() != hb.running():
		return ha.running() < hb.running()
	case wa.bytes != wb.bytes:
		return wa.bytes < wb.bytes
	default:
		return ha.ID == g.key.prefer
	}
}

// slotsThere is the number of slots of the copies that are loaded or on their way for the group.
func (p *planner) slotsThere(g *group) int {
	sum := 0
	for _, i := range g.candidates {
		if h, f := p.hosts[i], g.fits[i]; h.find(f) >= 0 || h.serves(g, f) {
			sum += f.slots
		}
	}
	return sum
}

// carryOut writes the Load and claims its memory, or writes the Unloads that have to come first and keeps the node for
// the group meanwhile.
func (p *planner) carryOut(g *group, i int, w way) {
	h, f := p.hosts[i], g.fits[i]
	h.incoming = f.slots
	if w.effort() > 0 {
		h.clearing = g
		for _, j := range w.evict {
			l := h.Loaded[j]
			h.leaving[j] = true
			p.decisions = append(p.decisions, Decision{
				Action: Unload, Task: g.first, Node: h.ID, Model: l.Name, Digest: l.Digest, Context: l.Context, Why: p.whyUnload(g, i, j),
			})
		}
		return
	}
	h.loading = &Claim{Digest: f.digest, Name: f.model.Name, Context: f.context, Need: w.room.need, Since: p.now}
	p.decisions = append(p.decisions, Decision{
		Action: Load, Task: g.first, Node: h.ID, Model: f.model.Name, Digest: f.digest, Context: f.context, Need: w.room.need, Why: p.whyLoad(g, i, w),
	})
}
