package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// tend cares for the models that we loaded: what is wanted is kept in memory, what is not wanted goes. Ollama keeps a model for
// minutes after its last request, so that it frees the card by itself when we died.
func (t *turn) tend(nodes []scheduler.Node, waiting []scheduler.Task) {
	e := t.e
	wanted := map[string]bool{}
	for _, w := range waiting {
		wanted[tagged(w.Model)] = true
	}
	e.tendAt = time.Time{}
	for i := range nodes {
		n := &nodes[i]
		if n.State != scheduler.NodeUp && n.State != scheduler.NodePaused && n.State != scheduler.NodeDraining {
			continue
		}
		for j := range n.Loaded {
			l := &n.Loaded[j]
			if h := e.moves.of(n.ID).held[l.Digest]; h != nil && l.Busy == 0 && !l.Leaving {
				t.tendOne(n, l, h, wanted[tagged(l.Name)] && n.State == scheduler.NodeUp)
			}
		}
	}
}

// tendOne renews or unloads one idle model of ours.
func (t *turn) tendOne(n *scheduler.Node, l *scheduler.Loaded, h *held, wanted bool) {
	e := t.e
	if why := e.goes(n, l, h, wanted, t.now); why != "" {
		t.unload(n, l, why)
		return
	}
	if !wanted && !l.Pinned {
		return
	}
	if renew := h.kept.Add(e.o.KeepAlive / 2); t.now.Before(renew) {
		e.tendAt = earliest(e.tendAt, renew)
		return
	}
	h.kept = t.now
	e.tendAt = earliest(e.tendAt, t.now.Add(e.o.KeepAlive/2))
	d := scheduler.Decision{Node: n.ID, Model: l.Name, Digest: l.Digest, Context: l.Context}
	t.then(func() { e.dispatch.Renew(d.Node, d) })
}

// goes says why an idle model of ours is to be unloaded now, "" when it stays; then it notes when to look again.
func (e *Engine) goes(n *scheduler.Node, l *scheduler.Loaded, h *held, wanted bool, now time.Time) string {
	if l.Stuck > 0 && now.Before(l.Retry) || n.Loading != nil && n.Loading.Digest == l.Digest {
		return ""
	}
	switch {
	case h.condemned != "":
		return "it did not fit there: " + h.condemned
	case n.State == scheduler.NodePaused:
		return "the machine is paused"
	case wanted, l.Pinned, e.o.IdleUnload < 0:
		return ""
	}
	since := h.Since
	for _, at := range []time.Time{l.LastUsed, l.Since} {
		if at.After(since) {
			since = at
		}
	}
	if idle := since.Add(e.o.IdleUnload); now.Before(idle) {
		e.tendAt = earliest(e.tendAt, idle)
		return ""
	}
	return fmt.Sprintf("nothing has used it for %s", now.Sub(since).Round(time.Second))
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
