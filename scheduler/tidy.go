package scheduler

import (
	"fmt"
	"maps"
	"slices"
)

// loadPins (rule 8) loads the models that a person keeps on a node, before anything else takes the room, on what is free or idle.
func (p *Planner) loadPins() {
	for _, model := range slices.Sorted(maps.Keys(p.limits.Pins)) {
		for i, h := range p.hosts {
			if h.State == NodeUp && h.loading == nil && p.limits.pinned(h, model) {
				p.loadPin(i, model)
			}
		}
	}
}

func (p *Planner) loadPin(i int, model string) {
	h := p.hosts[i]
	f := p.viewOf(&Task{Model: model}).fits[i]
	if f.model == nil || p.shunned(h, f) || h.clearing != nil || h.reserved != nil || h.has(f.digest) || h.MaxCalls > 0 && h.calls >= h.MaxCalls {
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
		var s site
		p.settleSite(&s, i, f, -1)
		p.loadOn(h, f, w, s.pace.load, "", because("load %s on %s: it is pinned there", f.model.Name, h.name()))
		p.save()
		p.come(h, &s, s.pace.load, s.pace.load)
		p.occupyServer(h, s.pace.load)
	}
}

// has reports whether a model is in the memory of the node, whatever its context.
func (h *host) has(digest string) bool {
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
			case h.State == NodeUp && h.clearing == nil && !r.pinned && !r.queued && p.limits.IdleUnload > 0 && min(r.idle, r.since) >= p.limits.IdleUnload:
				p.unload(h, j, "", because("unload %s from %s: nothing used it for %s", h.Loaded[j].Name, h.name(), span(r.idle)))
			}
		}
	}
}

// because explains a decision that no task asked for.
func because(format string, args ...any) Explanation {
	return Explanation{Summary: fmt.Sprintf(format, args...)}
}
