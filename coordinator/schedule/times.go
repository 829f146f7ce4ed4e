package schedule

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// times is a sequence of scheduled times.
type times interface {
	// next returns the first of them after t; zero when there is none.
	next(t time.Time) time.Time
}

// interval is a time every so long since its anchor.
type interval struct {
	anchor time.Time
	every  time.Duration
}

func (i interval) next(t time.Time) time.Time {
	if t.Before(i.anchor) {
		return i.anchor.Add(i.every)
	}
	return i.anchor.Add((t.Sub(i.anchor)/i.every + 1) * i.every)
}

// times are the scheduled times of a spec that names some; nil for a watched folder.
func (s Spec) times(anchor time.Time) (times, error) {
	switch {
	case s.Cron != "":
		zone, err := loadZone(s.Zone)
		if err != nil {
			return nil, fmt.Errorf("zone: %q is no time zone that this machine knows", s.Zone)
		}
		c, err := parseCron(s.Cron, zone)
		if err != nil {
			return nil, fmt.Errorf("cron: %w", err)
		}
		return c, nil
	case s.EverySeconds > 0:
		return interval{anchor, time.Duration(s.EverySeconds) * time.Second}, nil
	case s.Watch == nil:
		return nil, errors.New("nothing says when")
	default:
		return nil, nil
	}
}

// zones holds the time zones that were loaded: loading one reads a file, and a decision is made every minute.
var zones sync.Map

func loadZone(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, zone)
	return zone, nil
}

// latest returns the last n of the times in (from, to], in order, and whether there are earlier ones. It looks back in growing steps, so
// that years of downtime cost no more than what is asked for.
func latest(ts times, from, to time.Time, n int) (list []time.Time, earlier bool) {
	if first := ts.next(from); first.IsZero() || first.After(to) {
		return nil, false
	}
	for back := time.Minute; ; back *= 2 {
		start := to.Add(-back)
		whole := !start.After(from) || back > 100*365*24*time.Hour
		if whole {
			start = from
		}
		list = list[:0]
		for t := ts.next(start); !t.IsZero() && !t.After(to); t = ts.next(t) {
			if len(list) > n {
				copy(list, list[1:])
				list = list[:n]
			}
			list = append(list, t)
		}
		if len(list) > n {
			return list[len(list)-n:], true
		}
		if whole {
			return list, false
		}
	}
}
