package engine

import (
	"context"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
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
			f := newFlight(a, p)
			e.flights[f.key] = f
		}
	}
	e.countBusy()
	if len(rows) > 0 {
		e.o.Log.Info("runs under way were recovered", "runs", len(rows), "attempts", len(e.flights))
	}
	return nil
}
