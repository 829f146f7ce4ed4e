package engine

import (
	"testing"
	"time"
	_ "time/tzdata"
)

var everyDay = [7]bool{true, true, true, true, true, true, true}

// Around the two nights of a year in which the clock is changed: what a person reads off the clock is what holds, no window opens
// twice, and one whose begin the clock leaves out begins as the clock jumps over it. 2026: Berlin 29 March and 25 October at 1:00 UTC,
// Santiago (where midnight itself is left out) 6 September at 4:00 UTC, Lord Howe (half an hour) 4 October (2:00 +10:30 to 2:30 +11).
func TestHoursAroundChangesOfSummerTime(t *testing.T) {
	zone := func(name string) *time.Location {
		z, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	utc := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, time.UTC)
	}
	span := func(fromH, fromM, toH, toM int) (from, to time.Duration) {
		return time.Duration(fromH)*time.Hour + time.Duration(fromM)*time.Minute, time.Duration(toH)*time.Hour + time.Duration(toM)*time.Minute
	}
	for name, c := range map[string]struct {
		zone                   string
		fromH, fromM, toH, toM int
		around, opens, closes  time.Time // around: a moment before it opens
		reopens                time.Time
	}{
		"a night in which an hour is left out": {"Europe/Berlin", 22, 0, 6, 0, utc(3, 28, 12, 0), utc(3, 28, 21, 0), utc(3, 29, 4, 0), utc(3, 29, 20, 0)},
		"a night with an hour more":            {"Europe/Berlin", 22, 0, 6, 0, utc(10, 24, 12, 0), utc(10, 24, 20, 0), utc(10, 25, 5, 0), utc(10, 25, 21, 0)},
		"it begins in the hour left out":       {"Europe/Berlin", 2, 30, 5, 0, utc(3, 28, 12, 0), utc(3, 29, 1, 0), utc(3, 29, 3, 0), utc(3, 30, 0, 30)},
		"it ends in the hour left out":         {"Europe/Berlin", 22, 0, 2, 30, utc(3, 28, 12, 0), utc(3, 28, 21, 0), utc(3, 29, 1, 0), utc(3, 29, 20, 0)},
		"it lies in the hour left out":         {"Europe/Berlin", 2, 15, 2, 45, utc(3, 28, 12, 0), utc(3, 30, 0, 15), utc(3, 30, 0, 45), utc(3, 31, 0, 15)},
		"it ends in the hour that comes twice": {"Europe/Berlin", 22, 0, 2, 30, utc(10, 24, 12, 0), utc(10, 24, 20, 0), utc(10, 25, 0, 30), utc(10, 25, 21, 0)},
		"it lies in the hour that comes twice": {"Europe/Berlin", 2, 15, 2, 45, utc(10, 24, 12, 0), utc(10, 25, 0, 15), utc(10, 25, 0, 45), utc(10, 26, 1, 15)},
		"it is the hour that comes twice":      {"Europe/Berlin", 2, 0, 3, 0, utc(10, 24, 12, 0), utc(10, 25, 0, 0), utc(10, 25, 2, 0), utc(10, 26, 1, 0)},
		"midnight is left out":                 {"America/Santiago", 0, 0, 8, 0, utc(9, 5, 20, 0), utc(9, 6, 4, 0), utc(9, 6, 11, 0), utc(9, 7, 3, 0)},
		"half an hour is left out":             {"Australia/Lord_Howe", 2, 15, 4, 0, utc(10, 3, 6, 0), utc(10, 3, 15, 30), utc(10, 3, 17, 0), utc(10, 4, 15, 15)},
	} {
		t.Run(name, func(t *testing.T) {
			s := Span{Zone: zone(c.zone), Days: everyDay}
			s.From, s.To = span(c.fromH, c.fromM, c.toH, c.toM)
			h := Hours{s}
			at, wantOpen := c.around, false
			for _, want := range []time.Time{c.opens, c.closes, c.reopens} {
				open, next := h.Open(at)
				if open != wantOpen || !next.Equal(want) {
					t.Fatalf("at %s open is %v until %s, want %v until %s", at, open, next.UTC(), wantOpen, want)
				}
				if before, _ := h.Open(want.Add(-time.Nanosecond)); before != wantOpen {
					t.Fatalf("a moment before %s open is %v", want, before)
				}
				at, wantOpen = want, !wantOpen
			}
		})
	}
}

// Hours are of the machine's zone, whatever the coordinator's is: Friday evening in Auckland is Friday morning in Berlin.
func TestHoursAreReadInTheirZone(t *testing.T) {
	auckland, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	h := Hours{{Zone: auckland, Days: [7]bool{time.Friday: true}, From: 18 * time.Hour, To: 24 * time.Hour}}
	open, next := h.Open(time.Date(2026, 7, 3, 7, 0, 0, 0, time.UTC)) // Friday 19:00 there
	if want := time.Date(2026, 7, 3, 12, 0, 0, 0, time.UTC); !open || !next.Equal(want) {
		t.Errorf("open %v until %s, want until %s", open, next.UTC(), want)
	}
	if open, _ := h.Open(time.Date(2026, 7, 3, 19, 0, 0, 0, time.UTC)); open { // Saturday 7:00 there, Friday evening in UTC
		t.Error("it is open on Saturday")
	}
}
