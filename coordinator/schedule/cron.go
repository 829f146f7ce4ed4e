package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// cron is a parsed expression: for each field the set of its values as bits.
type cron struct {
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool // began with *: the other one alone decides
	zone                              *time.Location
}

// unit is a field of an expression.
type unit struct {
	name     string
	low, top int
	names    []string // of the values from low on
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

	units = []unit{{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day", 1, 31, nil}, {"month", 1, 12, months}, {"weekday", 0, 7, weekdays}}
)

// shorthands are the names that crontab(5) gives to expressions.
var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parseCron reads the five fields of crontab(5): minute, hour, day of the month, month, day of the week; *, lists, ranges, steps, English
// names. Sunday is 0 or 7. Where neither day begins with *, one of the two suffices.
func parseCron(text string, zone *time.Location) (*cron, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if strings.HasPrefix(text, "@") {
		known, ok := shorthands[text]
		if !ok {
			return nil, fmt.Errorf("%q is none of @hourly, @daily, @weekly, @monthly, @yearly; for an interval use --every", text)
		}
		text = known
	}
	fields := strings.Fields(text)
	if len(fields) != len(units) {
		return nil, fmt.Errorf("%q has %d fields, not the 5: minute hour day month weekday", text, len(fields))
	}
	c := &cron{zone: zone, anyDay: fields[2][0] == '*', anyWeekday: fields[4][0] == '*'}
	for i, set := range []*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		var err error
		if *set, err = units[i].parse(fields[i]); err != nil {
			return nil, err
		}
	}
	const sunday, otherSunday = 1 << 0, 1 << 7
	if c.weekday&otherSunday != 0 {
		c.weekday = c.weekday&^otherSunday | sunday
	}
	if c.never() {
		return nil, fmt.Errorf("%q never happens: no month it names has such a day", text)
	}
	return c, nil
}

// parse reads one field: a list of values, ranges and *, each with a step or without.
func (u unit) parse(field string) (set uint64, err error) {
	for part := range strings.SplitSeq(field, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		from, to, step := u.low, u.top, 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > u.top {
				return 0, fmt.Errorf("the %s %q: %q is no step from 1 to %d", u.name, field, stepText, u.top)
			}
		}
		first, last, ranged := strings.Cut(span, "-")
		if span != "*" {
			if from, err = u.value(field, first); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = u.value(field, last); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		} else if u.top == 7 {
			to = 6 // 7 is Sunday again
		}
		if from > to {
			return 0, fmt.Errorf("the %s %q: %s ends before it begins; write it as two ranges with a comma", u.name, field, span)
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (u unit) value(field, text string) (int, error) {
	for i, name := range u.names {
		if text == name {
			return u.low + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < u.low || v > u.top || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("the %s %q: %q is not from %d to %d", u.name, field, text, u.low, u.top)
	}
	return v, nil
}

// never says that no year has a day that the expression names, such as the 30th of February.
func (c *cron) never() bool {
	if !c.anyWeekday { // every month has every weekday
		return false
	}
	longest := [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for i, days := range longest {
		if c.month&(1<<(i+1)) != 0 && bits.TrailingZeros64(c.day) <= days {
			return false
		}
	}
	return true
}

func has(set uint64, v int) bool { return set&(1<<v) != 0 }

// onDay says whether the expression names the day of a civil time.
func (c *cron) onDay(t time.Time) bool {
	day, weekday := has(c.day, t.Day()), has(c.weekday, int(t.Weekday()))
	if !has(c.month, int(t.Month())) {
		return false
	}
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
