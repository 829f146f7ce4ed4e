package simulation

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

const (
	reportEvery = 5 * time.Second
	lostAfter   = 15 * time.Second // without reports, as in coordinator/fleet
	longest     = 48 * time.Hour   // a simulation that takes longer is stuck
)

// Fault is something that goes wrong on a machine.
type Fault struct {
	At      time.Duration
	Machine string
	Kind    FaultKind
	Bytes   float64 // of Foreign
}

// FaultKind says what goes wrong.
type FaultKind int

// The faults.
const (
	Lose     FaultKind = iota // the machine is gone, with all that it holds and runs
	LoseLoad                  // the same, in the middle of its next load
	Back                      // it comes back, empty
	Foreign                   // another program takes that much memory as soon as it is free; 0 bytes end it
)

// Policy is a way to choose machines.
type Policy struct {
	Name  string
	About string // one clause: what it models
	start func(w *world) decider
}

// decider is a policy at work in one world.
type decider interface {
	arrive(c *call)                                 // c could run now; lost calls arrive again
	step()                                          // something happened
	ended(c *call, machine int, took time.Duration) // after its last step, before the next
	detected(machine int, up bool)                  // a machine was found lost, or is back
}

// call is a call at work.
type call struct {
	Call
	id      int
	model   int
	ready   time.Duration
	started time.Duration
	end     time.Duration
	machine int // that it was sent to last
	over    bool
	prompt  int   // tokens of the prompt that it had to work on
	blocked int   // calls that have to end first
	next    []int // calls that wait for this one
	avoid   []int // machines that were lost with it
}

// guess is the size of the output that policies are told.
func (c *call) guess() int {
	if c.Guess > 0 {
		return c.Guess
	}
	return c.Output
}

// world is one simulation.
type world struct {
	*Workload
	fleet    *Fleet
	now      time.Duration
	events   events
	sequence int
	servers  []*server
	known    []bool // by machine: counts as up
	calls    []*call
	left     int // calls that have not ended
	shapes   []*scheduler.Shape
	speeds   *speeds
	needs    [][]float64 // by machine and model: bytes as scheduler.NeedFor counts them
	factor   [][]float64 // by machine and model: what a load really takes, as a share of the need
	policy   decider
	result   *Result
	trace    io.Writer // nil for none
}

// Run simulates a workload under a policy. The same seed gives the same calls for every policy, and the same result for the
// same policy, apart from Result.Decisions.
func Run(wl *Workload, p Policy, seed uint64) (*Result, error) {
	return run(wl, p, wl.calls(seed), seed, nil)
}

// Trace does the same, and writes a line for whatever happens.
func Trace(wl *Workload, p Policy, seed uint64, to io.Writer) (*Result, error) {
	return run(wl, p, wl.calls(seed), seed, to)
}

func (wl *Workload) calls(seed uint64) []Call { return wl.Make(rand.New(rand.NewPCG(seed, 1))) }

func newWorld(wl *Workload, list []Call, seed uint64) *world {
	w := &world{Workload: wl, fleet: &wl.Fleet, result: &Result{}, left: len(list)}
	w.furnish(rand.New(rand.NewPCG(seed, 2)))
	for i := range list {
		w.calls = append(w.calls, &call{Call: list[i], id: i, model: wl.Fleet.model(list[i].Model), blocked: len(list[i].After), machine: -1})
	}
	for _, c := range w.calls {
		for _, before := range c.After {
			w.calls[before].next = append(w.calls[before].next, c.id)
		}
	}
	w.speeds = newSpeeds(w)
	return w
}

