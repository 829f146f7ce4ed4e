package scheduler

import "time"

// What is assumed where nothing was measured (research/scheduling.md, 5.4).
const (
	typicalPrompt = 1000 // tokens
	typicalOutput = 300  // tokens
	loadFixed     = 3 * time.Second
	unloadTime    = time.Second
	// efficiency is how much of a memory's bandwidth decoding reaches; promptFactor is how many prompt tokens are read in the
	// time of one that is written.
	efficiency   = 0.55
	promptFactor = 25
)

// bandwidths are typical of the kinds of memory, bytes per second: a mid-range card, unified memory, two channels of DDR5.
var bandwidths = map[PoolKind]float64{PoolDevice: 400e9, PoolUnified: 220e9, PoolHost: 60e9}

// pace is how long things take with one model on one node, as far as known.
type pace struct {
	load    time.Duration
	prompt  float64       // nanoseconds per token
	output  float64       // nanoseconds per token
	service time.Duration // mean of recent calls; 0 while unknown
	known   bool          // the rates were measured here
	counted bool          // so was service
	reads   bool          // prompt was measured, here or elsewhere, and not guessed
	writes  bool          // so was output
}

// paceOf is what was measured of the model on the node, else what was measured of it elsewhere scaled by the kinds of memory,
// else what the node does with other models, else what is typical. Each figure alone: short prompts never tell a rate of reading.
func (p *Planner) paceOf(h *host, digest string, shape *Shape, weights, file uint64) pace {
	v := h.Speeds[digest]
	out := pace{known: v.Prompt > 0 && v.Decode > 0, counted: v.Service > 0}
	if !out.known || v.Load <= 0 && h.LoadRate <= 0 {
		p.borrow(h, digest, &v)
	}
	out.reads, out.writes = v.Prompt > 0, v.Decode > 0
	if !out.writes {
		v.Decode = h.decode(shape, weights)
	}
	if !out.reads {
		v.Prompt = v.Decode * promptFactor
	}
	out.prompt, out.output, out.service, out.load = float64(time.Second)/v.Prompt, float64(time.Second)/v.Decode, v.Service, v.Load
	switch {
	case h.Speeds[digest].Load > 0:
	case h.LoadRate > 0:
		out.load = loadFixed + time.Duration(min(float64(max(file, weights))/h.LoadRate*float64(time.Second), float64(longest)))
	case out.load <= 0:
		out.load = loadTime(weights)
	}
	out.load = min(max(out.load, 0), longest)
	return out
}

// measured is what the nodes of one kind know of a model.
type measured struct {
	digest string
	kind   PoolKind
}

// borrow fills in what is not known of a model on a node with what other nodes know of it, of its own kind first. A load takes
// as long as elsewhere: what it depends on, their disks, is no matter of the kind.
func (p *Planner) borrow(h *host, digest string, v *Speed) {
	if !p.asked {
		p.asked = true
		p.measure()
	}
	for _, kind := range [...]PoolKind{h.kind, PoolDevice, PoolUnified, PoolHost} {
		at, ok := p.measured[measured{digest, kind}]
		if !ok {
			continue
		}
		scale := bandwidths[h.kind] / bandwidths[kind]
		at.Prompt, at.Decode, at.Service = at.Prompt*scale, at.Decode*scale, time.Duration(float64(at.Service)/scale)
		v.add(at)
	}
}

// add takes over what is not known yet.
func (v *Speed) add(o Speed) {
	if v.Load <= 0 {
		v.Load = o.Load
	}
	if !(v.Prompt > 0) {
		v.Prompt = o.Prompt
	}
	if !(v.Decode > 0) {
		v.Decode = o.Decode
	}
	if v.Service <= 0 {
		v.Service = o.Service
	}
}

// decode is the rate of a model that was measured nowhere.
func (h *host) decode(shape *Shape, weights uint64) float64 {
	active := float64(weights)
	if shape.believable() {
		active = shape.activeBytes()
	}
	return h.bandwidth * efficiency / max(active, 1<<28)
}

// measure notes what the nodes know of their models, and the bandwidth that each node's memory seems to have.
func (p *Planner) measure() {
	clear(p.measured)
	for _, h := range p.hosts {
		h.bandwidth = 0
		for i := range h.Models {
			m := &h.Models[i]
			v, ok := h.Speeds[m.Digest]
			if !ok {
				continue
			}
			key := measured{m.Digest, h.kind}
			all := p.measured[key]
			all.add(v)
			p.measured[key] = all
			if shape := p.shapes.byDigest[m.Digest]; v.Decode > 0 && shape.believable() && !m.Embedding {
				h.bandwidth = max(h.bandwidth, v.Decode*shape.activeBytes()/efficiency)
			}
		}
		if h.bandwidth == 0 {
			h.bandwidth = bandwidths[h.kind]
		}
	}
}

// longest bounds what is expected of anything, so that sums of many stay numbers.
const longest = time.Hour

// rated reports whether the rate that decides how long a call takes was measured anywhere. A mean of calls beats a guess.
func (c *pace) rated(embed bool) bool { return c.writes || embed && c.reads }

// serve is how long a call takes alone. The products are rounded one by one, so that every machine computes the same.
func (c *pace) serve(w Work, embed bool) time.Duration {
	unsized := w.Prompt <= 0 && w.Output <= 0
	if c.service > 0 && (unsized || !c.rated(embed)) {
		return min(c.service, longest)
	}
	if unsized {
		w.Prompt = typicalPrompt
	}
	if w.Output <= 0 && !embed {
		w.Output = typicalOutput
	}
	return min(max(product(w.Prompt, c.prompt)+product(w.Output, c.output), time.Millisecond), longest)
}

// product is the time of some tokens.
func product(tokens int, each float64) time.Duration {
	return time.Duration(min(max(float64(tokens), 0)*each, float64(longest)))
}

// remaining is how much longer a call is expected to run. One that takes longer than expected is given a quarter of its time again.
func (c *pace) remaining(call Call, embeds bool, now time.Time) time.Duration {
	total := c.serve(call.Work, embeds)
	ran := max(now.Sub(call.Since), 0)
	return max(total-ran, ran/4, 100*time.Millisecond)
}

// bound (rule 7) is how long a model may wait while another has the node: long enough that loads are a small part of the time.
func (l Limits) bound(load time.Duration) time.Duration {
	if l.MaxWait > 0 {
		return l.MaxWait
	}
	return max(time.Minute, 4*load)
}

// residency is how long a loaded model keeps its node while somebody waits for it.
func residency(load time.Duration) time.Duration { return 2 * load }

// sizes adds up the work of tasks, as far as it is known.
type sizes struct {
	sum Work
	n   int
}

func (s *sizes) add(w Work) {
	s.n++
	s.sum.Prompt += w.Prompt
	s.sum.Output += w.Output
}

// mean is unknown when none was known.
func (s *sizes) mean() Work {
	if s.n == 0 {
		return Work{}
	}
	return Work{Prompt: s.sum.Prompt / s.n, Output: s.sum.Output / s.n}
}
