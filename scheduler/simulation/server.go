package simulation

import (
	"math"
	"slices"
	"time"
)

// The assumptions about a machine that no source has a figure for.
const (
	spillFactor = 8    // a model that is partly in host memory is this much slower, as in the research prototype
	shareLoss   = 0.35 // each further call of the same model slows all of them by this share; batched decoding is memory bound
)

// server is one Ollama on one machine. It takes requests in order: for a model in memory they run as slots allow; for any
// other it unloads idle models, the longest unused first, until the model fits, and when nothing is left to unload it loads
// it partly into host memory. While a request waits for memory, those behind it wait too.
type server struct {
	*Machine
	w        *world
	index    int
	resident []*resident
	pending  []*request
	loading  *resident
	foreign  float64 // bytes that another program takes as soon as they are free
	down     bool
	broken   bool          // the next load breaks the machine half-way
	at       time.Duration // up to when running calls have been advanced
	version  int           // of the event for the next end of a call
}

// resident is a model in memory.
type resident struct {
	model   int
	size    float64 // bytes it really takes
	since   time.Duration
	used    time.Duration
	ready   bool
	leaving bool
	spilled bool
	running []*flight
	warm    []string // affinities of the prompts in its slots, newest first
	gone    []func() // callers of unload
}

// request is a call, or the load of a model without one.
type request struct {
	model int
	call  *call                                 // nil for a load
	done  func(r *resident, took time.Duration) // of a load
}

// flight is a call that runs.
type flight struct {
	call    *call
	started time.Duration
	left    float64 // seconds of work at full speed
}

func (s *server) find(model int) *resident {
	for _, r := range s.resident {
		if r.model == model {
			return r
		}
	}
	return nil
}

// holds says whether the model is in memory or on its way there.
func (s *server) holds(model int) bool { r := s.find(model); return r != nil && !r.leaving }

func (s *server) running() int {
	n := 0
	for _, r := range s.resident {
		n += len(r.running)
	}
	return n
}

// free is the memory in bytes that a load could take now.
func (s *server) free() float64 {
	free := s.Usable - s.foreign
	for _, r := range s.resident {
		free -= r.size
	}
	return max(free, 0)
}

func (s *server) accept(q *request) {
	s.advance()
	s.pending = append(s.pending, q)
	s.pump()
}

// pump starts what can start, and then schedules the next end of a call.
func (s *server) pump() {
	for i := 0; i < len(s.pending) && !s.down; {
		q := s.pending[i]
		verdict := s.try(q, i)
		if verdict == blocks {
			break
		}
		if verdict == waits {
			i++
			continue
		}
		s.pending = slices.Delete(s.pending, i, i+1)
	}
	s.schedule()
}

type verdict int

const (
	done   verdict = iota
	waits          // for a slot or its load; those behind it may go on
	blocks         // those behind it wait as well
)

func (s *server) try(q *request, position int) verdict {
	r := s.find(q.model)
	switch {
	case r == nil:
		return s.tryLoad(q, position)
	case r.leaving, s.Solo && s.loading != nil:
		return blocks
	case !r.ready:
		return waits
	case q.call == nil:
		s.w.after(0, func() { q.done(r, 0) })
		return done
	case s.MaxCalls > 0 && s.running() >= s.MaxCalls:
		return blocks
	case len(r.running) >= s.slots():
		return waits
	}
	s.start(r, q.call)
	return done
}

func (s *server) tryLoad(q *request, position int) verdict {
	if s.loading != nil || s.Solo && s.running() > 0 {
		return blocks
	}
	size := s.w.size(s.index, q.model)
	for s.free() < size {
		if slices.ContainsFunc(s.resident, func(r *resident) bool { return r.leaving }) {
			return blocks
		}
		victim := s.oldestIdle(position)
		if victim == nil && len(s.resident) > 0 {
			return blocks
		}
		if victim == nil {
			break
		}
		s.w.result.Evictions++
		s.drop(victim)
	}
	s.load(q.model, size)
	return waits
}

// oldestIdle is the model to unload next: idle, and not asked for by a request before the one that needs the room.
func (s *server) oldestIdle(position int) *resident {
	var oldest *resident
	for _, r := range s.resident {
		asked := slices.ContainsFunc(s.pending[:position], func(q *request) bool { return q.model == r.model })
		if r.ready && !r.leaving && !asked && len(r.running) == 0 && (oldest == nil || r.used < oldest.used) {
			oldest = r
		}
	}
	return oldest
}

func (s *server) load(model int, size float64) {
	r := &resident{model: model, size: min(size, s.free()), spilled: size > s.free(), used: s.w.now}
	took := s.loadTime(&s.w.fleet.Models[model])
	s.w.note(s.index, "load", model)
	s.resident, s.loading = append(s.resident, r), r
	s.w.result.Swaps++
	s.w.result.Loading += took
	if r.spilled {
		s.w.result.SpilledLoads++
	}
	if s.broken {
		s.broken = false
		s.w.after(took/2, s.lose)
	}
	s.w.after(took, func() {
		if s.loading != r {
			return // lost meanwhile
		}
		s.advance()
		s.loading, r.ready, r.since, r.used = nil, true, s.w.now, s.w.now
		s.w.speeds.learnLoad(s.index, model, took)
		for i := 0; i < len(s.pending); i++ {
			if q := s.pending[i]; q.call == nil && q.model == model {
				s.pending = slices.Delete(s.pending, i, i+1)
				q.done(r, took)
				break
			}
		}
		s.pump()
	})
}

