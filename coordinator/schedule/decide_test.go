package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// complete is a spec that must be right.
func complete(t testing.TB, s Spec) Spec {
	t.Helper()
	if s.Name == "" {
		s.Name = "test"
	}
	if s.Workflow == "" {
		s.Workflow = "map"
	}
	s, err := Complete(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// story drives Decide as a Runner would: what is decided is submitted, and runs end when the story says so.
type story struct {
	t       testing.TB
	spec    Spec
	state   State
	now     time.Time
	runs    int
	reasons []string
	next    time.Time
	fired   []string // times or files, in order
}

func newStory(t testing.TB, s Spec, now time.Time) *story {
	return &story{t: t, spec: complete(t, s), state: NewState(now), now: now}
}

func (s *story) decide(facts Facts) Decision {
	s.t.Helper()
	d := Decide(s.spec, s.state, s.now, facts)
	s.state, s.reasons, s.next = d.State, d.Reasons, d.Next
	for _, f := range s.state.Outbox {
		s.runs++
		s.state.Running = append(s.state.Running, Started{Key: f.Key, Run: fmt.Sprintf("run%d", s.runs), At: s.now})
		what := f.Due.Format("02 15:04")
		if f.Files != nil {
			what = ""
			for _, file := range f.Files {
				what += file.Path + " "
			}
		}
		s.fired = append(s.fired, strings.TrimSpace(what))
	}
	s.state.Outbox = nil
	return d
}

// to goes on to a time, deciding whenever it is asked to.
func (s *story) to(text string) *story {
	s.t.Helper()
	end := at(s.t.(*testing.T), text)
	for {
		s.decide(Facts{})
		if s.next.IsZero() || s.next.After(end) {
			s.now = end
			s.decide(Facts{})
			return s
		}
		s.now = s.next
	}
}

// jump sets the clock.
func (s *story) jump(text string) *story {
	s.t.Helper()
	s.now = at(s.t.(*testing.T), text)
	s.decide(Facts{})
	return s
}

// end ends the oldest run.
func (s *story) end(state string) *story {
	s.t.Helper()
	if len(s.state.Running) == 0 {
		s.t.Fatal("no run is under way")
	}
	one, none := 1.0, 0
	s.decide(Facts{Ended: []End{{Run: s.state.Running[0].Run, State: state, At: s.now, Coverage: &one, Failures: &none}}})
	return s
}

// restart keeps what the store keeps.
func (s *story) restart() *story {
	s.t.Helper()
	data, err := json.Marshal(s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	s.state = State{}
	if err := json.Unmarshal(data, &s.state); err != nil {
		s.t.Fatal(err)
	}
	return s
}

func (s *story) want(want ...string) *story {
	s.t.Helper()
	if got := strings.Join(s.fired, ", "); got != strings.Join(want, ", ") {
		s.t.Errorf("\n got %s\nwant %s\nreasons %q", got, strings.Join(want, ", "), s.reasons)
	}
	s.fired = nil
	return s
}

func (s *story) because(text string) *story {
	s.t.Helper()
	all := slices.Clone(s.reasons)
	for _, n := range s.state.Notes {
		all = append(all, n.Text)
	}
	if !strings.Contains(strings.Join(all, "\n"), text) {
		s.t.Errorf("%q does not say %q", all, text)
	}
	return s
}

const start = "2026-11-01T00:00:00Z"

func hourly(t *testing.T, s Spec) *story {
	s.Cron = "0 * * * *"
	return newStory(t, s, at(t, start))
}

func TestOverlapPolicies(t *testing.T) {
	t.Run("skip", func(t *testing.T) {
		s := hourly(t, Spec{Overlap: Skip}).to("2026-11-01T03:30:00Z").want("01 01:00")
		s.end("completed").to("2026-11-01T04:30:00Z").want("01 04:00")
		s.to("2026-11-01T05:00:00Z").because("overlap skip")
	})
	t.Run("queue", func(t *testing.T) {
		s := hourly(t, Spec{Overlap: Queue}).to("2026-11-01T04:00:00Z").want("01 01:00").because("overlap queue")
		s.end("completed").want("01 02:00")
		s.end("completed").want()
	})
	t.Run("cancel", func(t *testing.T) {
		s := hourly(t, Spec{Overlap: Cancel}).to("2026-11-01T02:00:00Z").want("01 01:00", "01 02:00")
		if fmt.Sprint(s.state.Cancel) != "[run1]" {
			t.Errorf("cancelled: %v", s.state.Cancel)
		}
		if s.end("cancelled"); len(s.state.Cancel) != 0 {
			t.Errorf("a run that has ended is still to be cancelled: %v", s.state.Cancel)
		}
	})
	t.Run("allow", func(t *testing.T) {
		hourly(t, Spec{Overlap: Allow}).to("2026-11-01T03:00:00Z").want("01 01:00", "01 02:00", "01 03:00")
	})
}

func TestCatchUpPolicies(t *testing.T) {
	for _, c := range []struct {
		name    string
		catchUp CatchUp
		back    string
		want    []string // after every run has ended
	}{
		{"none, missed", CatchUp{Policy: None}, "2026-11-03T12:30:00Z", nil},
		{"none, just in time", CatchUp{Policy: None}, "2026-11-03T12:00:50Z", []string{"03 12:00"}},
		{"last", CatchUp{Policy: Last}, "2026-11-03T12:30:00Z", []string{"03 12:00"}},
		{"all", CatchUp{Policy: All, Most: 3}, "2026-11-03T12:30:00Z", []string{"03 10:00", "03 11:00", "03 12:00"}},
		{"all, fewer than it may", CatchUp{Policy: All, Most: 100}, "2026-11-01T02:30:00Z", []string{"01 01:00", "01 02:00"}},
		{"all, by default", CatchUp{Policy: All}, "2026-11-01T12:30:00Z",
			[]string{"01 03:00", "01 04:00", "01 05:00", "01 06:00", "01 07:00", "01 08:00", "01 09:00", "01 10:00", "01 11:00", "01 12:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := hourly(t, Spec{CatchUp: c.catchUp}).restart().jump(c.back)
			for len(s.state.Running) > 0 {
				s.end("completed")
			}
			s.want(c.want...)
			s.restart().decide(Facts{})
			s.want()
		})
	}
}

// What is made up for comes one after the other, and what comes on time waits behind it or is left out.
func TestMissedTimesRunOneAfterTheOther(t *testing.T) {
	s := hourly(t, Spec{CatchUp: CatchUp{Policy: All, Most: 3}}).jump("2026-11-02T10:30:00Z").want("02 08:00")
	s.to("2026-11-02T11:10:00Z").want().because("overlap skip")
	s.end("completed").want("02 09:00")
	s.end("completed").want("02 10:00")
	s.end("completed").want()
	// A second downtime while they run adds no more than is made up for.
	s.jump("2026-11-03T10:30:00Z").want("03 08:00").jump("2026-11-04T10:30:00Z")
	if len(s.state.Waiting) > 3 {
		t.Errorf("%d wait", len(s.state.Waiting))
	}
}

func TestLimitOfFirings(t *testing.T) {
	s := hourly(t, Spec{Overlap: Allow, MaxFirings: 2}).to("2026-11-01T01:30:00Z").restart()
	s.to("2026-11-02T00:00:00Z").want("01 01:00", "01 02:00")
	if s.end("completed").end("completed"); !s.next.IsZero() {
		t.Errorf("it looks again at %v", s.next)
	}
}

func TestPause(t *testing.T) {
	s := hourly(t, Spec{Overlap: Allow}).to("2026-11-01T01:30:00Z").want("01 01:00")
	s.state = s.state.Pause(s.now, "a person", "holidays")
	s.restart().to("2026-11-09T01:30:00Z").want().because("a person")
	s.state = s.state.Resume(s.now)
	s.to("2026-11-09T02:30:00Z").want("09 02:00")
}

func TestClockThatJumps(t *testing.T) {
	t.Run("back by an hour", func(t *testing.T) {
		s := hourly(t, Spec{Overlap: Allow}).to("2026-11-01T03:10:00Z").want("01 01:00", "01 02:00", "01 03:00")
		s.jump("2026-11-01T01:30:00Z").to("2026-11-01T04:10:00Z").want("01 04:00")
	})
	t.Run("forward and back by years", func(t *testing.T) {
		s := hourly(t, Spec{Overlap: Allow}).to("2026-11-01T01:10:00Z").want("01 01:00")
		s.jump("2031-01-01T00:30:00Z").want("01 00:00") // as after a downtime
		s.jump("2026-11-01T01:20:00Z").because("went back")
		s.to("2026-11-01T03:10:00Z").want("01 02:00", "01 03:00")
	})
	t.Run("what was fired is not fired again", func(t *testing.T) {
		s := hourly(t, Spec{Overlap: Allow}).to("2026-11-02T05:10:00Z")
		fired := len(s.fired)
		s.jump("2026-11-01T00:10:00Z").to("2026-11-02T06:10:00Z")
		if again := len(s.fired) - fired; again != 1 {
			t.Errorf("%d were fired: %v", again, s.fired[fired:])
		}
	})
}

func TestIntervalKeepsItsGrid(t *testing.T) {
	s := newStory(t, Spec{EverySeconds: 5400, Overlap: Allow}, at(t, start)).to("2026-11-01T03:10:00Z").want("01 01:30", "01 03:00")
	s.restart().jump("2026-11-01T09:10:00Z").want("01 09:00").to("2026-11-01T10:30:00Z").want("01 10:30")
}

func TestRuleAndGoal(t *testing.T) {
	t.Run("rule", func(t *testing.T) {
		s := hourly(t, Spec{Rule: []Condition{{"last_ok", "=", 0}}}).to("2026-11-01T01:10:00Z").want("01 01:00")
		s.to("2026-11-01T02:10:00Z").because("not known yet")
		s.end("failed").to("2026-11-01T03:10:00Z").want("01 03:00")
		s.end("completed").to("2026-11-01T06:00:00Z").want().because("last_ok = 0 is asked for, and it is 1")
	})
	t.Run("goal", func(t *testing.T) {
		s := hourly(t, Spec{Goal: &Goal{"every file has a summary", []Condition{{"last_coverage", "<", 1}}}})
		if s.spec.Level != L4 {
			t.Errorf("level %s", s.spec.Level)
		}
		s.to("2026-11-01T01:10:00Z").want("01 01:00").end("completed").to("2026-11-01T05:00:00Z").want().because("last_coverage < 1")
	})
}

func TestKeysTellFiringsApart(t *testing.T) {
	s := hourly(t, Spec{Overlap: Allow})
	keys := map[string]bool{}
	for range 3 {
		s.now = s.now.Add(time.Hour)
		for _, f := range s.decide(Facts{}).Firings {
			keys[f.Key] = true
		}
	}
	// Another one of the same name, made later, is another.
	later := newStory(t, Spec{Cron: "0 * * * *"}, at(t, "2026-11-01T00:30:00Z"))
	later.now = at(t, "2026-11-01T01:00:00Z")
	keys[later.decide(Facts{}).Firings[0].Key] = true
	if len(keys) != 4 {
		t.Errorf("%v", keys)
	}
}

func TestDecideChangesNothingItIsGiven(t *testing.T) {
	s := hourly(t, Spec{Overlap: Queue}).to("2026-11-01T02:10:00Z")
	before, _ := json.Marshal(s.state)
	Decide(s.spec, s.state, at(t, "2026-11-09T00:00:00Z"), Facts{Ended: []End{{Run: "run1", State: "completed", At: s.now}}})
	if after, _ := json.Marshal(s.state); string(before) != string(after) {
		t.Errorf("\nbefore %s\nafter %s", before, after)
	}
}

func BenchmarkDecideIdle(b *testing.B) {
	s := newStory(b, Spec{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	for b.Loop() {
		Decide(s.spec, s.state, s.now.Add(time.Hour), Facts{})
	}
}
