package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the product has it from configs
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The dates of the changes are those of the tz database: New York 2026-03-08 02:00 and 2026-11-01 02:00, Berlin 2026-03-29 and 2026-10-25,
// Lord Howe by half an hour 2026-04-05 and 2026-10-04, São Paulo left out midnight of 2018-11-04, Apia left out the whole 2011-12-30.
func TestCronTimes(t *testing.T) {
	for _, c := range []struct{ name, cron, zone, from, want string }{
		{"an hour that does not exist", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", "03-08 03:00-0400, 03-09 02:30-0400"},
		{"several times of it are one", "0,15,30 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", "03-08 03:00-0400, 03-09 02:00-0400"},
		{"the end of the gap is named too", "0 2,3 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", "03-08 03:00-0400, 03-09 02:00-0400"},
		{"an hour that comes twice", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", "11-01 01:30-0400, 11-02 01:30-0500"},
		{"asked within the second one", "30 1 * * *", "America/New_York", "2026-11-01T01:10:00-05:00", "11-02 01:30-0500, 11-03 01:30-0500"},
		{"every half hour goes on in both", "*/30 * * * *", "America/New_York", "2026-11-01T00:45:00-04:00",
			"11-01 01:00-0400, 11-01 01:30-0400, 11-01 01:00-0500, 11-01 01:30-0500, 11-01 02:00-0500"},
		{"every half hour leaves out what is left out", "*/30 * * * *", "America/New_York", "2026-03-08T01:15:00-05:00", "03-08 01:30-0500, 03-08 03:00-0400, 03-08 03:30-0400"},
		{"every second hour", "0 */2 * * *", "Europe/Berlin", "2026-03-29T00:30:00+01:00", "03-29 03:00+0200, 03-29 04:00+0200"},
		{"half an hour that does not exist", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "10-04 02:30+1100, 10-05 02:15+1100"},
		{"half an hour that comes twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", "04-05 01:45+1100, 04-06 01:45+1030"},
		{"no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "11-04 01:00-0200, 11-05 00:00-0200"},
		{"one o'clock after no midnight", "0 1 4 11 *", "America/Sao_Paulo", "2018-11-03T23:00:00-03:00", "11-04 01:00-0200, 11-04 01:00-0300"},
		{"every hour over no midnight", "0 * * * *", "America/Sao_Paulo", "2018-11-03T22:30:00-03:00", "11-03 23:00-0300, 11-04 01:00-0200"},
		{"a day that does not exist", "0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "12-31 00:00+1400, 12-30 12:00+1400"},
		{"29 February", "0 0 29 2 *", "UTC", "2097-01-01T00:00:00Z", "02-29 00:00+0000"},
		{"either day", "0 0 13 * fri", "UTC", "2026-11-01T00:00:00Z", "11-06 00:00+0000, 11-13 00:00+0000, 11-20 00:00+0000"},
		{"both days where one is a star with a step", "0 0 */2 * mon", "UTC", "2026-11-01T00:00:00Z", "11-09 00:00+0000, 11-23 00:00+0000"},
		{"7 is Sunday", "0 9 * * 5-7", "UTC", "2026-11-27T10:00:00Z", "11-28 09:00+0000, 11-29 09:00+0000, 12-04 09:00+0000"},
		{"@weekly", "@weekly", "UTC", "2026-11-27T10:00:00Z", "11-29 00:00+0000, 12-06 00:00+0000"},
		{"names and steps", "5-59/20 8 * JAN,Jul *", "UTC", "2026-12-31T10:00:00Z", "01-01 08:05+0000, 01-01 08:25+0000, 01-01 08:45+0000, 01-02 08:05+0000"},
		{"from a value on", "50/5 8 * * *", "UTC", "2026-12-31T10:00:00Z", "01-01 08:50+0000, 01-01 08:55+0000, 01-02 08:50+0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, err := parseCron(c.cron, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			now := at(t, c.from)
			for range strings.Count(c.want, ",") + 1 {
				now = parsed.next(now)
				got = append(got, now.Format("01-02 15:04-0700"))
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("\n got %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestCronRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "0 fields",
		"* * * *":                      "4 fields",
		"0 0 2 * * *":                  "6 fields",
		"60 * * * *":                   "minute",
		"* 24 * * *":                   "hour",
		"* * 0 * *":                    "day",
		"* * * 13 *":                   "month",
		"* * * * 8":                    "weekday",
		"* * * * mo":                   "weekday",
		"*/0 * * * *":                  "step",
		"5-1 * * * *":                  "ends before it begins",
		"* 22-2 * * *":                 "two ranges",
		"1,,2 * * * *":                 "minute",
		"-1 * * * *":                   "minute",
		"+1 * * * *":                   "minute",
		"* * ? * *":                    "day",
		"0 0 30 2 *":                   "never",
		"0 0 31 2,4,11 *":              "never",
		"@every 1h":                    "--every",
		"@reboot":                      "@daily",
		"99999999999999999999 * * * *": "minute",
	} {
		if _, err := parseCron(text, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", text, err, want)
		}
	}
	if _, err := parseCron("0 0 31 2 1", time.UTC); err != nil {
		t.Errorf("a weekday makes it possible: %v", err)
	}
}

// In any zone, over any change of the clock: a daily time comes once a day, in order and never in the past.
func TestDailyTimesComeOnceADay(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Tehran", "Pacific/Apia",
		"America/Sao_Paulo", "Asia/Gaza", "Antarctica/Troll", "UTC"} {
		z := zone(t, name)
		random := rand.New(rand.NewPCG(1, 2))
		for range 4 {
			h, m := random.IntN(24), random.IntN(60)
			c, err := parseCron(fmt.Sprintf("%d %d * * *", m, h), z)
			if err != nil {
				t.Fatal(err)
			}
			days := map[string]int{}
			from := time.Date(2008, 1, 1, 0, 0, 0, 0, z)
			count := 0
			for at := c.next(from); at.Year() < 2013; at = c.next(at) {
				days[at.Format(time.DateOnly)]++
				count++
			}
			const leftOut = 1 // Apia had no 30 December 2011; its noon happened when the 31st began
			if count < 5*365-1 || len(days) < count-leftOut {
				t.Fatalf("%s %02d:%02d: %d times on %d days", name, h, m, count, len(days))
			}
		}
	}
}

func TestLatestLooksBackWithoutCountingAll(t *testing.T) {
	start := at(t, "2000-01-01T00:00:00Z")
	calls := 0
	second := counted{interval{start, time.Second}, &calls}
	list, earlier := latest(second, start, at(t, "2026-01-01T00:00:00Z"), 3)
	if !earlier || len(list) != 3 || !list[2].Equal(at(t, "2026-01-01T00:00:00Z")) || !list[0].Equal(at(t, "2025-12-31T23:59:58Z")) {
		t.Errorf("%v, %v", list, earlier)
	}
	if calls > 200 {
		t.Errorf("%d times were looked at", calls)
	}
	yearly, err := parseCron("0 0 1 1 *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if list, earlier := latest(yearly, start, at(t, "2003-06-01T00:00:00Z"), 10); earlier || len(list) != 3 {
		t.Errorf("%v, %v", list, earlier)
	}
	if list, _ := latest(yearly, start, start, 10); len(list) != 0 {
		t.Errorf("%v", list)
	}
}

type counted struct {
	times
	calls *int
}

func (c counted) next(t time.Time) time.Time { *c.calls++; return c.times.next(t) }

func FuzzCron(f *testing.F) {
	for _, seed := range []string{"30 2 * * *", "*/5 0-3,7 1,15 jan-mar 1-5", "@daily", "0 0 29 2 *", "59 23 31 12 7"} {
		f.Add(seed, int64(1_700_000_000))
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		c, err := parseCron(text, berlin)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0) // to the year 2242
		next := c.next(now)
		if next.IsZero() || !next.After(now) {
			t.Errorf("%q after %v: %v", text, now, next)
		}
	})
}
