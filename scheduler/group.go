package scheduler

import (
	"slices"
	"strings"
	"time"
)

// groupKey is all that a decision about a task depends on, apart from its age, size, run and context.
type groupKey struct {
	model     string
	digest    string
	context   int
	avoid     string
	pinned    string
	resources string
	embed     bool
	priority  Priority
}

// group is the waiting tasks that look the same to every node.
type group struct {
	key        groupKey
	avoid      []string
	resources  []int  // indices of planner.resources
	fits       []*fit // by host index
	sites      []site // the hosts that may take it, by host index
	candidates []int  // the same, as host indices
	tasks      int    // that wait
	work       Work   // mean of those whose work is known
	sized      int    // tasks whose work is known
	oldest     time.Time
	first      int32         // index of the first task that finds no free slot
	behind     bool          // there is one
	prefer     string        // of the oldest
	bound      time.Duration // on waiting, before its model may displace another
	swift      pace          // of the site that serves it fastest
	head       []rank        // the tasks that come first, in order
	most       int           // length of head
	started    int           // by this plan
	level      time.Duration // when the last of its tasks is expected to end, with what is loaded or planned
	rate       float64       // its tasks that end per nanosecond, on what is loaded or planned
	soon       int           // tasks that free slots take at once
	planned    int           // slots of loads that this plan decided for it
	best       int           // index of the host that is best for a load, or -1
	loss       time.Duration // what all its tasks lose without that
	faster     string        // the host that a task waits for although a slot is free elsewhere
	why        *Explanation  // for all that wait
}

// site is a host as it looks to a group.
type site struct {
	host   int
	fit    *fit
	pace   pace
	at     int           // index of the resident that it can use, or -1
	serve  time.Duration // a call of the group's mean size
	option option        // to load there
}

// newGroups sorts the waiting tasks into groups, in the order of the oldest task of each.
func (p *Planner) newGroups() {
	clear(p.known)
	clear(p.fits)
	p.groups, p.of = p.groups[:0], p.of[:0]
	for i := range p.tasks {
		t := &p.tasks[i]
		key := groupKey{model: tagged(t.Model), digest: t.Digest, context: t.Context, avoid: joined(t.Avoid), pinned: t.Pinned, resources: joined(t.Resources),
			embed: t.Embed, priority: p.class(t)}
		g := p.known[key]
		if g == nil {
			g = p.newGroup(key, t)
			g.first = int32(i)
			p.known[key] = g
		}
		if g.tasks++; t.Work != (Work{}) {
			g.sized++
			g.work.Prompt += t.Work.Prompt
			g.work.Output += t.Work.Output
		}
		p.of = append(p.of, g)
	}
	for _, g := range p.groups {
		if g.sized > 0 {
			g.work.Prompt /= g.sized
			g.work.Output /= g.sized
		}
		p.settleSites(g)
	}
}

type fitKey struct {
	model   string
	digest  string
	context int
}

func (p *Planner) newGroup(key groupKey, t *Task) *group {
	if len(p.pool) == len(p.groups) {
		p.pool = append(p.pool, &group{})
	}
	g := p.pool[len(p.groups)]
	*g = group{key: key, avoid: t.Avoid, oldest: t.Ready, prefer: t.Prefer, sites: g.sites[:0], candidates: g.candidates[:0], head: g.head[:0], resources: g.resources[:0]}
	p.groups = append(p.groups, g)
	for _, name := range t.Resources {
		g.resources = append(g.resources, p.resource(name))
	}
	fk := fitKey{key.model, key.digest, key.context}
	if p.fits[fk] == nil {
		p.fits[fk] = p.fitsFor(fk)
	}
	g.fits = p.fits[fk]
	p.choose(g)
	return g
}

func (p *Planner) fitsFor(k fitKey) []*fit {
	context := k.context
	if context <= 0 {
		context = p.limits.contextOf(k.model)
	}
	fits := make([]*fit, len(p.hosts))
	for i, h := range p.hosts {
		fits[i] = fitOn(h, k.model, k.digest, context, p.shapes, p.limits)
	}
	return fits
}

// joined does not depend on the order of the names.
func joined(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(slices.Sorted(slices.Values(names)), "\x00")
}

// choose finds the nodes that may take a group. Those that an earlier attempt failed on count only when there is no
// other.
func (p *Planner) choose(g *group) {
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
		g.candidates = append(g.candidates, avoided...)
	}
	for _, i := range g.candidates {
		h, f := p.hosts[i], g.fits[i]
		s := site{host: i, fit: f, at: h.find(f)}
		if s.at >= 0 {
			s.pace = h.residents[s.at].pace
		} else {
			var file uint64
			if f.model != nil {
				file = f.model.FileBytes
			}
			s.pace = p.paceOf(h, f.digest, f.shape, f.weights, file)
		}
		g.sites = append(g.sites, s)
	}
}

// settleSites computes what depends on the mean size of the group's tasks.
func (p *Planner) settleSites(g *group) {
	best, load := time.Duration(-1), time.Duration(-1)
	for k := range g.sites {
		s := &g.sites[k]
		s.serve = s.pace.serve(g.work, g.key.embed)
		if best < 0 || s.serve < best {
			best, g.swift = s.serve, s.pace
		}
		if load < 0 || s.pace.load < load {
			load = s.pace.load
		}
		if s.at >= 0 {
			p.hosts[s.host].residents[s.at].queued = true
		}
	}
	g.bound = p.limits.bound(max(load, 0))
}

// eligible (rule 4) reports whether a node could run a group now or after loads and unloads. A model that is loaded needs no
// memory figures. A pinned task may go back to a draining node that still has its model: it runs there already.
func (p *Planner) eligible(g *group, i int) bool {
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
	if j < 0 || j >= len(h.Loaded) {
		return false
	}
	return len(f.needs) == 0 || f.room.ok || !h.memory.devices || h.Loaded[j].VRAMBytes >= h.Loaded[j].SizeBytes
}

// wrongKind: an embedding model answers no generate call.
func (f *fit) wrongKind(embed bool) bool {
	return f.model != nil && f.model.Embedding && !embed
}

// shunned: the model spilled or ran out of memory there a short while ago, with that context or a smaller one.
func (p *Planner) shunned(h *host, f *fit) bool { return p.now.Before(h.shunnedUntil(f)) }

func (h *host) shunnedUntil(f *fit) time.Time {
	until := h.Avoid[f.digest]
	if u, ok := h.Unfit[f.digest]; ok && f.context >= u.Context && u.Until.After(until) {
		until = u.Until
	}
	return until
}

// age is how long a task has waited; 0 when that is not known.
func (p *Planner) age(ready time.Time) time.Duration {
	if ready.IsZero() {
		return 0
	}
	return p.now.Sub(ready)
}

// overdue reports whether the oldest task of the group has waited beyond the bound.
func (p *Planner) overdue(g *group) bool { return p.age(g.oldest) >= g.bound }

// present reports whether the group's model is loaded, being loaded, or having room made for it on a node that may take it.
func (p *Planner) present(g *group) bool {
	for k := range g.sites {
		h := p.hosts[g.sites[k].host]
		if j := h.find(g.sites[k].fit); j >= 0 && !h.residents[j].leaving || h.clearing == g {
			return true
		}
	}
	return false
}

// waiting is how many of the group's tasks were not started.
func (g *group) waiting() int { return g.tasks - g.started }
