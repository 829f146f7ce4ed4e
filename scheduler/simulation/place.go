package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Loopkeeper is scheduler.Place with an executor that does and knows what coordinator/engine does: reports every five seconds
// and after each load and unload, and between them only what it ordered itself.
var Loopkeeper = Policy{Name: "loopkeeper", About: "scheduler.Place", start: func(w *world) decider { return newPlaced(w) }}

// epoch is the date of the start of every simulation; zero times mean unknown to the scheduler.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The pauses of coordinator/engine.
const (
	spilledAvoid = 10 * time.Minute
	reportGrace  = 10 * time.Second
)

type placed struct {
	w       *world
	nodes   []*node
	waiting []*call // oldest first
	shares  *shares
	limits  scheduler.Limits
}

// node is what the executor knows of one machine.
type node struct {
	report  []scheduler.Loaded // as last reported
	free    float64
	loading *scheduler.Claim
	loaded  time.Duration // when the load in flight ended; 0 while it runs
	leaving map[string]bool
	roomFor string
	avoid   map[string]time.Time
	used    map[string]time.Time
	flights []*call
	warm    map[string][]string // affinities of what was started last, by digest
	margins map[scheduler.MarginKey]uint64
	took    map[string]float64 // bytes that a load took of the free memory, by digest
}

func newPlaced(w *world) *placed {
	p := &placed{w: w, shares: newShares(), limits: scheduler.Limits{MaxWait: w.MaxWait, Pins: map[string][]string{}}}
	for name, machines := range w.Pins {
		p.limits.Pins[tagged(name)] = machines
	}
	for i := range w.servers {
		p.nodes = append(p.nodes, &node{leaving: map[string]bool{}, avoid: map[string]time.Time{}, used: map[string]time.Time{}, warm: map[string][]string{},
			margins: map[scheduler.MarginKey]uint64{}, took: map[string]float64{}})
		p.look(i)
		w.after(reportEvery*time.Duration(i+1)/time.Duration(len(w.servers)+1), func() { p.beat(i) })
	}
	return p
}

func (p *placed) beat(machine int) {
	if !p.w.servers[machine].down {
		p.look(machine)
	}
	p.w.after(reportEvery, func() { p.beat(machine) })
}

// look is a report: what the machine's Ollama holds, and its free memory.
func (p *placed) look(machine int) {
	n, s := p.nodes[machine], p.w.servers[machine]
	n.report, n.free = nil, s.free()
	for _, r := range s.resident {
		if !r.ready {
			continue
		}
		m := p.w.fleet.Models[r.model]
		l := scheduler.Loaded{Digest: digest(m.Name), Name: tagged(m.Name), Context: simContext, SizeBytes: uint64(p.w.size(machine, r.model)),
			VRAMBytes: uint64(r.size), Since: epoch.Add(r.since), Pinned: slices.Contains(p.w.Pins[m.Name], s.Name)}
		if took, ok := n.took[l.Digest]; ok {
			l.Observed = scheduler.Bytes{N: uint64(took), Known: true}
		}
		n.report = append(n.report, l)
	}
	shown := func(digest string) bool {
		return slices.ContainsFunc(n.report, func(l scheduler.Loaded) bool { return l.Digest == digest })
	}
	if n.loading != nil && n.loaded > 0 && (shown(n.loading.Digest) || p.w.now-n.loaded >= reportGrace) {
		n.loading = nil
	}
	for d := range n.leaving {
		if !shown(d) {
			delete(n.leaving, d)
		}
	}
}

// lookSoon is the report after a load or unload.
func (p *placed) lookSoon(machine int) {
	p.w.after(p.w.servers[machine].Lag, func() {
		if !p.w.servers[machine].down {
			p.look(machine)
		}
	})
}

// What the scheduler knows a model by.
func digest(name string) string { return "digest of " + name }
func tagged(name string) string { return name + ":latest" }

func (p *placed) modelOf(d scheduler.Decision) int {
	return slices.IndexFunc(p.w.fleet.Models, func(m Model) bool { return digest(m.Name) == d.Digest })
}

func (p *placed) arrive(c *call) {
	i, _ := slices.BinarySearchFunc(p.waiting, c, func(a, b *call) int {
		if a.ready != b.ready {
			return int(a.ready - b.ready)
		}
		return a.id - b.id
	})
	p.waiting = slices.Insert(p.waiting, i, c)
}

