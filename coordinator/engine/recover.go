package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// recover rebuilds what the engine held when it last stopped, however it stopped: every run that has not ended is folded
// from its events, and its attempts in flight are noted, to be sent again under the same keys.
func (e *Engine) recover(ctx context.Context) error {
	var open []string
	for _, s := range run.Statuses() {
		if !s.Ended() {
			open = append(open, string(s))
		}
	}
	rows, err := e.o.Store.Runs(ctx, ledger.RunFilter{States: open})
	if err != nil {
		return err
	}
	slices.Reverse(rows) // oldest first
	for _, r := range rows {
		s, err := load(ctx, e.o.Store, r.ID)
		if err != nil {
			return err
		}
		a := newActive(s)
		e.add(a)
		for p := range s.Flights {
			if p.Node != onCoordinator {
				f := newFlight(a, p)
				e.flights[f.key] = f
			}
		}
	}
	if err := e.recall(ctx); err != nil {
		return err
	}
	if err := e.recallModels(ctx); err != nil {
		return err
	}
	e.inbox.put(func(t *turn) {
		for _, a := range slices.Clone(e.order) {
			t.recoverTools(a)
			for st := range a.state.Open {
				t.requested(a, st.Pos)
			}
		}
		t.recoverChildren()
		t.place = true
	})
	for _, a := range e.wanting() { // what they are given is durable, so their replay need not wait for the first turn
		if a.state.Status != run.Queued && len(e.hosts.live) < e.o.MaxScripts {
			e.drive(a)
		}
	}
	e.countBusy()
	if len(rows) > 0 {
		e.o.Log.Info("runs under way were recovered", "runs", len(rows), "attempts", len(e.flights))
	}
	return nil
}

// recall reads what earlier lives learned of nodes. What does not parse is of another version, and is learned again.
func (e *Engine) recall(ctx context.Context) error {
	rows, err := e.o.Store.Learned(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		var err error
		switch r.Kind {
		case kindHeld, kindUnfit:
			err = e.moves.restore(r, e.started)
		case kindUse:
			var u use
			if err = json.Unmarshal(r.Value, &u); err == nil {
				e.uses[r.Node] = u
			}
		default:
			err = e.facts.restore(r)
		}
		if err != nil {
			e.o.Log.Warn("what was learned of a node cannot be read", "node", r.Node, "kind", r.Kind, "err", err)
		}
	}
	return nil
}

// keepFacts writes what was measured since it was last written. Failing costs a few measurements.
func (e *Engine) keepFacts() {
	rows := e.facts.rows(e.clock.now(), true)
	if e.Err() != nil || len(rows) == 0 {
		return
	}
	if err := e.o.Store.Append(context.WithoutCancel(e.ctx), ledger.Commit{Learned: rows}); err != nil {
		e.o.Log.Warn("the last measurements were not written", "err", err)
	}
}

// sweep gives up attempts whose node is not there, and was not for a while: that a node is lost is told, but what is told can be
// missed. It goes by what the fleet says of the node, never by the attempt's age.
func (t *turn) sweep() {
	e := t.e
	if len(e.flights) == 0 {
		clear(e.missing)
		return
	}
	known, gone := e.roster(), map[string]time.Time{}
	for _, f := range e.sortedFlights() {
		if !f.sent || known.state(f.node) != scheduler.NodeLost {
			continue
		}
		since, noted := e.missing[f.node]
		if !noted {
			since = t.now
		}
		if t.now.Sub(since) >= e.o.ReattachGrace {
			t.lose(f, "the node is gone")
			continue
		}
		gone[f.node] = since
	}
	e.missing = gone
}
