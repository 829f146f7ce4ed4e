package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// use is what a person wants of a node. It is kept in the ledger until the person says otherwise.
type use struct {
	State scheduler.NodeState `json:"state"` // draining or paused
	Until time.Time           `json:"until,omitzero"`
}

// Drain has a node, by its id or name, finish what runs there and take nothing new until Resume. NotFound: no such node.
func (e *Engine) Drain(ctx context.Context, node string) error {
	return e.setUse(ctx, node, func(time.Time) *use { return &use{State: scheduler.NodeDraining} }, "is drained")
}

// Pause frees a node now: what runs there is cancelled and placed elsewhere, which costs it no attempt, and our models go. It is used
// again after so long, or with 0 at Resume. NotFound: no such node.
func (e *Engine) Pause(ctx context.Context, node string, d time.Duration) error {
	return e.setUse(ctx, node, func(now time.Time) *use {
		u := &use{State: scheduler.NodePaused}
		if d > 0 {
			u.Until = now.Add(d)
		}
		return u
	}, "is paused")
}

// Resume uses a node again that was drained or paused. NotFound: no such node.
func (e *Engine) Resume(ctx context.Context, node string) error {
	return e.setUse(ctx, node, func(time.Time) *use { return nil }, "is used again")
}

func (e *Engine) setUse(ctx context.Context, node string, want func(now time.Time) *use, what string) error {
	_, err := ask(ctx, e, func(t *turn) func() (struct{}, error) {
		n, err := e.find(node)
		if err != nil {
			return reply(struct{}{}, err)
		}
		k := fact{kindUse, n.ID, ""}
		u := want(t.now)
		t.place = true
		t.incident(n.ID, IncidentUse, "", fmt.Sprintf("%s %s", n.Name, what))
		if u == nil {
			delete(e.uses, n.ID)
			t.commit.Learned = append(t.commit.Learned, learned(k, t.now, nil))
			return reply(struct{}{}, nil)
		}
		e.uses[n.ID] = *u
		t.commit.Learned = append(t.commit.Learned, learned(k, t.now, u))
		if u.State == scheduler.NodePaused {
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