// step asks the scheduler once and carries out what it decides. As in the engine's turns, calls that become ready together are seen together.
func (p *placed) step() {
	if p.w.unsettled() {
		return
	}
	now := epoch.Add(p.w.now)
	s := scheduler.Snapshot{Now: now, Nodes: p.snapshot(), Waiting: p.tasks(), Received: p.shares.at(p.w.now)}
	began := time.Now()
	plan := scheduler.Place(s, p.limits)
	p.w.result.Decisions = append(p.w.result.Decisions, time.Since(began))
	for _, d := range plan.Decisions {
		switch d.Action {
		case scheduler.Start:
			p.start(d)
		case scheduler.Load:
			p.load(d)
		case scheduler.Unload:
			p.unload(d)
		case scheduler.Impossible:
			p.w.result.Impossible++
		}
	}
}

func (p *placed) start(d scheduler.Decision) {
	i := slices.IndexFunc(p.waiting, func(c *call) bool { return key(c) == d.Task })
	c, machine := p.waiting[i], p.w.fleet.machine(d.Node)
	p.waiting = slices.Delete(p.waiting, i, i+1)
	n := p.nodes[machine]
	n.flights = append(n.flights, c)
	n.used[d.Digest] = epoch.Add(p.w.now)
	if c.Affinity != "" {
		n.warm[d.Digest] = remember(n.warm[d.Digest], c.Affinity, p.w.servers[machine].slots())
	}
	p.shares.begin(c, p.w.now)
	p.w.send(c, machine)
}

func (p *placed) load(d scheduler.Decision) {
	machine, model := p.w.fleet.machine(d.Node), p.modelOf(d)
	n := p.nodes[machine]
	if n.loading != nil {
		return
	}
	claim := &scheduler.Claim{Digest: d.Digest, Name: d.Model, Context: d.Context, Need: d.Need, Since: epoch.Add(p.w.now)}
	n.loading, n.loaded = claim, 0
	delete(n.warm, d.Digest)
	p.w.servers[machine].accept(&request{model: model, done: func(r *resident, _ time.Duration) {
		if n.loading != claim {
			return
		}
		n.loaded = p.w.now
		p.observe(machine, r, d)
		p.lookSoon(machine)
	}})
}

// observe takes up what a load took of the memory. One that spilled is undone and not tried again there for a while.
func (p *placed) observe(machine int, r *resident, d scheduler.Decision) {
	n, s := p.nodes[machine], p.w.servers[machine]
	if r.spilled {
		n.avoid[d.Digest] = epoch.Add(p.w.now + spilledAvoid)
		n.leaving[d.Digest] = true
		s.unload(r.model, func() { p.lookSoon(machine) })
		return
	}
	n.took[d.Digest] = r.size
	slots := s.slots()
	if p.w.fleet.Models[r.model].Embed {
		slots = 1
	}
	need := scheduler.NeedFor(*p.w.shapes[r.model], d.Context, slots, p.w.options(machine))
	k := scheduler.MarginKey{Digest: d.Digest, Context: d.Context, Slots: slots}
	n.margins[k] = uint64(max(r.size-float64(need.Total()-need.Margin), 0))
}

func (p *placed) unload(d scheduler.Decision) {
	machine, n := p.w.fleet.machine(d.Node), p.nodes[p.w.fleet.machine(d.Node)]
	if n.leaving[d.Digest] {
		return
	}
	n.leaving[d.Digest], n.roomFor = true, d.Task
	p.w.result.Unloads++
	p.w.servers[machine].unload(p.modelOf(d), func() { p.lookSoon(machine) })
}

func (p *placed) ended(c *call, machine int, took time.Duration) {
	n := p.nodes[machine]
	n.flights = slices.DeleteFunc(n.flights, func(x *call) bool { return x == c })
	n.used[digest(c.Model)] = epoch.Add(p.w.now)
	p.shares.end(c, p.w.now)
}

func (p *placed) detected(machine int, up bool) {
	n := p.nodes[machine]
	if up {
		p.look(machine)
		return
	}
	for _, c := range n.flights {
		p.shares.end(c, p.w.now)
	}
	n.flights, n.loading = nil, nil
	clear(n.leaving)
}

func key(c *call) string { return fmt.Sprint(c.Run, "/", c.id) }
