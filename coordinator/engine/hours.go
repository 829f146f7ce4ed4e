package engine

import "time"

// Hours are when a node may be used: in any of the spans. None at all means always.
type Hours []Span

// Span is a part of some days of the week, in the coordinator's own time zone.
type Span struct {
	Days     [7]bool       // by time.Weekday, Sunday first: the days on which it begins
	From, To time.Duration // since midnight; one that ends at or before its begin ends on the next day
}

// on is the span as it begins on the day of t. Days with a change of the clock are as long as they are.
func (s Span) on(t time.Time) (from, to time.Time) {
	at := func(day int, d time.Duration) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day()+day, int(d/time.Hour), int(d%time.Hour/time.Minute), 0, 0, t.Location())
	}
	if s.To <= s.From {
		return at(0, s.From), at(1, s.To)
	}
	return at(0, s.From), at(0, s.To)
}

// Open reports whether t lies in one of the spans, and when that changes next, zero for never.
func (h Hours) Open(t time.Time) (open bool, next time.Time) {
	if len(h) == 0 {
		return true, time.Time{}
	}
	edge := func(at time.Time) {
		if at.After(t) && (next.IsZero() || at.Before(next)) && h.within(at) != open {
			next = at
		}
	}
	open = h.within(t)
	for _, s := range h {
		for day := -1; day <= 8; day++ {
			if d := t.AddDate(0, 0, day); s.Days[d.Weekday()] {
				from, to := s.on(d)
				edge(from)
				edge(to)
			}
		}
	}
	return open, next
}

func (h Hours) within(t time.Time) bool {
	for _, s := range h {
		for _, day := range []time.Time{t, t.AddDate(0, 0, -1)} {
			if !s.Days[day.Weekday()] {
				continue
			}
			if from, to := s.on(day); !t.Before(from) && t.Before(to) {
				return true
			}
		}
	}
	return false
}