func run(wl *Workload, p Policy, list []Call, seed uint64, trace io.Writer) (*Result, error) {
	w := newWorld(wl, list, seed)
	w.trace = trace
	for _, c := range w.calls {
		if c.blocked == 0 {
			w.after(c.At, func() { w.arrive(c) })
		}
	}
	for _, f := range wl.Faults {
		w.after(f.At, func() { w.strike(f) })
	}
	w.policy = p.start(w)
	for w.left > 0 {
		if len(w.events) == 0 || w.now > longest {
			return nil, fmt.Errorf("%s, %s, seed %d: %d of %d calls have not ended after %s", wl.Name, p.Name, seed, w.left, len(w.calls), w.now)
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		w.policy.step()
	}
	w.result.measure(w)
	return w.result, nil
}

func (w *world) furnish(rnd *rand.Rand) {
	for i := range w.fleet.Models {
		w.shapes = append(w.shapes, w.fleet.Models[i].shape())
	}
	for i := range w.fleet.Machines {
		m := &w.fleet.Machines[i]
		w.servers = append(w.servers, &server{Machine: m, w: w, index: i})
		w.known = append(w.known, true)
		var needs, factors []float64
		for j := range w.fleet.Models {
			slots := m.slots()
			if w.fleet.Models[j].Embed {
				slots = 1
			}
			needs = append(needs, float64(scheduler.NeedFor(*w.shapes[j], simContext, slots, w.options(i)).Total()))
			factors = append(factors, 1+w.Error*(2*rnd.Float64()-1))
		}
		w.needs, w.factor = append(w.needs, needs), append(w.factor, factors)
	}
}

func (w *world) options(machine int) scheduler.NeedOptions {
	return scheduler.NeedOptions{GPUs: 1, Metal: w.fleet.Machines[machine].Kind == scheduler.PoolUnified}
}

// need is what policies take a model for on a machine, and size what its load really takes there, in bytes.
func (w *world) need(machine, model int) float64 { return w.needs[machine][model] }
func (w *world) size(machine, model int) float64 {
	return w.needs[machine][model] * w.factor[machine][model]
}

// fits says whether a model fits an empty machine as far as policies know.
func (w *world) fits(model, machine int) bool {
	return w.need(machine, model) <= w.fleet.Machines[machine].Usable
}

// service is how long a call with that output runs alone on a machine. On one that cannot hold the model it runs partly on the CPU: the
// slowest known speed of the model, and that divided by the spill factor.
func (w *world) service(c *call, machine, output int) time.Duration {
	return w.serviceOf(c, machine, c.Prompt, output)
}

func (w *world) serviceOf(c *call, machine, prompt, output int) time.Duration {
	r, known := w.fleet.Machines[machine].Rates[c.Model]
	factor := 1.0
	if !known || !w.fits(c.model, machine) {
		r, factor = w.slowest(c.Model), spillFactor
	}
	return seconds(factor * (float64(prompt)/r.Prompt + float64(output)/r.Decode))
}

func (w *world) slowest(model string) Rate {
	var slowest Rate
	for i := range w.fleet.Machines {
		if r, ok := w.fleet.Machines[i].Rates[model]; ok && (slowest.Prompt == 0 || r.Prompt < slowest.Prompt) {
			slowest = r
		}
	}
	return slowest
}

func (w *world) arrive(c *call) {
	c.ready = w.now
	w.policy.arrive(c)
}

// send gives a call to a machine.
func (w *world) send(c *call, machine int) {
	c.machine = machine
	w.servers[machine].accept(&request{model: c.model, call: c})
}

func (w *world) ended(c *call, machine int, took time.Duration) {
	w.note(machine, "end", c)
	c.end, c.over = w.now, true
	w.left--
	w.speeds.learn(c, machine, took)
	w.policy.ended(c, machine, took)
	for _, id := range c.next {
		if n := w.calls[id]; n.blocked > 0 {
			n.blocked--
			if n.blocked == 0 {
				w.after(max(n.At-w.now, 0), func() { w.arrive(n) })
			}
		}
	}
}

func (w *world) strike(f Fault) {
	i := w.fleet.machine(f.Machine)
	s := w.servers[i]
	switch f.Kind {
	case Lose:
		s.lose()
	case LoseLoad:
		s.broken = true
	case Back:
		if !s.down {
			s.broken = false
			return
		}
		w.detect(i)
		s.down = false
		w.known[i] = true
		w.policy.detected(i, true)
	case Foreign:
		s.advance()
		s.foreign = f.Bytes
		s.pump()
	}
}

// detect tells the policy that a machine is lost, and gives it back the calls that were there.
func (w *world) detect(machine int) {
	if !w.known[machine] {
		return
	}
	w.known[machine] = false
	w.servers[machine].pending = nil
	w.policy.detected(machine, false)
	for _, c := range w.calls {
		if c.machine == machine && !c.over {
			c.machine, c.avoid = -1, append(slices.Clone(c.avoid), machine)
			w.policy.arrive(c)
		}
	}
}

// note writes a line of the trace; what it is about is a model or a call.
func (w *world) note(machine int, what string, about any) {
	if w.trace == nil {
		return
	}
	if c, ok := about.(*call); ok {
		about = fmt.Sprintf("%s %s, ready %.1f", c.Model, key(c), c.ready.Seconds())
	}
	if model, ok := about.(int); ok {
		about = w.fleet.Models[model].Name
	}
	fmt.Fprintf(w.trace, "%8.1f %-9s %-8s %v\n", w.now.Seconds(), w.fleet.Machines[machine].Name, what, about)
}

func (w *world) after(d time.Duration, do func()) {
	w.sequence++
	heap.Push(&w.events, event{w.now + d, w.sequence, do})
}

// unsettled says that more happens at this very instant.
func (w *world) unsettled() bool { return len(w.events) > 0 && w.events[0].at == w.now }

// event is something that happens at a time; those at the same time happen in the order in which they were planned.
type event struct {
	at       time.Duration
	sequence int
	do       func()
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].sequence < e[j].sequence
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
