package ui

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// longRun has names and messages that are longer than a line.
func longRun() *coordinatorv1.Run {
	r := aRun()
	r.Workflow = "review-of-the-whole-archive.ts"
	r.CancelReason = "the prompt asked for the wrong thing, and whoever started it was not there to say so"
	r.Logs = []string{"info: " + strings.Repeat("a word and ", 12)}
	r.Failures[0].Message = "/findings/0/line: want integer, got string; /findings/1: an additional property named severity is not allowed"
	r.Failures[0].Items = []string{"docs/a/very/long/path/to/errors.md", "docs/another/long/path/api.md"}
	r.Failures[0].Simulated = true
	r.Failures[1].Kind = "sent_back"
	r.Failures[1].Next = []string{"loosen the schema", "loopkeeper explain qwen3:8b"}
	r.Steps[0].Label = "every letter of the archive, one by one"
	return r
}

// On a terminal every screen fits: ids, states and numbers whole, names shortened, sentences going on in the next line.
func TestScreensFitEightyColumns(t *testing.T) {
	s := Style{Unicode: true, Width: 80}
	nodes := someNodes()
	nodes.Nodes[0].Claims[0].Model = "registry.example.org/library/qwen3:8b-instruct-q4_K_M"
	available := uint64(10 << 30)
	explained := &coordinatorv1.Explanation{Subject: "qwen3:32b", Summary: "waits", WaitingFor: "memory", Nodes: []*coordinatorv1.NodeVerdict{
		{Node: "attic", Verdict: "no_model", AvailableBytes: &available, Why: "needs 21.0 GiB, 10.0 GiB available, 11.0 GiB short while qwen3:8b is in use"}}}
	for name, screen := range map[string]string{
		"runs-80":    Runs(s, []*coordinatorv1.Run{longRun(), aRun()}, noon),
		"nodes-80":   Nodes(s, nodes, "off", noon),
		"show-80":    Show(s, longRun(), noon),
		"summary-80": Summary(s, longRun(), noon, 10),
		"explain-80": Explain(s, explained, noon),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, screen)
			for _, line := range strings.Split(screen, "\n") {
				if w := ansi.StringWidth(line); w > 80 {
					t.Errorf("%d cells: %s", w, line)
				}
			}
		})
	}
	if table := Failures(Style{}, longRun()); !strings.Contains(table, "severity is not allowed (simulated)  docs/a/very/long/path/to/errors.md, docs/another") {
		t.Errorf("on a pipe something is cut:\n%s", table)
	}
	if table := Failures(s, longRun()); strings.Count(table, "loosen the schema") != 1 || !strings.Contains(table, "sent back") {
		t.Errorf("advice is repeated, or a kind is no word:\n%s", table)
	}
}

// What a cancel leaves is not done: no share of it, and no rate.
func TestCancelledItemsAreNotDone(t *testing.T) {
	r := aRun()
	r.State, r.Ended, r.InFlight, r.Waiting, r.Failures = "cancelled", at(0), nil, nil, nil
	r.Items = &coordinatorv1.Counts{Total: 400, Succeeded: 100, Cancelled: 300}
	rate := &Rate{}
	rate.Add(noon.Add(-time.Minute), 90)
	rate.Add(noon, worked(r.Items))
	screen := strings.Join(Frame{Width: 79, Height: 24, Now: noon, Rate: rate}.Lines(r), "\n")
	if !strings.Contains(screen, "25 %  100 of 400") || !strings.Contains(screen, "10.0 items/min ") || strings.Contains(screen, "ETA") {
		t.Errorf("got:\n%s", screen)
	}
	if strings.HasSuffix(screen, "\n") {
		t.Errorf("blank lines are left under the last frame: %q", screen)
	}
}

// aPlan is under way: nobody knows yet how many steps it will have.
func aPlan() *coordinatorv1.Run {
	r := &coordinatorv1.Run{Id: "7f2a", Workflow: "plan", State: "running", Started: at(-time.Minute), Items: &coordinatorv1.Counts{Total: 3, Succeeded: 2, Running: 1},
		InFlight: []*coordinatorv1.InFlight{{Node: "attic", Model: "qwen3:8b", Attempt: 1, Label: "generate, step 2", Since: at(0), Phase: "sent", NodeState: "degraded"}}}
	for i := range 3 {
		r.Steps = append(r.Steps, &coordinatorv1.Step{Id: strconv.Itoa(i), Kind: "generate", State: "succeeded", Items: &coordinatorv1.Counts{Total: 1, Succeeded: 1}})
	}
	return r
}

