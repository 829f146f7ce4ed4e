package ui

import (
	"fmt"
	"strconv"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// GiB prints bytes as GiB with one decimal, the one unit of memory on every screen.
func GiB(bytes uint64) string { return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) }

// Count prints a whole number with commas.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Tokens prints a number of tokens: 812, 214 k, 1.21 M.
func Tokens(n int64) string {
	switch {
	case n < 10_000:
		return Count(n)
	case n < 1_000_000:
		return fmt.Sprintf("%d k", n/1000)
	default:
		return fmt.Sprintf("%.2f M", float64(n)/1e6)
	}
}

// Plural prints "1 item" or "3 items".
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Duration prints two units at most: 0.4s, 12s, 41m12s, 3h07m, 2d04h.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Age prints how long ago something was, in one unit.
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// Clock prints a time as people read it: today 22:04, this week Thu 02:10, else 2026-11-02.
func Clock(t, now time.Time) string { return clockIn(t, now, time.Local) }

// clockIn is Clock on the clock of a zone.
func clockIn(t, now time.Time, zone *time.Location) string {
	t, now = t.In(zone), now.In(zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch {
	case t.IsZero():
		return "-"
	case !t.Before(midnight.AddDate(0, 0, 6)):
		return t.Format("2006-01-02 15:04")
	case !t.Before(midnight.AddDate(0, 0, 1)):
		return t.Format("Mon 15:04")
	case !t.Before(midnight):
		return t.Format("15:04")
	case t.After(midnight.AddDate(0, 0, -6)):
		return t.Format("Mon 15:04")
	default:
		return t.Format("2006-01-02")
	}
}

// Percent prints a share of a whole, rounded down so that 100 % means all; "-" when there is no whole.
func Percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", part*100/whole)
}

// Middle shortens a name in the middle, keeping its end, which of a path is the file.
func Middle(s string, width int) string {
	if ansi.StringWidth(s) <= width {
		return s
	}
	if width < 8 {
		return ansi.Truncate(s, max(width, 0), "")
	}
	tail := width * 2 / 3
	return ansi.Truncate(s, width-tail-3, "") + "..." + ansi.TruncateLeft(s, ansi.StringWidth(s)-tail, "")
}
