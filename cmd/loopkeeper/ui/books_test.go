package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func booked() *coordinatorv1.Run {
	r := longRun()
	r.State, r.Ended, r.Waits, r.Parent, r.Children, r.Base = "waiting", nil, 2, "p4rt", []string{"c1aa", "c2bb"}, "b4se"
	r.Limits = []*coordinatorv1.Limit{{Name: "tokens", Limit: 200000, Spent: 214000, Overshoot: 14000, Worst: 216000, SetBy: "run"},
		{Name: "active_seconds", Limit: 7200, Spent: 61, SetBy: "workflow"}, {Name: "spawn_depth", Limit: 8, SetBy: "default"}}
	r.Acceptance = &coordinatorv1.Acceptance{Expected: 400, Covered: 396, Handled: 1, Failed: 1, Uncovered: 2, UncoveredKeys: []string{"docs/a.md", "docs/b.md"},
		ByCode: 3, HandledBy: []string{"step 0, docs/c.md was waived: a draft"}, Swallowed: []string{"step 4: timeout: nothing came for a long time, and then nothing came again"}, SwallowedAll: 3}
	r.Phases = []*coordinatorv1.Phase{{Pipeline: "house", Name: "plan", State: "completed", Round: 1},
		{Pipeline: "house", Name: "roof", State: "in_progress", Round: 2, Reasons: []string{"from walls: " + strings.Repeat("too thin ", 12)}}}
	r.Steps[0].WaitingFor, r.Steps[0].Until, r.Steps[0].Child = "timer", noon.Add(240*time.Hour).Format(time.RFC3339), "c1aa"
	return r
}

// What a run may use, what it owes and whom it waits for is said in words, whole on a pipe and within the lines of a terminal.
func TestBooksAreSaidInWords(t *testing.T) {
	text := Show(Style{}, booked(), noon)
	for _, want := range []string{
		"asks     2 steps wait for a person\n", "phase    house: phase roof (2 of 2), round 2\n", "parent   run p4rt\n", "children c1aa, c2bb\n",
		"base     takes over what succeeded in run b4se\n",
		"limit    tokens: 214,000 of 200,000 spent, 14,000 too much, at most 216,000 were possible, set by this run\n",
		"limit    active time: 1m01s of 2h00m spent, set by its workflow\n", "limit    depth of children: at most 8, set by the default\n",
		"accepted 400 expected: 396 covered, 1 handled, 1 failed, 2 never done; of 3 only the script says so\n",
		"missing  docs/a.md, docs/b.md\n", "handled  step 0, docs/c.md was waived: a draft\n",
		"unseen   the script caught this failure and did not waive it: step 4: timeout:", "unseen   and 2 more\n", "run c1aa",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	for _, screen := range []string{Show(Style{Width: 80}, booked(), noon), Summary(Style{Width: 80}, booked(), noon, 16)} {
		for _, line := range strings.Split(screen, "\n") {
			if w := ansi.StringWidth(line); w > 80 {
				t.Errorf("%d cells: %s", w, line)
			}
		}
	}
	if !strings.Contains(Summary(Style{}, booked(), noon, 16), "coverage 99 % (396 of 400)") {
		t.Error("the summary counts what the script worked on, not what it was given")
	}
	if strings.Contains(Summary(Style{}, booked(), noon, 16), "depth of children") {
		t.Error("the summary tells of a limit that was not reached")
	}
}

func TestWaitsSayWhatHappensByItself(t *testing.T) {
	w := &coordinatorv1.Wait{RunId: "7f3k", Step: "3", Workflow: "ask.ts", Kind: "approve", Title: "go\x1b[31m?", Will: "it goes out", Since: timestamppb.New(noon.Add(-time.Hour)),
		Until: timestamppb.New(noon.Add(72 * time.Hour)), OnTimeoutJson: []byte(`"rejected"`), Choices: []string{"a", "b"}}
	table := Waits(Style{}, []*coordinatorv1.Wait{w, {RunId: "9aaa", Step: "1", Kind: "unknown", Title: "did it?", Since: timestamppb.New(noon)}}, noon)
	for _, want := range []string{"approval", "go<U+001B>[31m?", ": rejected", "did it happen?", "never"} {
		if !strings.Contains(table, want) {
			t.Errorf("it lacks %q:\n%s", want, table)
		}
	}
	full := Wait(Style{}, w, []Body{{"draft.md", strings.Repeat("line\n", 20)}}, noon)
	for _, want := range []string{"then     it goes out\n", "choices  a, b\n", "draft.md\n  line\n", "(8 more lines)"} {
		if !strings.Contains(full, want) {
			t.Errorf("it lacks %q:\n%s", want, full)
		}
	}
	if strings.Contains(table+full, "\x1b") {
		t.Error("a title moves the cursor")
	}
}

// A time to come is told apart from the same hour of another day.
func TestTimesToCome(t *testing.T) {
	day := time.Date(2026, 3, 2, 12, 0, 0, 0, time.Local)
	for d, want := range map[time.Duration]string{2 * time.Hour: "14:00", 24 * time.Hour: "Tue 12:00", 240 * time.Hour: "2026-03-12 12:00"} {
		if got := Clock(day.Add(d), day); got != want {
			t.Errorf("in %s it is %q, want %q", d, got, want)
		}
	}
}
