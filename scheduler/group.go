package scheduler

import (
	"slices"
	"time"
)

// group is the waiting tasks that look the same to every node, apart from their age, size, run and shared context.
type group struct {
	*view
	index     int32  // in Planner.groups
	name      string // of the model, as the first task asked for it
	avoid     []string
	pinned    string
	resources []string
	priority  Priority
	banned    []int         // hosts that an earlier attempt failed on, when there are others
	needs     []int         // indices of Planner.resources
	place     []site        // of pinned tasks
	tasks     int           // that wait
	own       sizes         // of its tasks
	work      Work          // mean of those
	oldest    time.Time     // since when the oldest could run
	prefer    string        // of the oldest
	bound     time.Duration // on waiting, before its model may displace another
	swift     *pace         // of the site that serves it fastest
	drain     time.Duration // all its tasks on what is loaded
	free      bool          // a slot was free for it when the plan began
	head      []rank        // the tasks that come first, in order
	most      int           // length of head
	first     int32         // index of the first task that finds no free slot
	behind    bool          // there is one
	started   int           // by this plan
	level     time.Duration // when the last of its tasks is expected to end, with what is loaded or planned
	rate      float64       // its tasks that end per nanosecond, on what is loaded or planned
	soon      int           // tasks that free slots take at once
	planned   int           // slots of loads that are in flight for it, those of this plan included
	loss      time.Duration // what all its tasks lose without the node that is best for a load
	faster    string        // the host that a task waits for although a slot is free elsewhere
	why       *Explanation  // for all that wait
}

// newGroups sorts the waiting tasks into groups, in the order of the oldest task of each.
func (p *Planner) newGroups() {
	n := len(p.tasks)
	p.groups, p.of, p.runs, p.ages = p.groups[:0], slices.Grow(p.of[:0], n)[:n], slices.Grow(p.runs[:0], n)[:n], slices.Grow(p.ages[:0], n)[:n]
	run := -1
	for i := range p.tasks {
		t := &p.tasks[i]
		if i == 0 || t.Run != p.tasks[i-1].Run { // most often they come in rows
			run = p.share(t.Run)
		}
		g := p.groupFor(t, &p.shares[run], p.class(t, run))
		if g.tasks == 0 {
			g.first = int32(i)
		}
		if g.tasks++; t.Work.Prompt > 0 || t.Work.Output > 0 {
			g.own.add(t.Work)
			g.all.add(t.Work)
		}
		p.of[i], p.runs[i], p.ages[i] = g.index, int32(run), p.age(t.Ready)
	}
	for _, g := range p.groups {
		if g == g.groups[0] {
			g.settle()
		}
		p.size(g)
	}
}

// groupFor finds the group of a task: that of the task of its run before, most often.
func (p *Planner) groupFor(t *Task, s *share, priority Priority) *group {
	var v *view
	switch g := s.last; {
	case g == nil || g.name != t.Model || !g.meets(t):
		v = p.viewOf(t)
	case g.holds(t, priority):
		return g
	default:
		v = g.view
	}
	at := slices.IndexFunc(v.groups, func(g *group) bool { return g.holds(t, priority) })
	if at < 0 {
		at = len(v.groups)
		v.groups = append(v.groups, p.newGroup(v, t, priority))
	}
	s.last = v.groups[at]
	return s.last
}

// groupOf is the group of a task.
func (p *Planner) groupOf(task int32) *group { return p.groups[p.of[task]] }

// holds reports whether a task of the group's model belongs to it.
func (g *group) holds(t *Task, priority Priority) bool {
	return g.priority == priority && g.pinned == t.Pinned && same(g.avoid, t.Avoid) && same(g.resources, t.Resources)
}

// same does not depend on the order of the names.
func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, name := range a {
		if !slices.Contains(b, name) {
			return false
		}
	}
	return true
}

