package simulation

import (
	"math"
	"slices"
)

// optimum searches every schedule of the calls of a workload that are all ready at the start, and returns the least sum of their
// flow times in seconds. The machines have to be Solo with one call at a time and need no time for an unload: then a schedule is an order of
// calls on each machine and the choice of what each load displaces, and nothing is gained by waiting.
func (w *world) optimum() float64 {
	o := &search{w: w, best: math.Inf(1), least: make([]float64, len(w.calls))}
	for i, c := range w.calls {
		o.least[i] = w.fastest(c).Seconds()
	}
	o.visit(state{free: make([]float64, len(w.servers)), held: make([][]int, len(w.servers))}, 0)
	return o.best
}

type search struct {
	w     *world
	best  float64
	least []float64 // by call: seconds on its fastest machine
}

// state is a partial schedule.
type state struct {
	placed int       // bit by call
	free   []float64 // by machine: when its last call ends, seconds
	held   [][]int   // by machine: the models in memory
	last   float64   // when the call placed last begins: later ones do not begin before it, so that no schedule is seen twice
}

func (o *search) visit(s state, sum float64) {
	bound, rest := sum, 0
	for i := range o.w.calls {
		if s.placed&(1<<i) == 0 {
			bound += slices.Min(s.free) + o.least[i]
			rest++
		}
	}
	if bound >= o.best {
		return
	}
	if rest == 0 {
		o.best = sum
		return
	}
	for i, c := range o.w.calls {
		if s.placed&(1<<i) != 0 || o.twin(s, i) {
			continue
		}
		for m := range o.w.servers {
			if s.free[m] >= s.last && o.w.fits(c.model, m) {
				o.place(s, sum, i, m)
			}
		}
	}
}

// twin says that a shorter call of the same model is still to be placed. It comes first in some optimal schedule, because
// on every machine the shorter of two is the shorter one when their prompts and outputs are.
func (o *search) twin(s state, i int) bool {
	a := o.w.calls[i]
	for j, b := range o.w.calls {
		if j != i && s.placed&(1<<j) == 0 && a.model == b.model && b.Prompt <= a.Prompt && b.Output <= a.Output &&
			(b.Prompt < a.Prompt || b.Output < a.Output || j < i) {
			return true
		}
	}
	return false
}

// place tries a call as the next one of a machine, with every set of models that its load could displace.
func (o *search) place(s state, sum float64, i, machine int) {
	c := o.w.calls[i]
	next := state{placed: s.placed | 1<<i, free: slices.Clone(s.free), held: slices.Clone(s.held), last: s.free[machine]}
	serve := o.w.service(c, machine, c.Output).Seconds()
	if slices.Contains(s.held[machine], c.model) {
		next.free[machine] += serve
		o.visit(next, sum+next.free[machine])
		return
	}
	next.free[machine] += o.w.servers[machine].loadTime(&o.w.fleet.Models[c.model]).Seconds() + serve
	for kept := range 1 << len(s.held[machine]) {
		held := []int{c.model}
		size := o.w.need(machine, c.model)
		for k, model := range s.held[machine] {
			if kept&(1<<k) != 0 {
				held = append(held, model)
				size += o.w.need(machine, model)
			}
		}
		if size <= o.w.fleet.Machines[machine].Usable {
			next.held[machine] = held
			o.visit(next, sum+next.free[machine])
		}
	}
}

// Optimum is the least mean flow time in seconds of any schedule for the calls of a seed, all taken as ready at the start.
func Optimum(wl *Workload, seed uint64) float64 {
	w := newWorld(wl, wl.calls(seed), seed)
	return w.optimum() / float64(len(w.calls))
}
