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
	known   bool          // the rates were measured, not guessed
}

// paceOf is what was measured of the model on the node, else what was measured of it elsewhere scaled by the kinds of memory,
// else what the node does with other models, else what is typical.
func (p *Planner) paceOf(h *host, digest string, shape *Shape, weights, file uint64) pace {
	known := h.Speeds[digest]
	out := pace{load: known.Load, service: known.Service, known: known.Prompt > 0 && known.Decode > 0}
	if !out.known {
		guess := p.guess(h, digest, shape, weights)
		if !(known.Prompt > 0) {
			known.Prompt = guess.Prompt
		}
		if !(known.Decode > 0) {
			known.Decode = guess.Decode
		}
	}
	out.prompt, out.output = float64(time.Second)/known.Prompt, float64(time.Second)/known.Decode
	switch {
	case out.load > 0:
	case h.LoadRate > 0:
		out.load = loadFixed + time.Duration(min(float64(max(file, weights))/h.LoadRate*float64(time.Second), float64(longest)))
	default:
		out.load = loadTime(weights)
	}
	out.load = min(max(out.load, 0), longest)
	return out
}

// guess are the rates of a model that was not measured on the node.
func (p *Planner) guess(h *host, digest string, shape *Shape, weights uint64) Speed {
	if !p.asked {
		p.asked = true
		p.measure()
	}
	if at, ok := p.measured[digest]; ok {
		scale := bandwidths[h.kind] / bandwidths[at.kind]
		return Speed{Prompt: at.speed.Prompt * scale, Decode: at.speed.Decode * scale}
	}
	active := float64(weights)
	if shape.believable() {
		active = shape.activeBytes()
	}
	decode := h.bandwidth * efficiency / max(active, 1<<28)
	return Speed{Prompt: decode * promptFactor, Decode: decode}
}

// measurement is the speed of a model on the first node that knows it.
type measurement struct {
	speed Speed
	kind  PoolKind
}

// measure notes what the nodes know of their models, and the bandwidth that each node's memory seems to have.
func (p *Planner) measure() {
	clear(p.measured)
	for _, h := range p.hosts {
		h.bandwidth = 0
		for i := range h.Models {
			m := &h.Models[i]
			v := h.Speeds[m.Digest]
			if v.Prompt <= 0 || v.Decode <= 0 {
				continue
			}
			if _, ok := p.measured[m.Digest]; !ok {
				p.measured[m.Digest] = measurement{v, h.kind}
			}
			if shape := p.shapes.byDigest[m.Digest]; shape.believable() && !m.Embedding {
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

// serve is how long a call takes alone. The products are rounded one by one, so that every machine computes the same.
func (c *pace) serve(w Work, embed bool) time.Duration {
	if w.Prompt <= 0 && w.Output <= 0 {
		if c.service > 0 {
			return min(c.service, longest)
		}
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
