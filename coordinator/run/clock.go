package run

import "time"

// clock counts a run's active time: while it runs and not all of its open steps wait for a person, a timer or a child. What a
// script computes meanwhile has its own small limit and does not count.
type clock struct {
	spent time.Duration
	since time.Time // while it is active
	waves int64     // of calls that the requests so far make, see Scale
}

// become moves the run to a status and its clock with it.
func (s *State) become(to Status, now time.Time) {
	switch {
	case s.Status == Running && to != Running:
		s.clock.spent += max(0, now.Sub(s.clock.since))
		s.clock.since = time.Time{}
	case s.Status != Running && to == Running:
		s.clock.since = now
	}
	s.Status = to
}

// park finds out whether a run that is under way is active.
func (s *State) park(now time.Time) {
	if s.Status != Running && s.Status != Waiting {
		return
	}
	waits := s.open.n > 0 && s.parked == s.open.n
	if s.Limit != nil { // what waits for a place will not get one any more
		waits = s.parked > 0 && s.flights == 0 && s.checks == 0
	}
	if waits {
		s.become(Waiting, now)
	} else {
		s.become(Running, now)
	}
}

// Active is the time that counts against the budget, up to now.
func (s *State) Active(now time.Time) time.Duration {
	if s.Status != Running {
		return s.clock.spent
	}
	return s.clock.spent + max(0, now.Sub(s.clock.since))
}

// Budget is the active time that the run may take, 0 for any. Unless it was set, it grows with the fan-out.
func (s *State) Budget() time.Duration {
	l := s.Pinned.Limits
	seconds := l.ActiveSeconds
	if seconds == 0 && l.Scale.CallSeconds > 0 {
		seconds = max(l.Scale.Least, s.clock.waves*l.Scale.CallSeconds)
		if l.Scale.Most > 0 {
			seconds = min(seconds, l.Scale.Most)
		}
	}
	return time.Duration(seconds) * time.Second
}

// Deadline is when the budget of active time is over if the run stays active; then Expire is due. Zero for never, and while it is
// not active.
func (s *State) Deadline() time.Time {
	budget := s.Budget()
	if s.Status != Running || s.Limit != nil || budget == 0 {
		return time.Time{}
	}
	return s.clock.since.Add(budget - s.clock.spent)
}

// fanOut adds a step's calls to the waves.
func (s *State) fanOut(calls int) {
	width := int64(max(1, s.Pinned.Limits.Scale.Width))
	s.clock.waves += (int64(calls) + width - 1) / width
}
