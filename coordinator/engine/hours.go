package engine

import "time"

// Hours are when a node may be used: in any of the spans. None at all means always.
type Hours []Span

// Span is a part of some days of the week.
type Span struct {
	Zone     *time.Location // nil: the zone of the time that is asked about
	Days     [7]bool        // by time.Weekday, Sunday first: the days on which it begins
	From, To time.Duration  // since midnight by the clock, at most 24 h; one that ends at or before its begin ends on the next day
}

// on is the span as it begins on the day of t, so many days later.
func (s Span) on(t time.Time, days int) (from, to time.Time) {
	if s.To <= s.From {
		return clock(t, days, s.From), clock(t, days+1, s.To)
	}
	return clock(t, days, s.From), clock(t, days, s.To)
}

// clock is when the clock of t's zone first shows a time of day, so many days after the day of t. Where the clock goes back it shows
// one twice, and the first counts; where it goes forward it leaves one out, and the moment in which it does counts.
func clock(t time.Time, days int, d time.Duration) time.Time {
	wall := time.Date(t.Year(), t.Month(), t.Day()+days, 0, 0, 0, 0, time.UTC).Add(d)
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(t.Location()).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-24*time.Hour)), offset(wall.Add(24*time.Hour))
	early, late := wall.Add(-max(before, after)).In(t.Location()), wall.Add(-min(before, after)).In(t.Location())
	switch {
	case shows(early, wall):
		return early
	case shows(late, wall):
		return late
	default:
		change, _ := late.ZoneBounds()
		return change
	}
}

// shows reports whether the clock shows at a time what wall says in UTC.
func shows(at, wall time.Time) bool {
	return at.Day() == wall.Day() && at.Hour() == wall.Hour() && at.Minute() == wall.Minute()
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
		s.each(t, -1, 8, func(from, to time.Time) {
			edge(from)
			edge(to)
		})
	}
	return open, next
}

func (h Hours) within(t time.Time) (in bool) {
	for _, s := range h {
		s.each(t, -1, 0, func(from, to time.Time) { in = in || !t.Before(from) && t.Before(to) })
	}
	return in
}

// each gives every occurrence of the span that begins between so many days before t and after it.
func (s Span) each(t time.Time, first, last int, do func(from, to time.Time)) {
	if s.Zone != nil {
		t = t.In(s.Zone)
	}
	for day := first; day <= last; day++ {
		if s.Days[(int(t.Weekday())+day+7)%7] {
			do(s.on(t, day))
		}
	}
}
