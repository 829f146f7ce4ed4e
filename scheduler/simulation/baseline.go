package simulation

import (
	"slices"
	"time"
)

// The policies of other routers bind a call to a machine when it arrives, and its Ollama queues it. They are models of a
// policy, not of anybody's code. What a policy does not look at it does not get: only ECT reads speeds.

// early is a policy that binds on arrival.
type early struct {
	w      *world
	choose func(e *early, c *call, among []int) int
	fit    bool // looks only at machines that can hold the model
	turn   int
	parked []*call // that no machine is up for
}

func binding(name, about string, fit bool, choose func(e *early, c *call, among []int) int) Policy {
	return Policy{Name: name, About: about, start: func(w *world) decider { return &early{w: w, choose: choose, fit: fit} }}
}

func (e *early) arrive(c *call) {
	among := e.w.candidates(c, e.fit)
	if len(among) == 0 {
		e.parked = append(e.parked, c)
		return
	}
	e.w.send(c, e.choose(e, c, among))
}

func (e *early) step()                           {}
func (e *early) ended(*call, int, time.Duration) {}
func (e *early) detected(_ int, up bool) {
	if parked := e.parked; up {
		e.parked = nil
		for _, c := range parked {
			e.arrive(c)
		}
	}
}

// candidates are the machines that count as up, and with a fit filter can hold the call's model.
func (w *world) candidates(c *call, fit bool) []int {
	var among []int
	for i := range w.servers {
		if w.known[i] && (!fit || w.fits(c.model, i)) {
			among = append(among, i)
		}
	}
	return among
}

// connections are the calls that were sent to a machine and have not ended.
func (s *server) connections() int {
	return s.running() + len(s.pending)
}

func roundRobin(e *early, _ *call, among []int) int {
	i := among[e.turn%len(among)]
	e.turn++
	return i
}

func leastConnections(e *early, _ *call, among []int) int {
	return leastBy(among, func(i int) float64 { return float64(e.w.servers[i].connections()) })
}

// tiers is Olla's priority balancer: the best tier that is up, whatever its queue; within it the least connections.
func tiers(e *early, _ *call, among []int) int {
	best := slices.MinFunc(among, func(a, b int) int { return e.w.servers[a].Tier - e.w.servers[b].Tier })
	tier := e.w.servers[best].Tier
	return leastConnections(e, nil, slices.DeleteFunc(slices.Clone(among), func(i int) bool { return e.w.servers[i].Tier != tier }))
}

// loadedFirst is nomyo's: machines that have the model in memory, of those the one with the fewest connections.
func loadedFirst(e *early, c *call, among []int) int {
	hot := slices.DeleteFunc(slices.Clone(among), func(i int) bool { return !e.w.servers[i].holds(c.model) })
	if len(hot) == 0 {
		hot = among
	}
	return leastConnections(e, c, hot)
}

// completion is the machine with the earliest expected completion, loads and queue counted.
func completion(e *early, c *call, among []int) int {
	return leastBy(among, func(i int) float64 { return e.w.expected(c, i).Seconds() })
}

// expected is how long until the call would end on a machine, were it sent there now.
func (w *world) expected(c *call, i int) time.Duration {
	s := w.servers[i]
	there := make([]bool, len(w.fleet.Models))
	var queue time.Duration
	for _, r := range s.resident {
		there[r.model] = true
		for _, f := range r.running {
			queue += max(w.speeds.service(f.call, i)-(w.now-f.started), 0)
		}
	}
	if s.loading != nil {
		queue += max(w.speeds.load(i, s.loading.model)-(w.now-s.loading.used), 0)
	}
	cost := func(x *call) time.Duration {
		d := w.speeds.service(x, i)
		if !there[x.model] {
			d += w.speeds.load(i, x.model)
		}
		there[x.model] = true
		return d
	}
	for _, q := range s.pending {
		if q.call != nil {
			queue += cost(q.call)
		}
	}
	return seconds(queue.Seconds()/s.gain()) + cost(c)
}

// leastBy is the first of the machines with the least value.
func leastBy(among []int, value func(int) float64) int {
	best, least := -1, 0.0
	for _, i := range among {
		if v := value(i); best < 0 || v < least {
			best, least = i, v
		}
	}
	return best
}

// late is FIFO with late binding: the oldest call goes to a machine with a free slot, one that has its model before others.
type late struct {
	w     *world
	queue []*call
}

func (l *late) arrive(c *call) { l.queue = append(l.queue, c) }

func (l *late) step() {
	for _, c := range slices.Clone(l.queue) {
		var idle, hot []int
		for _, i := range l.w.candidates(c, true) {
			s := l.w.servers[i]
			if s.room(c.model) {
				idle = append(idle, i)
				if s.holds(c.model) {
					hot = append(hot, i)
				}
			}
		}
		if len(hot) > 0 {
			idle = hot
		}
		if len(idle) > 0 {
			l.queue = slices.DeleteFunc(l.queue, func(x *call) bool { return x == c })
			l.w.send(c, idle[0])
		}
	}
}

// room says whether a call of the model would not queue behind others on the machine.
func (s *server) room(model int) bool {
	if len(s.pending) > 0 || s.MaxCalls > 0 && s.running() >= s.MaxCalls {
		return false
	}
	if r := s.find(model); r != nil {
		return len(r.running) < s.slots()
	}
	return s.loading == nil && s.running() < s.slots()
}

func (l *late) ended(*call, int, time.Duration) {}
func (l *late) detected(int, bool)              {}

// Baselines are the policies of other routers. Without a fit filter a call may go to a machine that cannot hold its model.
var Baselines = []Policy{
	binding("round-robin, no fit", "each machine in turn", false, roundRobin),
	binding("least-connections, no fit", "the machine with the fewest calls", false, leastConnections),
	binding("round-robin", "each machine in turn that can hold the model", true, roundRobin),
	binding("least-connections", "of the machines that can hold the model the one with the fewest calls", true, leastConnections),
	binding("priority tiers", "as Olla: the best tier that can hold the model, whatever its queue", true, tiers),
	binding("loaded-first", "as nomyo: machines with the model in memory, of those the one with the fewest calls", true, loadedFirst),
	binding("early ECT", "binds on arrival to the earliest expected completion", true, completion),
	{Name: "late FIFO", About: "binds the oldest call when a slot is free, hot models first", start: func(w *world) decider { return &late{w: w} }},
}