// unload removes a model, after the calls that run on it; then is called when its memory is free.
func (s *server) unload(model int, then func()) {
	r := s.find(model)
	if r == nil || s.down {
		s.w.after(0, then)
		return
	}
	if len(r.running) > 0 || !r.ready {
		s.w.result.BusyEvictions++
	}
	s.advance()
	r.gone = append(r.gone, then)
	r.leaving = true
	s.settle(r)
	s.pump()
}

// settle lets a leaving model go once nothing runs on it.
func (s *server) settle(r *resident) {
	if r.leaving && len(r.running) == 0 && len(r.gone) > 0 {
		s.drop(r)
	}
}

// drop frees a model's memory, at once when the machine needs no time for that.
func (s *server) drop(r *resident) {
	r.leaving = true
	s.w.note(s.index, "unload", r.model)
	then := r.gone
	r.gone = nil
	remove := func() {
		if s.loading == r {
			s.loading = nil
		}
		s.resident = slices.DeleteFunc(s.resident, func(x *resident) bool { return x == r })
		for _, f := range then {
			f()
		}
	}
	if s.Unload == 0 {
		remove()
		return
	}
	s.w.after(s.Unload, func() { s.advance(); remove(); s.pump() })
}

func (s *server) start(r *resident, c *call) {
	c.prompt = c.Prompt
	if c.Affinity != "" && slices.Contains(r.warm, c.Affinity) {
		c.prompt -= c.Shared
	}
	r.warm = remember(r.warm, c.Affinity, s.slots())
	f := &flight{call: c, started: s.w.now, left: s.w.serviceOf(c, s.index, c.prompt, c.Output).Seconds()}
	if r.spilled && s.w.fits(c.model, s.index) {
		f.left *= spillFactor
	}
	if r.spilled {
		s.w.result.Spills++
	}
	s.w.note(s.index, "start", c)
	c.started = s.w.now
	r.running, r.used = append(r.running, f), s.w.now
}

// remember puts an affinity first, and forgets the oldest beyond the slots.
func remember(warm []string, affinity string, slots int) []string {
	rest := slices.DeleteFunc(slices.Clone(warm), func(a string) bool { return a == affinity })
	warm = append([]string{affinity}, rest...)
	return warm[:min(len(warm), slots)]
}

// speed is the share of its full speed at which each call of a model runs now.
func (s *server) speed(r *resident) float64 {
	models := 0
	for _, x := range s.resident {
		if len(x.running) > 0 {
			models++
		}
	}
	return 1 / (float64(models) * (1 + shareLoss*float64(len(r.running)-1)))
}

// gain is how many calls' worth of work the machine does at once at best.
func (m *Machine) gain() float64 {
	n := float64(m.slots())
	if m.MaxCalls > 0 {
		n = min(n, float64(m.MaxCalls))
	}
	return n / (1 + shareLoss*(n-1))
}

// advance brings the running calls up to now.
func (s *server) advance() {
	passed := (s.w.now - s.at).Seconds()
	s.at = s.w.now
	for _, r := range s.resident {
		if len(r.running) == 0 {
			continue
		}
		speed := s.speed(r)
		for _, f := range r.running {
			f.left -= passed * speed
		}
	}
}

// schedule sets the event for the next end of a call.
func (s *server) schedule() {
	s.version++
	next := math.Inf(1)
	for _, r := range s.resident {
		for _, f := range r.running {
			next = min(next, f.left/s.speed(r))
		}
	}
	if math.IsInf(next, 1) {
		return
	}
	version := s.version
	s.w.after(time.Duration(math.Ceil(max(next, 0)*float64(time.Second))), func() {
		if version == s.version {
			s.end()
		}
	})
}

// end ends the calls whose work is done.
func (s *server) end() {
	s.advance()
	const done = 1e-8 // seconds; what rounding to nanoseconds leaves
	for _, r := range slices.Clone(s.resident) {
		for _, f := range slices.Clone(r.running) {
			if f.left > done {
				continue
			}
			r.running = slices.DeleteFunc(r.running, func(x *flight) bool { return x == f })
			r.used = s.w.now
			s.w.ended(f.call, s.index, s.w.now-f.started)
		}
		s.settle(r)
	}
	s.pump()
}

// lose takes the machine away, with all that it holds and runs.
func (s *server) lose() {
	s.advance()
	s.w.note(s.index, "lost", "")
	s.down, s.loading, s.resident = true, nil, nil
	s.schedule()
	s.w.after(lostAfter, func() {
		if s.down {
			s.w.detect(s.index)
		}
	})
}
