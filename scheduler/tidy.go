package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// loadPins (rule 8) loads the models that a person keeps on a node, before anything else takes the room, on what is free or idle.
func (p *Planner) loadPins() {
	for _, model := range slices.Sorted(maps.Keys(p.limits.Pins)) {
		for _, h := range p.hosts {
			if h.State == NodeUp && h.loading == nil && p.limits.pinned(h, model) {
				p.loadPin(h, model)
			}
		}
	}
}

func (p *Planner) loadPin(h *host, model string) {
	f := fitOn(h, tagged(model), "", p.limits.contextOf(tagged(model)), p.shapes, p.limits)
	if f.model == nil || p.shunned(h, f) || h.clearing != nil || h.reserved != nil || h.holds(f.digest) || h.MaxCalls > 0 && h.calls >= h.MaxCalls {
		return
	}
	w := h.clear(f, h.spare)
	switch {
	case !w.ok || w.pending:
	case len(w.evict) > 0:
		for _, j := range w.evict {
			h.residents[j].leaving = true
			p.unload(h, j, "", because("unload %s from %s: nothing uses it, and %s is pinned there", h.Loaded[j].Name, h.name(), model))
		}
	default:
		pace := p.paceOf(h, f.digest, f.shape, f.weights, f.model.FileBytes)
		p.loadOn(h, f, w, pace.load, "", because("load %s on %s: it is pinned there", f.model.Name, h.name()))
		r := resident{digest: f.digest, context: f.context, slots: f.slots, pace: pace, coming: true, kept: true}
		r.ends = p.book(slices.Repeat([]time.Duration{pace.load}, r.slots), r.slots)
		h.residents = append(h.residents, r)
		h.calls++
		if h.MaxCalls > 0 {
			k, _ := p.first(h.servers)
			p.ends[k] = pace.load
		}
	}
}

// holds reports whether a model is in the memory of the node, whatever its context.
func (h *host) holds(digest string) bool {
	return slices.ContainsFunc(h.residents, func(r resident) bool { return r.digest == digest })
}

// tidy (rule 8) unloads what has no reason to stay: all that is ours on a node that is paused, and what was not used for
// Limits.IdleUnload and nobody waits for.
func (p *Planner) tidy() {
	for _, h := range p.hosts {
		for j := range h.Loaded {
			r := &h.residents[j]
			if r.leaving || r.stuck || r.busy > 0 || h.Loaded[j].Foreign {
				continue
			}
			switch {
			case h.State == NodePaused:
				p.unload(h, j, "", because("unload %s from %s: the node is paused", h.Loaded[j].Name, h.name()))
			case h.State == NodeUp && h.clearing == nil && !r.kept && !r.queued && p.limits.IdleUnload > 0 && min(r.idle, r.since) >= p.limits.IdleUnload:
				p.unload(h, j, "", because("unload %s from %s: nothing used it for %s", h.Loaded[j].Name, h.name(), span(r.idle)))
			}
		}
	}
}

// because explains a decision that no task asked for.
func because(format string, args ...any) Explanation {
	return Explanation{Summary: fmt.Sprintf(format, args...)}
}