func TestARunThatGrowsPretendsNothing(t *testing.T) {
	rate := &Rate{}
	rate.Add(noon.Add(-time.Minute), 0)
	rate.Add(noon, 40)
	screen := strings.Join(Frame{Width: 79, Height: 24, Now: noon, Rate: rate, Hint: "hint"}.Lines(aPlan()), "\n")
	if !strings.Contains(screen, "2 of 3 steps so far") || strings.Contains(screen, "%") || strings.Contains(screen, "ETA") {
		t.Errorf("got:\n%s", screen)
	}
	if !strings.Contains(screen, "generate, step 2") || !strings.Contains(screen, "node degraded") {
		t.Errorf("an attempt is not named, or its node is taken for well:\n%s", screen)
	}
}

// While the coordinator does not answer the screen says so, and nothing that may have changed since.
func TestAnOutageIsSaid(t *testing.T) {
	var out strings.Builder
	l := &Live{W: &out, Size: func() (int, int) { return 80, 24 }, Hint: "hint"}
	l.Show(aRun(), noon)
	out.Reset()
	l.Away(noon.Add(time.Second))
	l.Away(noon.Add(13 * time.Second))
	got := out.String()
	for _, gone := range []string{"every slot", "0017-leases.md", "waiting", "ETA", "measuring"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q is still shown:\n%s", gone, got)
		}
	}
	if !strings.Contains(got, "the coordinator does not answer, trying again (12s)") || !strings.Contains(got, "when it last answered") {
		t.Errorf("got:\n%s", got)
	}
	out.Reset()
	l.Show(aRun(), noon.Add(20*time.Second))
	if strings.Contains(out.String(), "does not answer") || !strings.Contains(out.String(), "measuring") {
		t.Errorf("after it is back:\n%s", out.String())
	}
}

func TestPlainLinesSayOutagesAndLogsOnce(t *testing.T) {
	var out strings.Builder
	l := &Lines{W: &out}
	r := aRun()
	var logs []string
	for i := range 30 { // a view has the newest 20
		logs = append(logs, "info: line "+strconv.Itoa(i))
		r.Logs = logs[max(0, len(logs)-20):]
		l.Show(r, noon)
		l.Show(r, noon)
	}
	for range 3 {
		l.Away(noon)
	}
	l.Show(r, noon)
	text := out.String()
	if strings.Count(text, "log  info: line") != 30 || strings.Count(text, "does not answer") != 1 || strings.Count(text, "answers again") != 1 {
		t.Errorf("got:\n%s", text)
	}
}

// On a pipe a run that only waits is not silent: it says so when that begins, with the reason, and again when the reason is another one.
func TestPlainLinesSayOnceThatEverythingWaits(t *testing.T) {
	var out strings.Builder
	l := &Lines{W: &out}
	r := aRun()
	show := func(running int64, why *coordinatorv1.Reason, seconds ...int) {
		r.Items = &coordinatorv1.Counts{Total: 40, Succeeded: 1, Running: running, Waiting: 39}
		r.Waiting = []*coordinatorv1.Reason{why}
		for _, s := range seconds {
			l.Show(r, noon.Add(time.Duration(s)*time.Second))
		}
	}
	memory := &coordinatorv1.Reason{WaitingFor: "memory", Count: 39, Why: "qwen3:32b waits for memory: attic is 2.1 GiB short"}
	show(0, memory, 0, 1) // soon over
	show(1, &coordinatorv1.Reason{WaitingFor: "slot", Count: 39}, 2)
	show(0, memory, 3, 4, 5, 6, 7)
	show(0, &coordinatorv1.Reason{WaitingFor: "load", Count: 39}, 8, 9)
	var said []string
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.Contains(line, "all wait") {
			said = append(said, line)
		}
	}
	want := []string{"12:00:05 all wait, 39 for memory: qwen3:32b waits for memory: attic is 2.1 GiB short", "12:00:08 all wait, 39 for a model to be loaded"}
	if !slices.Equal(said, want) {
		t.Errorf("got %q", said)
	}
	out.Reset()
	show(0, memory, 9, 10, 40) // the same again half a minute later
	if want := "12:00:40 2 %  1 of 40, 0 failed, all wait, 39 for memory: qwen3:32b waits for memory: attic is 2.1 GiB short"; !strings.Contains(out.String(), want) {
		t.Errorf("it lacks %q:\n%s", want, out.String())
	}
	out.Reset()
	show(1, memory, 80)
	if strings.Contains(out.String(), "all wait") || !strings.Contains(out.String(), "0 failed, measuring") {
		t.Errorf("one runs:\n%s", out.String())
	}
}

