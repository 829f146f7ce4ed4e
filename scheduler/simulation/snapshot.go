package simulation

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// snapshot is the nodes as the engine would show them to the scheduler.
func (p *placed) snapshot() []scheduler.Node {
	nodes := make([]scheduler.Node, len(p.nodes))
	for i, n := range p.nodes {
		s := p.w.servers[i]
		total := s.Usable + s.reserve()
		node := scheduler.Node{
			ID: s.Name, Name: s.Name, State: scheduler.NodeUp, LastSeen: epoch.Add(p.w.now), OllamaVersion: "0.17.4",
			Pools:   []scheduler.Pool{{ID: "pool", Kind: s.Kind, Total: known(total), Free: known(n.free)}},
			Devices: []scheduler.Device{{Name: "device", Pool: "pool", Usable: true}},
			Models:  p.models(), Loaded: p.loaded(i), Slots: s.slots(), MaxCalls: s.MaxCalls,
			Loading: n.loading, RoomFor: n.roomFor, Avoid: maps.Clone(n.avoid),
			LoadRate: p.w.speeds.rates[i], Speeds: p.speeds(i), Margins: n.margins,
		}
		if !p.w.known[i] {
			node.State = scheduler.NodeLost
		}
		nodes[i] = node
	}
	return nodes
}

func known(n float64) scheduler.Bytes { return scheduler.Bytes{N: uint64(n), Known: true} }

func (p *placed) models() []scheduler.Model {
	models := make([]scheduler.Model, len(p.w.fleet.Models))
	for j, m := range p.w.fleet.Models {
		models[j] = scheduler.Model{Name: tagged(m.Name), Digest: digest(m.Name), FileBytes: uint64(m.File), Shape: p.w.shapes[j], Embedding: m.Embed}
	}
	return models
}

func (p *placed) speeds(machine int) map[string]scheduler.Speed {
	out := map[string]scheduler.Speed{}
	for j, v := range p.w.speeds.by[machine] {
		if v.Load > 0 || v.Prompt > 0 {
			out[digest(p.w.fleet.Models[j].Name)] = v
		}
	}
	return out
}

// loaded is the report, completed by what the executor did since.
func (p *placed) loaded(machine int) []scheduler.Loaded {
	n := p.nodes[machine]
	out := make([]scheduler.Loaded, len(n.report))
	for j, l := range n.report {
		l.Leaving, l.LastUsed, l.Affinity = n.leaving[l.Digest], n.used[l.Digest], slices.Clone(n.warm[l.Digest])
		for _, c := range n.flights {
			if digest(c.Model) == l.Digest {
				l.Busy++
				l.Calls = append(l.Calls, scheduler.Call{Run: c.Run, Since: epoch.Add(p.shares.since[c]), Work: work(c)})
			}
		}
		out[j] = l
	}
	return out
}

func work(c *call) scheduler.Work {
	return scheduler.Work{Prompt: c.Prompt, Output: c.guess(), Shared: c.Shared}
}

// tasks are the oldest waiting calls of each run and model, as many as the engine shows of a step.
func (p *placed) tasks() []scheduler.Task {
	window := 8
	for _, s := range p.w.servers {
		window += 4 * s.slots()
	}
	type step struct{ run, model string }
	shown := map[step]int{}
	var tasks []scheduler.Task
	for _, c := range p.waiting {
		k := step{c.Run, c.Model}
		if shown[k]++; shown[k] > window {
			continue
		}
		t := scheduler.Task{Key: key(c), Run: c.Run, Model: tagged(c.Model), Context: simContext, Ready: epoch.Add(c.ready),
			Embed: p.w.fleet.Models[c.model].Embed, Priority: c.Priority, Work: work(c), Affinity: c.Affinity}
		for _, i := range c.avoid {
			t.Avoid = append(t.Avoid, p.w.servers[i].Name)
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// shares is the service that each run received, halved every scheduler.ShareHalfLife.
type shares struct {
	updated  time.Duration
	received map[string]float64 // seconds, as of updated
	since    map[*call]time.Duration
}

func newShares() *shares {
	return &shares{received: map[string]float64{}, since: map[*call]time.Duration{}}
}

func (s *shares) begin(c *call, now time.Duration) { s.since[c] = now }

func (s *shares) end(c *call, now time.Duration) {
	s.decay(now)
	s.received[c.Run] += (now - s.since[c]).Seconds()
	delete(s.since, c)
}

func (s *shares) decay(now time.Duration) {
	half := math.Exp2(-(now - s.updated).Seconds() / scheduler.ShareHalfLife.Seconds())
	for run := range s.received {
		s.received[run] *= half
	}
	s.updated = now
}

func (s *shares) at(now time.Duration) map[string]time.Duration {
	s.decay(now)
	out := make(map[string]time.Duration, len(s.received))
	for run, v := range s.received {
		out[run] = seconds(v)
	}
	return out
}
