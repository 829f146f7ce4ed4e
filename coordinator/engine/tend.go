package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// tend keeps the models that we loaded in memory while they are wanted: Ollama keeps one for minutes after its last request, so that
// it frees the card by itself when we died. One that did not fit goes as soon as nothing runs on it; what is idle goes by a decision
// of the scheduler.
func (t *turn) tend(nodes []scheduler.Node, waiting []scheduler.Task) {
	e := t.e
	wanted := map[string]bool{}
	for _, w := range waiting {
		wanted[tagged(w.Model)] = true
	}
	e.tendAt = time.Time{}
	for i := range nodes {
		n := &nodes[i]
		if n.State != scheduler.NodeUp && n.State != scheduler.NodeDraining {
			continue
		}
		mine := e.moves.of(n.ID)
		for j := range n.Loaded {
			l := &n.Loaded[j]
			t.noteStuck(n, l, mine)
			if h := mine.held[l.Digest]; h != nil && l.Busy == 0 && mine.leaving[l.Digest] == nil {
				t.tendOne(n, l, h, l.Pinned || wanted[tagged(l.Name)])
			}
		}
	}
}

// noteStuck tells once of a model that unloads leave in memory.
func (t *turn) noteStuck(n *scheduler.Node, l *scheduler.Loaded, mine *nodeMoves) {
	s := mine.stuck[l.Digest]
	if s.times <= unloadPauses || s.told {
		return
	}
	s.told = true
	mine.stuck[l.Digest] = s
	t.incident(n.ID, IncidentStuck, l.Name, fmt.Sprintf("%s stays in the memory of %s after %d unloads; if it does not go, restart Ollama there", l.Name, n.Name, s.times))
}

// tendOne renews or unloads one idle model of ours.
func (t *turn) tendOne(n *scheduler.Node, l *scheduler.Loaded, h *held, wanted bool) {
	e := t.e
	switch renew := h.kept.Add(e.o.KeepAlive / 2); {
	case h.condemned != "":
		if l.Stuck == 0 || !t.now.Before(l.Retry) {
			t.unload(n, l, "it did not fit there: "+h.condemned)
		}
	case n.State != scheduler.NodeUp:
	case !wanted && e.o.Limits.IdleUnload > 0:
		if at := e.idleAt(l); at.After(t.now) {
			e.tendAt = earliest(e.tendAt, at)
		}
	case !wanted:
	case t.now.Before(renew):
		e.tendAt = earliest(e.tendAt, renew)
	default:
		h.kept = t.now
		e.tendAt = earliest(e.tendAt, t.now.Add(e.o.KeepAlive/2))
		d := scheduler.Decision{Node: n.ID, Model: l.Name, Digest: l.Digest, Context: l.Context}
		t.then(func() { e.dispatch.Renew(d.Node, d) })
	}
}

// idleAt is when a model that nothing wants will have been idle for too long, for the scheduler to unload it.
func (e *Engine) idleAt(l *scheduler.Loaded) time.Time {
	since := l.Since
	if l.LastUsed.After(since) {
		since = l.LastUsed
	}
	return since.Add(e.o.Limits.IdleUnload)
}

// unload has a model of ours leave, for no task's sake.
func (t *turn) unload(n *scheduler.Node, l *scheduler.Loaded, why string) {
	e := t.e
	d := scheduler.Decision{Action: scheduler.Unload, Node: n.ID, Model: l.Name, Digest: l.Digest, Context: l.Context,
		Why: scheduler.Explanation{Summary: fmt.Sprintf("unload %s from %s: %s", l.Name, n.Name, why)}}
	if e.moves.begin(d, t.now) {
		e.o.Log.Info("a model is unloaded", "node", n.ID, "model", l.Name, "why", why)
		t.then(func() { e.dispatch.Unload(d.Node, d) })
	}
}

// pinned reports whether a model is to stay on a node.
func (e *Engine) pinned(n *scheduler.Node, model string) bool {
	for name, nodes := range e.o.Limits.Pins {
		if tagged(name) == tagged(model) && (slices.Contains(nodes, n.ID) || slices.Contains(nodes, n.Name)) {
			return true
		}
	}
	return false
}