// What a retry takes over ends at once and is no work: neither the rate nor the expected end rest on it.
func TestTheRateLeavesOutWhatWasTakenOver(t *testing.T) {
	var out strings.Builder
	l := &Lines{W: &out}
	r := &coordinatorv1.Run{Id: "8aaa", Workflow: "map", State: "running", Base: "7f3k", Items: &coordinatorv1.Counts{Total: 100, Waiting: 100}}
	l.Show(r, noon)
	r.Items = &coordinatorv1.Counts{Total: 100, Succeeded: 90, Waiting: 10}
	l.Show(r, noon.Add(time.Second))
	r.Items, r.Nodes = &coordinatorv1.Counts{Total: 100, Succeeded: 94, Waiting: 6}, []*coordinatorv1.NodeShare{{Name: "den", Items: 4}}
	l.Show(r, noon.Add(2*time.Minute))
	for _, want := range []string{"90 of 100, 0 failed, measuring", "94 of 100, 0 failed, 2.0 items/min, ETA 3-4 min"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
}

// trace reads a transcript of run/testdata and says it for people.
func trace(t *testing.T, file string, style Style) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr := &Trace{Style: style, Names: map[string]string{"n1": "attic", "n2": "den"}}
	var out strings.Builder
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, event := strings.CutPrefix(lines.Text(), "  ")
		seq, rest, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(seq, 10, 64)
		if !event || err != nil {
			continue
		}
		kind, payload, _ := strings.Cut(rest, " ")
		e := tr.Add(&coordinatorv1.GetTraceResponse{Seq: n, Time: timestamppb.New(noon), Kind: kind, PayloadJson: []byte(payload)})
		out.WriteString(tr.Line(e) + "\n" + Asked(e, "", "", true))
	}
	return out.String()
}

func TestATraceIsForPeople(t *testing.T) {
	golden(t, "trace-judged", trace(t, "testdata/events-judged.txt", Style{}))
	golden(t, "trace-cancel", trace(t, "testdata/events-cancel.txt", Style{}))
	for _, line := range strings.Split(trace(t, "testdata/events-cancel.txt", Style{Width: 80}), "\n") {
		if w := ansi.StringWidth(line); w > 80 {
			t.Errorf("%d cells: %s", w, line)
		}
	}
	tr := &Trace{}
	if got := tr.Line(tr.Add(&coordinatorv1.GetTraceResponse{Seq: 1, Time: timestamppb.New(noon), Kind: "run.teleported", PayloadJson: []byte("{}")})); !strings.Contains(got, "run.teleported") {
		t.Errorf("an event of a newer version: %q", got)
	}
}

func TestWhatWasAskedAndAnswered(t *testing.T) {
	e := Event{Verdict: []byte(`{"verdict":"sent_back","reasons":["the date is wrong"],"facts":[{"quote":"on 3 May","in":"a.md","line":7}],"opinions":["it reads well"]}`)}
	got := Asked(e, "Say\x1b[2J it.\nPlease.", "No.", true)
	want := "  asked:\n    Say<U+001B>[2J it.\n    Please.\n  answered:\n    No.\n  concluded:\n    sent back\n    reason: the date is wrong\n" +
		"    found in the source: in: a.md, line: 7, quote: on 3 May\n    only said: it reads well\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestSettingsLookAlike(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{map[string]int{}, "-"}, {[]string{}, "-"}, {"", "-"}, {nil, "-"}, {0, "0"}, {false, "false"}, {"home", "home"},
		{map[string]int{"b": 2, "a": 1}, "a:1, b:2"}, {[]string{"x", "y"}, "x, y"},
	} {
		if got := SettingText(c.value); got != c.want {
			t.Errorf("%#v is %q, want %q", c.value, got, c.want)
		}
	}
}

func TestInferredSourcesAreMarked(t *testing.T) {
	if got := Output("by room", "x", []string{"0", "2"}, true); !strings.HasPrefix(got, "by room  (from steps 0, 2, inferred)\n") {
		t.Errorf("got %q", got)
	}
	if got := Output("result", "x", []string{"0"}, false); !strings.HasPrefix(got, "result  (from step 0)\n") {
		t.Errorf("got %q", got)
	}
}

// A plan of long goals is read in a terminal of 80 columns: words stay whole, and each goal stands under its beginning.
func TestAPlanWrapsBetweenWords(t *testing.T) {
	got := Plan(Style{Width: 40}, []byte(`{"steps":[{"id":"s1","instruction":"Read what\u001b[31m there is and list what matters for the goal"},
		{"id":"s2","instruction":"Write","each":"files","depends_on":["s1"]}]}`))
	want := `plan of 2 steps:
  s1  Read what<U+001B>[31m there is and
      list what matters for the goal
  s2  Write (for each of files) (after
      s1)`
	if got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What a script throws ends a run in a line: it can neither move the cursor nor look like lines of ours.
func TestAThrownMessageIsOneLine(t *testing.T) {
	r := &coordinatorv1.Run{Id: "7f3k", Workflow: "x", State: "failed", Error: "bad\x1b[2J\nrun 7f3k  completed", ErrorStack: "at \x1b[31mx.ts:1\n"}
	for name, text := range map[string]string{"summary": Summary(Style{}, r, noon, 11), "show": Show(Style{}, r, noon), "runs": Runs(Style{}, []*coordinatorv1.Run{r}, noon)} {
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\nrun 7f3k  completed") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
