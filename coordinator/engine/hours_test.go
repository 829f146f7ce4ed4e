package engine

import (
	"testing"
	"time"
)

func TestHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	workdays, all := [7]bool{1: true, 2: true, 3: true, 4: true, 5: true}, [7]bool{true, true, true, true, true, true, true}
	nights := Hours{{Days: workdays, From: 22 * time.Hour, To: 6 * time.Hour}}
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, berlin) } // 2 March 2026 is a Monday
	for name, c := range map[string]struct {
		hours Hours
		t     time.Time
		open  bool
		next  time.Time
	}{
		"always":                     {nil, at(2, 12, 0), true, time.Time{}},
		"by day":                     {nights, at(2, 12, 0), false, at(2, 22, 0)},
		"as it begins":               {nights, at(2, 22, 0), true, at(3, 6, 0)},
		"after midnight":             {nights, at(3, 5, 59), true, at(3, 6, 0)},
		"as it ends":                 {nights, at(3, 6, 0), false, at(3, 22, 0)},
		"Friday's night":             {nights, at(7, 3, 0), true, at(7, 6, 0)},
		"the weekend":                {nights, at(7, 12, 0), false, at(9, 22, 0)},
		"two spans that meet":        {Hours{{Days: all, From: 0, To: 12 * time.Hour}, {Days: all, From: 12 * time.Hour, To: 18 * time.Hour}}, at(2, 11, 0), true, at(2, 18, 0)},
		"the clock goes forward":     {nights, at(29, 12, 0), false, at(30, 22, 0)},
		"a night of seven hours":     {Hours{{Days: all, From: 22 * time.Hour, To: 6 * time.Hour}}, at(28, 23, 0), true, at(29, 6, 0)},
		"a whole day, every day":     {Hours{{Days: all, From: 0, To: 0}}, at(2, 12, 0), true, time.Time{}},
		"no day at all never begins": {Hours{{From: 0, To: time.Hour}}, at(2, 12, 0), false, time.Time{}},
	} {
		open, next := c.hours.Open(c.t)
		if open != c.open || !next.Equal(c.next) {
			t.Errorf("%s: %v until %s, want %v until %s", name, open, next, c.open, c.next)
		}
	}
	if from, to := nights[0].on(at(28, 0, 0), 0); to.Sub(from) != 7*time.Hour {
		t.Errorf("the night in which the clock goes forward has %s", to.Sub(from))
	}
}
