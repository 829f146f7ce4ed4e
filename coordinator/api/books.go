package api

import (
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// This file says how a run's budgets, its acceptance and its phases look on the wire.

func limitMessage(l engine.LimitView) *coordinatorv1.Limit {
	return &coordinatorv1.Limit{Name: l.Name, Limit: l.Limit, Spent: l.Spent, Overshoot: l.Overshoot, Worst: l.Worst, SetBy: l.SetBy}
}

func acceptanceMessage(a *run.Acceptance) *coordinatorv1.Acceptance {
	if a == nil {
		return nil
	}
	m := &coordinatorv1.Acceptance{Expected: int64(a.Expected), Covered: int64(a.Covered), Handled: int64(a.Handled), Failed: int64(a.Failed),
		Uncovered: int64(a.Uncovered), UncoveredKeys: a.UncoveredKeys, FailedKeys: a.FailedKeys, ByCode: int64(a.ByCode), SwallowedAll: int64(a.SwallowedAll)}
	for _, h := range a.Waived {
		m.HandledBy = append(m.HandledBy, place(h.Step, h.Item, h.Key)+" was waived: "+h.Reason)
	}
	for _, h := range a.Fallbacks {
		m.HandledBy = append(m.HandledBy, fmt.Sprintf("%s was made good by step %d", place(h.Step, h.Item, h.Key), h.By))
	}
	for _, f := range a.Swallowed {
		text := place(f.Step, f.Item, f.Key) + ": " + f.Kind + ": " + f.Message
		if f.Attempts > 1 {
			text += fmt.Sprintf(" (%d attempts)", f.Attempts)
		}
		m.Swallowed = append(m.Swallowed, text)
	}
	return m
}

// place names a key, a step or an item of one for people; step and item are -1 for none.
func place(step, item int, key string) string {
	switch {
	case step < 0:
		return key
	case key != "":
		return fmt.Sprintf("step %d, %s", step, key)
	case item >= 0:
		return fmt.Sprintf("step %d, item %d", step, item)
	default:
		return fmt.Sprintf("step %d", step)
	}
}

func phaseMessage(p engine.PhaseView) *coordinatorv1.Phase {
	m := &coordinatorv1.Phase{Pipeline: p.Pipeline, Name: p.Name, State: string(p.Status), Round: int32(p.Round)}
	for _, r := range p.Reasons {
		from := "from " + r.From
		switch {
		case r.By == run.ByGate:
		case r.By != "" && r.From != "":
			from = r.By + " in " + r.From
		case r.By != "":
			from = r.By
		}
		m.Reasons = append(m.Reasons, from+": "+r.Reason)
	}
	return m
}
