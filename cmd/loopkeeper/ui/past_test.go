package ui

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Of a run that is over the lines have the times at which it happened, not the time of looking.
func TestThePastHasItsOwnTime(t *testing.T) {
	done := func(id string, after time.Duration) *coordinatorv1.Step {
		return &coordinatorv1.Step{Id: id, Kind: "generate", State: "succeeded", Started: at(-3 * time.Hour), Ended: at(-3*time.Hour + after)}
	}
	r := &coordinatorv1.Run{Id: "7f3k", Workflow: "x", State: "completed", Created: at(-3 * time.Hour), Ended: at(-2 * time.Hour), Logs: []string{"hello"},
		Steps: []*coordinatorv1.Step{done("0", time.Minute), done("1", 2*time.Minute)}}
	var b strings.Builder
	(&Lines{W: &b}).Show(r, noon)
	for _, want := range []string{"10:00:00 run 7f3k completed", "         log  hello\n", "09:01:00 ", "09:02:00 "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	(&Lines{W: &b}).Show(r, noon.Add(48*time.Hour))
	if !strings.HasPrefix(b.String(), "2026-11-05 10:00:00 run 7f3k completed") {
		t.Errorf("of another day:\n%s", b.String())
	}
	b.Reset()
	l := &Lines{W: &b}
	r.Ended, r.State, r.Logs, r.Steps = nil, "running", nil, nil
	l.Show(r, noon)
	r.Logs = []string{"now"}
	l.Show(r, noon.Add(time.Second))
	if want := "12:00:00 run 7f3k running: x\n12:00:01 log  now\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
}

// Failures that did not keep a run from completing are told, but nothing is to be done about them, and it is all done.
func TestACompletedRunHasNothingLeftToDo(t *testing.T) {
	r := &coordinatorv1.Run{Id: "7f3k", Workflow: "x", State: "completed", Created: at(-time.Minute), Ended: at(0),
		Items:    &coordinatorv1.Counts{Total: 2, Succeeded: 1, Failed: 1},
		Failures: []*coordinatorv1.FailureGroup{{Kind: "model_missing", Message: "none has it", Count: 1, Next: []string{"loopkeeper models pull x --everywhere"}}}}
	for name, text := range map[string]string{"summary": Summary(Style{}, r, noon, 0), "show": Show(Style{}, r, noon)} {
		if strings.Contains(text, "Next:") || !strings.Contains(text, "FAILED ON THE WAY") || strings.Contains(text, "50 %") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if list := Runs(Style{}, []*coordinatorv1.Run{r}, noon); !strings.Contains(list, "1/2  100 %") || !strings.Contains(list, "1 failed on the way") {
		t.Errorf("list:\n%s", list)
	}
	r.State = "incomplete"
	if text := Summary(Style{}, r, noon, 10); !strings.Contains(text, "Next: loopkeeper models pull") || !strings.Contains(text, "coverage 50 %") {
		t.Errorf("incomplete:\n%s", text)
	}
	r.State, r.Items, r.ByCode = "completed", nil, 3
	if list := Runs(Style{}, []*coordinatorv1.Run{r}, noon); !strings.Contains(list, "of 3 only the script says so") {
		t.Errorf("nothing but the script's word:\n%s", list)
	}
}

func TestStepsThatFollowEachOtherAreARange(t *testing.T) {
	for _, c := range []struct{ steps, want string }{
		{"0", "step 0"}, {"0 1", "steps 0, 1"}, {"0 2", "steps 0, 2"}, {"0 1 2", "steps 0-2"}, {"0 1 2 4 7 8 9 11", "steps 0-2, 4, 7-9, 11"}, {"2 1 0", "steps 2, 1, 0"},
	} {
		if got := stepRanges(strings.Fields(c.steps)); got != c.want {
			t.Errorf("%s: %s, want %s", c.steps, got, c.want)
		}
	}
}

func TestLinesOfARecursionAreCounted(t *testing.T) {
	got := withoutRepeats("at f\nat f\nat f\nat f\nat g\nat g\nat h")
	if want := "at f\n    ... 3 more of the same\nat g\nat g\nat h"; got != want {
		t.Errorf("got %q", got)
	}
}

// That a person has to answer is said once, in words about what is asked; "1 for a person: a person has to answer" says nothing.
func TestAnApprovalIsNoQueue(t *testing.T) {
	r := &coordinatorv1.Run{Id: "7f3k", Workflow: "x", State: "waiting", Waits: 1, Created: at(0), Simulated: true, Items: &coordinatorv1.Counts{Waiting: 1},
		Waiting: []*coordinatorv1.Reason{{WaitingFor: "human", Count: 1, Why: "a person has to answer"}}}
	text := Show(Style{}, r, noon)
	if strings.Contains(text, "a person has to answer") || !strings.Contains(text, "1 step waits for a person") {
		t.Errorf("got\n%s", text)
	}
	if strings.Contains(text, "simulated") {
		t.Errorf("no model was called:\n%s", text)
	}
	var s stillness
	s.news(r, noon)
	if news := s.news(r, noon.Add(time.Hour)); news != "" {
		t.Errorf("news: %s", news)
	}
	r.Calls = 1
	if !strings.Contains(Show(Style{}, r, noon), "simulated") {
		t.Error("a call of a stand-in is not marked")
	}
}

// A run whose items were all done before it failed does not read as if nothing was missing.
func TestAFailedRunIsNotFullyCovered(t *testing.T) {
	r := &coordinatorv1.Run{Id: "7f3k", Workflow: "x.ts", State: "failed", Created: at(-time.Minute), Ended: at(0), Items: &coordinatorv1.Counts{Total: 2, Succeeded: 2},
		Acceptance: &coordinatorv1.Acceptance{Expected: 2, Covered: 2, Swallowed: []string{"step 4: timeout"}, SwallowedAll: 1}}
	text := Summary(Style{}, r, noon, 11)
	if strings.Contains(text, "100 %") || !strings.Contains(text, "2 of 2 done, then the run failed") {
		t.Errorf("summary:\n%s", text)
	}
	if list := Runs(Style{}, []*coordinatorv1.Run{r}, noon); strings.Contains(list, "100 %") {
		t.Errorf("list:\n%s", list)
	}
	if r.BuiltIn = true; strings.Contains(Summary(Style{}, r, noon, 11), "the script caught") {
		t.Error("a script is blamed that nobody wrote")
	}
}

// What starts every few seconds has seconds.
func TestShortIntervalsHaveSeconds(t *testing.T) {
	s := &coordinatorv1.Schedule{Name: "tick", Workflow: "x", SpecJson: []byte(`{"every_seconds":10}`), Next: at(25 * time.Second)}
	if text := Schedules(Style{}, []*coordinatorv1.Schedule{s}, noon); !strings.Contains(text, "12:00:25") {
		t.Errorf("list:\n%s", text)
	}
	if text := Schedule(Style{}, s, []*timestamppb.Timestamp{at(25 * time.Second)}, noon); !strings.Contains(text, "12:00:25") {
		t.Errorf("in full:\n%s", text)
	}
	s.SpecJson = []byte(`{"every_seconds":3600,"zone":"Asia/Tokyo"}`)
	if text := Schedules(Style{}, []*coordinatorv1.Schedule{s}, noon); !strings.Contains(text, noon.In(zoneOf("Asia/Tokyo")).Format("15:04 JST")) {
		t.Errorf("its zone's clock:\n%s", text)
	}
	if text := Schedules(Style{}, []*coordinatorv1.Schedule{s}, noon); strings.Contains(text, "12:00:25") {
		t.Errorf("hourly:\n%s", text)
	}
}
