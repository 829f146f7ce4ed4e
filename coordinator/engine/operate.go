package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// use is what a person wants of a node. It is kept in the ledger until the person says otherwise.
type use struct {
	State   scheduler.NodeState `json:"state"` // draining or paused
	Until   time.Time           `json:"until,omitzero"`
	Drained bool                `json:"drained,omitempty"` // of a paused node: it is drained when the pause is over
}

// paused reports whether a pause holds now.
func (u use) paused(now time.Time) bool {
	return u.State == scheduler.NodePaused && (u.Until.IsZero() || now.Before(u.Until))
}

// drained reports whether the node is to take nothing new, whatever else holds.
func (u use) drained() bool { return u.State == scheduler.NodeDraining || u.Drained }

// Drain has a node, by its id or name, finish what runs there and take nothing new until Resume; a pause goes on beside it. NotFound:
// no such node.
func (e *Engine) Drain(ctx context.Context, node string) error {
	return e.setUse(ctx, node, func(was use, now time.Time) (*use, string) {
		if was.paused(now) {
			was.Drained = true
			return &was, "is drained, and paused meanwhile"
		}
		return &use{State: scheduler.NodeDraining}, "is drained"
	})
}

// Pause frees a node now: what runs there is cancelled and placed elsewhere, which costs it no attempt, and our models go. It is over
// after so long, or with 0 at Resume; a node that was drained is drained still. NotFound: no such node.
func (e *Engine) Pause(ctx context.Context, node string, d time.Duration) error {
	return e.setUse(ctx, node, func(was use, now time.Time) (*use, string) {
		u := &use{State: scheduler.NodePaused, Drained: was.drained()}
		if d <= 0 {
			return u, "is paused"
		}
		u.Until = now.Add(d)
		return u, "is paused until " + clockOf(u.Until)
	})
}

// Resume uses a node again that was drained or paused. NotFound: no such node.
func (e *Engine) Resume(ctx context.Context, node string) error {
	return e.setUse(ctx, node, func(use, time.Time) (*use, string) { return nil, "is used again" })
}

// clockOf is a time for people.
func clockOf(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

func (e *Engine) setUse(ctx context.Context, node string, want func(was use, now time.Time) (*use, string)) error {
	_, err := ask(ctx, e, func(t *turn) func() (struct{}, error) {
		n, err := e.find(node)
		if err != nil {
			return reply(struct{}{}, err)
		}
		u, what := want(e.uses[n.ID], t.now)
		t.use(n.ID, n.Name, u, what)
		if u != nil && u.State == scheduler.NodePaused {
			for _, f := range e.sortedFlights() {
				if f.node == n.ID && f.sent {
					t.giveUp(f, run.KindNodePaused, "the machine was paused")
				}
			}
		}
		return reply(struct{}{}, nil)
	})
	return err
}

// use takes in what is wanted of a node from now on, nil for nothing, and says so in its history.
func (t *turn) use(node, name string, u *use, what string) {
	var row any
	if u == nil {
		delete(t.e.uses, node)
	} else {
		t.e.uses[node], row = *u, u
	}
	t.place = true
	t.incident(node, IncidentUse, "", name+" "+what)
	t.commit.Learned = append(t.commit.Learned, learned(fact{kindUse, node, ""}, t.now, row))
}

// endPauses ends those whose time is over.
func (t *turn) endPauses() {
	for _, id := range slices.Sorted(maps.Keys(t.e.uses)) {
		u := t.e.uses[id]
		if u.State != scheduler.NodePaused || u.paused(t.now) {
			continue
		}
		if name := t.e.roster().name(id); u.Drained {
			t.use(id, name, &use{State: scheduler.NodeDraining}, "is still drained: its pause is over")
		} else {
			t.use(id, name, nil, "is used again: its pause is over")
		}
	}
}

// find returns the node with an id, else the one with a name. NotFound, or InvalidArgument where several have that name.
func (e *Engine) find(node string) (scheduler.Node, error) {
	var named []scheduler.Node
	for _, n := range e.fleet.Nodes() {
		if n.ID == node {
			return n, nil
		}
		if n.Name == node {
			named = append(named, n)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return scheduler.Node{}, apierr.New(apierr.NotFound, "no machine is named %s", node).WithNext("loopkeeper nodes")
	default:
		return scheduler.Node{}, apierr.New(apierr.InvalidArgument, "%d machines are named %s: give the id of one", len(named), node).
			WithNext("loopkeeper nodes -o json")
	}
}

// nextUse is when a pause ends or a node's hours begin or end, zero for never.
func (e *Engine) nextUse(now time.Time) (at time.Time) {
	for _, u := range e.uses {
		if u.Until.After(now) {
			at = earliest(at, u.Until)
		}
	}
	for _, h := range e.o.Hours {
		if _, next := h.Open(now.Local()); !next.IsZero() {
			at = earliest(at, next)
		}
	}
	return at
}
