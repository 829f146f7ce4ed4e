package configs

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones by name, on systems that have none, such as Windows and small containers
)

// Window is a part of some days of the week by the clock of a time zone.
type Window struct {
	Days     [7]bool       // by time.Weekday, Sunday first: those on which it begins
	From, To time.Duration // since midnight by the clock, at most 24 h; one that ends at or before its begin ends on the next day
}

// windowForm is what the text of a Window may be.
const windowForm = `days and times such as "Mon-Fri 18:00-08:00", "Sat,Sun" or "22:00-06:00"`

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseWindow reads days (names and ranges with commas; left out: every day) and times from-to on a clock of 24 hours (left out: the
// whole day). One that ends at or before its begin ends on the next day; 24:00 is the end of the day itself.
func ParseWindow(text string) (Window, error) {
	w := Window{To: 24 * time.Hour}
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > 2 {
		return Window{}, fmt.Errorf("want %s, got %q", windowForm, text)
	}
	days, times := fields[0], ""
	switch {
	case len(fields) == 2:
		times = fields[1]
	case strings.Contains(days, ":"):
		days, times = "sun-sat", days
	}
	var err error
	if w.Days, err = parseDays(days); err != nil {
		return Window{}, fmt.Errorf("%w in %q: want %s", err, text, windowForm)
	}
	if times == "" {
		return w, nil
	}
	if w.From, w.To, err = parseTimes(times); err != nil {
		return Window{}, fmt.Errorf("%w in %q: want %s", err, text, windowForm)
	}
	return w, nil
}

// parseDays reads "Mon-Fri,Sun"; a range may go over the end of the week.
func parseDays(text string) (days [7]bool, err error) {
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, ok := weekday(first)
		to := from
		if isRange && ok {
			to, ok = weekday(last)
		}
		if !ok {
			return days, fmt.Errorf("no days of the week are %q", part)
		}
		for d := from; ; d = (d + 1) % 7 {
			days[d] = true
			if d == to {
				break
			}
		}
	}
	return days, nil
}

// weekday reads a day by its English name or the first three letters of it.
func weekday(text string) (int, bool) {
	text = strings.ToLower(text)
	for i, short := range weekdays {
		if text == short || text == strings.ToLower(time.Weekday(i).String()) {
			return i, true
		}
	}
	return 0, false
}

func parseTimes(text string) (from, to time.Duration, err error) {
	first, last, ok := strings.Cut(text, "-")
	if from, err = parseClock(first); err != nil {
		return 0, 0, err
	}
	if !ok {
		return 0, 0, fmt.Errorf("no end of %s", text)
	}
	if to, err = parseClock(last); err != nil {
		return 0, 0, err
	}
	switch day := 24 * time.Hour; {
	case from == day:
		return 0, 0, fmt.Errorf("it cannot begin at 24:00, which is 00:00 of the next day,")
	case from == to:
		return 0, 0, fmt.Errorf("it ends as it begins, at %s,", first)
	}
	return from, to, nil
}

// parseClock reads "8:00", "18:30" or "24:00".
func parseClock(text string) (time.Duration, error) {
	if text == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("no time of day is %q", text)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}