func (p *Planner) newGroup(v *view, t *Task, priority Priority) *group {
	if len(p.pool) == len(p.groups) {
		p.pool = append(p.pool, &group{})
	}
	g := p.pool[len(p.groups)]
	*g = group{index: int32(len(p.groups)), view: v, name: t.Model, avoid: t.Avoid, pinned: t.Pinned, resources: t.Resources, priority: priority, oldest: t.Ready, prefer: t.Prefer,
		banned: g.banned[:0], needs: g.needs[:0], place: g.place[:0], head: g.head[:0]}
	p.groups = append(p.groups, g)
	for _, name := range t.Resources {
		g.needs = append(g.needs, p.resource(name))
	}
	if g.pinned != "" {
		for i, h := range p.hosts {
			if f := v.fits[i]; p.eligible(h, f, h.find(f), v.embed, g.pinned) {
				g.place = append(g.place, site{})
				p.settleSite(&g.place[len(g.place)-1], i, f, h.find(f))
			}
		}
		return g
	}
	for k := range v.sites {
		if i := v.sites[k].host; slices.Contains(g.avoid, p.hosts[i].ID) {
			g.banned = append(g.banned, i)
		}
	}
	if len(g.banned) == len(v.sites) { // nodes where an earlier attempt failed count only when there is no other
		g.banned = g.banned[:0]
	}
	return g
}

// may reports whether the group may use a host that its model may use.
func (g *group) may(host int) bool { return len(g.banned) == 0 || !slices.Contains(g.banned, host) }

// nodes are the sites that the group may use.
func (g *group) nodes(yield func(s *site) bool) {
	sites := g.sites
	if g.pinned != "" {
		sites = g.place
	}
	for k := range sites {
		if g.may(sites[k].host) && !yield(&sites[k]) {
			return
		}
	}
}

// placed are those of them where the model is in memory or coming, and takes something new.
func (g *group) placed(p *Planner) func(yield func(s *site, r *resident) bool) {
	return func(yield func(s *site, r *resident) bool) {
		for _, k := range g.hot {
			s := &g.sites[k]
			if r := &p.hosts[s.host].residents[s.at]; !r.leaving && g.may(s.host) && !yield(s, r) {
				return
			}
		}
	}
}

// anywhere reports whether the group has any site.
func (g *group) anywhere() bool {
	for range g.nodes {
		return true
	}
	return false
}

// candidate reports whether a host is one of the group's sites.
func (g *group) candidate(host int) bool {
	if g.pinned != "" {
		return slices.ContainsFunc(g.place, func(s site) bool { return s.host == host })
	}
	return g.at[host] >= 0 && g.may(host)
}

// size computes what depends on the mean size of the group's tasks.
func (p *Planner) size(g *group) {
	g.work = g.own.mean()
	least, load := time.Duration(-1), time.Duration(-1)
	for s := range g.nodes {
		if d := g.serve(s); least < 0 || d < least {
			least, g.swift = d, &s.pace
		}
		if load < 0 || s.pace.load < load {
			load = s.pace.load
		}
	}
	slots, free := 0, 0
	for s, r := range g.placed(p) {
		h := p.hosts[s.host]
		h.residents[s.at].queued = true
		slots += r.slots
		if h.begins(r) == 0 {
			free += r.slots - r.busy
		}
	}
	g.bound = p.limits.bound(max(load, 0))
	g.drain = time.Duration(g.tasks) * max(least, 0) / time.Duration(max(slots, 1))
	g.free, g.most = free > 0, 8+2*free
	for _, i := range g.needs { // no more than this can start
		g.most = min(g.most, max(p.resources[i].free, 1))
	}
}

// serve is how long a call of the group's mean size takes on a site.
func (g *group) serve(s *site) time.Duration { return s.pace.serve(g.work, g.embed) }

// runs reports whether the model is loaded at the right context and, as far as the node can tell, wholly on its devices.
func (h *host) runs(f *fit, resident int) bool {
	if !h.inMemory(resident) {
		return false
	}
	return len(f.needs) == 0 || f.room.ok || !h.memory.devices || h.Loaded[resident].VRAMBytes >= h.Loaded[resident].SizeBytes
}

// wrongKind: an embedding model answers no generate call.
func (f *fit) wrongKind(embed bool) bool {
	return f.model != nil && f.model.Embedding && !embed
}

// shunned: the model spilled or ran out of memory there a short while ago, with that context or a smaller one.
func (p *Planner) shunned(h *host, f *fit) bool {
	return p.now.Before(h.shunnedUntil(f.digest, f.context))
}

func (h *host) shunnedUntil(digest string, context int) time.Time {
	until := h.Avoid[digest]
	if u, ok := h.Unfit[digest]; ok && context >= u.Context && u.Until.After(until) {
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
	for range g.placed(p) {
		return true
	}
	for s := range g.nodes {
		if p.hosts[s.host].clearing == g {
			return true
		}
	}
	return false
}

// waiting is how many of the group's tasks were not started.
func (g *group) waiting() int { return g.tasks - g.started }
