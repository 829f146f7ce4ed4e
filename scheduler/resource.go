package scheduler

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// resource is a named resource while a plan is made.
type resource struct {
	Resource
	name    string
	known   bool // it has a cap or a rate
	free    int  // starts that cap and rate allow now
	waiting int  // tasks that would hold it
}

// resource is the index of a resource by name.
func (p *Planner) resource(name string) int {
	i := slices.IndexFunc(p.resources, func(r resource) bool { return r.name == name })
	if i >= 0 {
		return i
	}
	r := resource{name: name, free: math.MaxInt}
	r.Resource, r.known = p.caps[name]
	if r.Cap > 0 {
		r.free = max(r.Cap-r.InUse, 0)
	}
	if r.Rate > 0 {
		r.free = min(r.free, int(max(r.Tokens, 0)))
	}
	p.resources = append(p.resources, r)
	return len(p.resources) - 1
}

// closed is the first resource of the group that allows no start now, or nil.
func (p *Planner) closed(g *group) *resource {
	for _, i := range g.needs {
		if p.resources[i].free <= 0 {
			return &p.resources[i]
		}
	}
	return nil
}

// hold takes one of each resource of the group.
func (p *Planner) hold(g *group) {
	for _, i := range g.needs {
		r := &p.resources[i]
		r.InUse++
		r.Tokens--
		r.free--
		r.waiting--
	}
}

// keepResources (rule 7) keeps what is free of the resources of a task that waits for another one beyond its bound: younger
// tasks that need fewer would else take them in turns for ever. Groups are in the order of their oldest task.
func (p *Planner) keepResources() {
	for _, g := range p.groups {
		for _, i := range g.needs {
			p.resources[i].waiting += g.tasks
		}
		if p.closed(g) == nil || !p.overdue(g) {
			continue
		}
		for _, i := range g.needs {
			p.resources[i].free--
		}
	}
}

// open is how many tasks of the group its resources let start now.
func (p *Planner) open(g *group) int {
	n := g.waiting()
	for _, i := range g.needs {
		n = min(n, p.resources[i].free)
	}
	return max(n, 0)
}

// next is until the rate allows a start.
func (r *resource) next() time.Duration {
	if r.Rate <= 0 || r.Tokens >= 1 {
		return 0
	}
	return time.Duration((1 - r.Tokens) / r.Rate * float64(time.Second))
}

// queues are what waits for each resource, by name.
func (p *Planner) queues() []Queue {
	for name, r := range p.caps { // also where nothing of it is shown
		if r.Behind > 0 {
			p.resource(name)
		}
	}
	var out []Queue
	for i := range p.resources {
		r := &p.resources[i]
		out = append(out, Queue{Resource: r.name, Cap: r.Cap, InUse: r.InUse, Waiting: r.waiting + r.Behind, Next: r.next()})
	}
	slices.SortFunc(out, func(a, b Queue) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}
