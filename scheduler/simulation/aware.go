package simulation

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Aware is the policy of the research prototype itself: late binding by expected completion, and calls that waited for longer
// than age (and than twice their cheapest load) first. It is here to hold this simulator against that one. regret weighs
// the reload of what a load displaces.
func Aware(name string, regret float64, age time.Duration) Policy {
	return Policy{Name: name, About: "the research prototype's own", start: func(w *world) decider {
		return &aware{late: late{w: w}, regret: regret, age: age}
	}}
}

type aware struct {
	late
	regret float64
	age    time.Duration
}

// option is a call that could start now.
type option struct {
	call    *call
	machine int
	old     bool
	hot     bool
	rank    float64
}

func (a *aware) step() {
	for len(a.queue) > 0 {
		var best *option
		for _, c := range a.queue {
			if o := a.option(c); o != nil && (best == nil || compareOptions(o, best) < 0) {
				best = o
			}
		}
		if best == nil {
			return
		}
		a.queue = slices.DeleteFunc(a.queue, func(c *call) bool { return c == best.call })
		for _, model := range a.victims(best.call.model, best.machine) {
			a.w.servers[best.machine].unload(model, func() {})
		}
		a.w.send(best.call, best.machine)
	}
}

func compareOptions(a, b *option) int {
	first := func(x bool) int {
		if x {
			return 0
		}
		return 1
	}
	return cmp.Or(first(a.old)-first(b.old), first(a.hot)-first(b.hot), cmp.Compare(a.rank, b.rank), a.call.id-b.call.id)
}

func (a *aware) option(c *call) *option {
	among := a.w.candidates(c, true)
	if len(among) == 0 {
		return nil
	}
	waited := a.w.now - c.ready
	finish := func(i int) float64 { return a.finish(c, i) }
	i := leastBy(among, finish)
	cheapest := a.w.speeds.load(leastBy(among, func(k int) float64 { return a.w.speeds.load(k, c.model).Seconds() }), c.model)
	old := waited > max(a.age, 2*cheapest)
	idle := func(k int) bool {
		s := a.w.servers[k]
		return s.running() == 0 && len(s.pending) == 0 && s.loading == nil
	}
	if old {
		if free := slices.DeleteFunc(slices.Clone(among), func(k int) bool { return !idle(k) }); len(free) > 0 {
			i = leastBy(free, finish)
		}
	}
	if !idle(i) {
		return nil
	}
	rank := a.w.speeds.service(c, i).Seconds() - 0.5*waited.Seconds()
	return &option{call: c, machine: i, old: old, hot: a.w.servers[i].holds(c.model), rank: rank}
}

// finish is the expected completion from now, in seconds.
func (a *aware) finish(c *call, i int) float64 {
	s := a.w.servers[i]
	var busy time.Duration
	for _, r := range s.resident {
		for _, f := range r.running {
			busy += max(a.w.speeds.service(f.call, i)-(a.w.now-f.started), 0)
		}
	}
	if s.loading != nil {
		busy += max(a.w.speeds.load(i, s.loading.model)-(a.w.now-s.loading.used), 0)
	}
	for _, q := range s.pending {
		busy += a.w.speeds.service(q.call, i)
	}
	cost := busy.Seconds() + a.w.speeds.service(c, i).Seconds()
	if s.holds(c.model) {
		return cost
	}
	cost += a.w.speeds.load(i, c.model).Seconds()
	for _, x := range a.victims(c.model, i) {
		cost += a.regret * a.reload(x, i)
	}
	return cost
}

// reload is what it costs to load a displaced model again, in seconds, as far as that will be needed.
func (a *aware) reload(model, machine int) float64 {
	wanted := a.demand(model)
	elsewhere := slices.ContainsFunc(a.w.servers, func(s *server) bool { return s.index != machine && s.holds(model) })
	switch {
	case elsewhere && wanted <= 1:
		return 0
	case wanted > 0:
		return a.w.speeds.load(machine, model).Seconds()
	default:
		return a.w.speeds.load(machine, model).Seconds() * 0.5 * a.recent(machine, model)
	}
}

func (a *aware) demand(model int) int {
	n := 0
	for _, c := range a.queue {
		if c.model == model {
			n++
		}
	}
	return n
}

func (a *aware) recent(machine, model int) float64 {
	return math.Exp(-a.w.age(machine, model).Seconds() / 120)
}

// age is the time since a model in memory was used; until the expected end it is negative, as in the prototype.
func (w *world) age(machine, model int) time.Duration {
	s := w.servers[machine]
	r := s.find(model)
	used := r.used
	for _, f := range r.running {
		used = max(used, f.started+w.speeds.service(f.call, machine))
	}
	if !r.ready {
		used += w.speeds.load(machine, model)
		for _, q := range s.pending {
			used += w.speeds.service(q.call, machine)
		}
	}
	return w.now - used
}

// victims are the models to evict for another, those with the least demand × reload per byte first.
func (a *aware) victims(model, machine int) []int {
	s := a.w.servers[machine]
	if s.holds(model) {
		return nil
	}
	keep := func(r *resident) float64 {
		demand := float64(a.demand(r.model)) + 0.3*a.recent(machine, r.model)
		return demand * a.w.speeds.load(machine, r.model).Seconds() / a.w.need(machine, r.model)
	}
	order := slices.Clone(s.resident)
	slices.SortStableFunc(order, func(x, y *resident) int { return cmp.Compare(keep(x), keep(y)) })
	free := s.Usable
	for _, r := range s.resident {
		free -= a.w.need(machine, r.model)
	}
	var out []int
	for _, r := range order {
		if a.w.need(machine, model) <= free {
			break
		}
		out = append(out, r.model)
		free += a.w.need(machine, r.model)
	}
	return out
}
