package schedule

import (
	"math/bits"
	"time"
)

// horizon is how many days ahead a time is looked for: eight years without a 29th of February lie around 2100.
const horizon = 9 * 366

// next returns the first time after t that the expression names. Where the clock is changed: an expression for every hour follows the time
// that passes, one for certain hours follows the clock. So what falls into an hour that is left out happens at its end, once, and what falls
// into an hour that comes twice happens the first time only.
func (c *cron) next(t time.Time) time.Time {
	local := t.In(c.zone)
	// Civil days as UTC, which has no gaps. It begins a day early because a zone may cross the date line backwards.
	day := time.Date(local.Year(), local.Month(), local.Day()-1, 0, 0, 0, 0, time.UTC)
	for range horizon {
		if c.onDay(day) {
			if at, ok := c.onDayAfter(day, t); ok {
				return at
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}
}

// onDayAfter returns the first time of a civil day that lies after t.
func (c *cron) onDayAfter(day, t time.Time) (time.Time, bool) {
	const everyHour = 1<<24 - 1
	if c.hour == everyHour {
		return c.passing(day, t)
	}
	for hour := range 24 {
		if !has(c.hour, hour) {
			continue
		}
		for minutes := c.minute; minutes != 0; minutes &= minutes - 1 {
			civil := day.Add(time.Duration(hour)*time.Hour + time.Duration(bits.TrailingZeros64(minutes))*time.Minute)
			if at := instant(civil, c.zone); at.After(t) {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// passing is onDayAfter for every hour: each minute that passes on the day is looked at, those that come twice as well.
func (c *cron) passing(day, t time.Time) (time.Time, bool) {
	at := instant(day, c.zone)
	if later := t.Truncate(time.Minute).Add(time.Minute); later.After(at) {
		at = later
	}
	for end := instant(day.AddDate(0, 0, 1), c.zone); at.Before(end); at = at.Add(time.Minute) {
		if has(c.minute, at.In(c.zone).Minute()) {
			return at.In(c.zone), true
		}
	}
	return time.Time{}, false
}

// instant is when the clock of a zone first shows a civil time (given as UTC), or the end of the gap that leaves it out.
func instant(civil time.Time, zone *time.Location) time.Time {
	guess := time.Date(civil.Year(), civil.Month(), civil.Day(), civil.Hour(), civil.Minute(), 0, 0, zone)
	start, end := guess.ZoneBounds()
	var first time.Time
	for _, near := range []time.Time{start.Add(-time.Nanosecond), guess, end} { // the offsets before, at and after guess
		if _, seconds := near.Zone(); !near.IsZero() {
			at := civil.Add(-time.Duration(seconds) * time.Second).In(zone)
			if shown(at).Equal(civil) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	if !first.IsZero() {
		return first
	}
	// No clock shows it: guess lies beside the change that leaves it out.
	if !start.IsZero() && shown(start.Add(-time.Nanosecond)).Before(civil) && shown(start).After(civil) {
		return start
	}
	return end
}

// shown is what the clock shows at t, as UTC.
func shown(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}
