package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine/health"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// nodes is what the fleet reports, completed by what only the engine knows.
func (e *Engine) nodes(now time.Time) []scheduler.Node {
	nodes := slices.Clone(e.fleet.Nodes())
	calls := map[string][]holding{}
	for _, c := range e.holdings() {
		calls[c.node] = append(calls[c.node], c)
	}
	for i, n := range nodes {
		n = e.moves.fill(n, calls[n.ID], now)
		e.facts.fill(&n)
		e.limitsOf(&n).fill(&n)
		for j := range n.Loaded {
			n.Loaded[j].Pinned = n.Loaded[j].Pinned || e.pinned(&n, n.Loaded[j].Name)
		}
		n.Avoid = laterOf(n.Avoid, e.circuits.Avoid(n.ID, now))
		n.State, n.Why, _ = e.stateOf(&n, now)
		nodes[i] = n
	}
	e.moves.settleAbsent(nodes, now)
	return nodes
}

// holdings are the attempts that occupy slots, in a fixed order: those in flight, and those that were cancelled and whose worker
// has not confirmed it.
func (e *Engine) holdings() []holding {
	var out []holding
	for _, f := range e.sortedFlights() {
		out = append(out, f.holding())
	}
	for _, key := range slices.Sorted(maps.Keys(e.orphans)) {
		out = append(out, e.orphans[key].holding)
	}
	return out
}

// heldResources counts what calls hold of each resource.
func (e *Engine) heldResources() map[string]int {
	if len(e.resources.limits) == 0 {
		return nil
	}
	held := map[string]int{}
	for _, c := range e.holdings() {
		for _, name := range c.uses {
			held[name]++
		}
	}
	for _, c := range e.tools {
		for _, name := range c.uses {
			held[name]++
		}
	}
	return held
}

// stateOf is a node's state with what a person, its hours and its failures make of it, why it is not as reported, and when that
// ends, zero for unknown.
func (e *Engine) stateOf(n *scheduler.Node, now time.Time) (state scheduler.NodeState, why string, until time.Time) {
	if n.State != scheduler.NodeUp {
		return n.State, "", time.Time{}
	}
	switch u := e.uses[n.ID]; {
	case u.paused(now) && u.Until.IsZero():
		return scheduler.NodePaused, "paused", time.Time{}
	case u.paused(now):
		return scheduler.NodePaused, "paused until " + clockOf(u.Until), u.Until
	case u.drained():
		return scheduler.NodeDraining, "draining: it takes nothing new until it is resumed", time.Time{}
	}
	if open, next := e.hoursOf(n).Open(now.Local()); !open {
		return scheduler.NodePaused, "outside its hours of use", next.UTC()
	}
	if until, kind, open := e.circuits.Open(health.Subject{Node: n.ID}, now); open {
		return scheduler.NodeDegraded, fmt.Sprintf("not used for a while, because calls there failed in a row (%s)", kind), until
	}
	return scheduler.NodeUp, "", time.Time{}
}

func (e *Engine) hoursOf(n *scheduler.Node) Hours {
	if h, ok := e.o.Hours[n.ID]; ok {
		return h
	}
	return e.o.Hours[n.Name]
}

// NodeStatus is what the engine knows of a node beside its report.
type NodeStatus struct {
	Node  scheduler.Node // as a placement decided now sees it: claims, what is loading, slots, speeds
	Why   string         // of a state that is not as reported; "" otherwise
	Until time.Time      // when that state ends, zero for unknown
	Calls int            // attempts in flight there
	Kept  []Kept         // of Node.Loaded, in that order
}

// Kept says what becomes of a loaded model.
type Kept struct {
	Ours      bool      // we loaded it; others are never unloaded
	Condemned string    // why it is to go when nothing runs on it
	Idle      time.Time // since when nothing ran on it; zero while something does
}

// Nodes returns what is known of every node, sorted by id.
func (e *Engine) Nodes(ctx context.Context) ([]NodeStatus, error) {
	return ask(ctx, e, func(t *turn) func() ([]NodeStatus, error) {
		t.place = true // reading the nodes settles what time has settled, which a placement has to see
		var out []NodeStatus
		reported := e.roster()
		for _, n := range e.nodes(t.now) {
			s, as := NodeStatus{Node: n}, reported[n.ID]
			_, s.Why, s.Until = e.stateOf(&as, t.now)
			for _, f := range e.flights {
				if f.node == n.ID {
					s.Calls++
				}
			}
			for _, l := range n.Loaded {
				s.Kept = append(s.Kept, e.moves.of(n.ID).kept(l))
			}
			out = append(out, s)
		}
		return reply(out, nil)
	})
}

func (n *nodeMoves) kept(l scheduler.Loaded) Kept {
	var k Kept
	if h := n.held[l.Digest]; h != nil {
		k.Ours, k.Condemned = true, h.condemned
	}
	if l.Busy == 0 {
		k.Idle = l.LastUsed
		if l.Since.After(k.Idle) {
			k.Idle = l.Since
		}
	}
	return k
}
