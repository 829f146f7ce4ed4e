package schedule

import (
	"context"
	"time"
)

// Upcoming returns the next n times after t at which a completed spec of a schedule in this state fires, fewer where there are no more. A
// watched folder has none.
func (s Spec) Upcoming(state State, t time.Time, n int) []time.Time {
	ts, err := s.times(state.Created)
	if ts == nil || err != nil || state.Paused != nil {
		return nil
	}
	if s.MaxFirings > 0 {
		n = min(n, s.MaxFirings-state.Fired)
	}
	if t.Before(state.Decided) {
		t = state.Decided
	}
	var list []time.Time
	for len(list) < n {
		if t = ts.next(t); t.IsZero() {
			break
		}
		list = append(list, t)
	}
	return list
}

// ByHand is a firing that a person asks for at now. It is none of the scheduled ones and does not count towards their limit.
func (v View) ByHand(now time.Time) Firing {
	now = now.Round(0).UTC()
	return Firing{Key: v.State.key(v.Spec.Name, "by-hand/"+now.Format(time.RFC3339Nano)), Due: now}
}

// Started notes the run of a firing by hand: it is under way for the overlap policy, and then the last one for the rule.
func (r *Runner) Started(ctx context.Context, name string, f Firing, run string) (View, error) {
	return r.change(ctx, name, func(s State) State {
		s = s.clone()
		s.Running = append(s.Running, Started{Key: f.Key, Run: run, At: f.Due})
		return s
	})
}
