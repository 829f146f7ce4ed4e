package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Frame is what the live view shows of a run at one moment: lines that fit width and height.
type Frame struct {
	Style         Style
	Width, Height int
	Now           time.Time
	Rate          *Rate
	Hint          string        // the last line: what the user can press
	Away          time.Duration // how long the coordinator has not answered; what can change meanwhile is not shown
}

// Lines draws the run.
func (f Frame) Lines(r *coordinatorv1.Run) []string {
	lines := f.head(r)
	tail := f.tail(r)
	room := f.Height - 1 - len(lines) - len(tail)
	middle := append(f.steps(r, room/2), f.inFlight(r, room)...)
	lines = append(append(lines, middle[:min(len(middle), max(room, 0))]...), tail...)
	lines = slices.CompactFunc(lines, func(a, b string) bool { return a == "" && b == "" })
	if f.Hint == "" { // the last frame: nothing is drawn over what follows it
		lines = lines[:len(lines)-trailingBlanks(lines)]
	}
	for i, l := range lines {
		lines[i] = sentence(l, f.Width)
	}
	return lines[:min(len(lines), max(f.Height-1, 1))]
}

func (f Frame) head(r *coordinatorv1.Run) []string {
	simulated := ""
	if SimulatedRun(r) {
		simulated = "  " + f.Style.Warn("simulated")
	}
	c := r.GetItems()
	items := fmt.Sprintf("items  %s  %s  %s of %s", f.bar(c), Percent(c.GetSucceeded(), c.GetTotal()), Count(c.GetSucceeded()), Count(c.GetTotal()))
	remaining := left(c)
	if growing(r) { // neither a share nor an end can be known
		items, remaining = "items  "+soFar(r), 0
	}
	rate := "-"
	if _, known := f.Rate.PerMinute(f.Now); f.Away == 0 && (known || r.GetEnded() == nil) { // nothing is measured any more
		rate = f.Rate.Text(f.Now, remaining)
	}
	return []string{
		fmt.Sprintf("%s  run %s  %s%s  %s", Line(r.GetWorkflow()), r.GetId(), f.Style.paint(looks[r.GetState()].sgr, strings.ToUpper(stateText(r.GetState()))),
			simulated, Duration(Took(r, f.Now))),
		items,
		"       " + f.tally(r),
		fmt.Sprintf("rate   %s   tokens %s in, %s out", rate, Tokens(r.GetPromptTokens()), Tokens(r.GetOutputTokens())),
		"",
	}
}

func (f Frame) bar(c *coordinatorv1.Counts) string {
	if c.GetTotal() == 0 {
		return f.Style.Bar(max(f.Width-40, 10))
	}
	share := func(n int64) float64 { return float64(n) / float64(c.GetTotal()) }
	parts := []Part{{share(c.GetSucceeded()), Ours}, {share(c.GetFailed()), Foreign}}
	if f.Away == 0 {
		parts = append(parts, Part{share(c.GetRunning()), Loading})
	}
	return f.Style.Bar(max(f.Width-40, 10), parts...)
}

// tally is Tally without what may have changed since the coordinator last answered.
func (f Frame) tally(r *coordinatorv1.Run) string {
	if f.Away == 0 {
		text := Tally(r)
		if ansi.StringWidth(text)+7 > f.Width { // the reasons stand below, too
			text = strings.Replace(text, waitsText(r), Count(r.GetItems().GetWaiting())+" waiting", 1)
		}
		return text
	}
	c := r.GetItems()
	return fmt.Sprintf("%s succeeded  %s failed when it last answered", Count(c.GetSucceeded()), Count(c.GetFailed()))
}

// Tally says how many items are in which state, and what those that wait wait for.
func Tally(r *coordinatorv1.Run) string {
	c := r.GetItems()
	parts := []string{Count(c.GetSucceeded()) + " succeeded"}
	for _, p := range []struct {
		n    int64
		word string
	}{{c.GetFailed(), "failed"}, {c.GetCancelled(), "cancelled"}, {c.GetRetried(), "retried"}, {c.GetRunning(), "running"}} {
		if p.n > 0 {
			parts = append(parts, Count(p.n)+" "+p.word)
		}
	}
	if c.GetWaiting() > 0 {
		parts = append(parts, waitsText(r))
	}
	return strings.Join(parts, "  ")
}

func (f Frame) inFlight(r *coordinatorv1.Run, room int) []string {
	flights := r.GetInFlight()
	if len(flights) == 0 || room < 2 || f.Away > 0 {
		return nil
	}
	t := Table{Width: f.Width, Columns: Columns("/NODE", "/MODEL", ">TRY", "/ITEM", ">TOK/S", ">TOKENS", ">FOR", "")}
	for _, i := range flights[:min(len(flights), room-1)] {
		speed := "-"
		if i.GetTokensPerSecond() > 0 {
			speed = fmt.Sprintf("%.1f", i.GetTokensPerSecond())
		}
		t.Add(Line(i.GetNode()), Line(i.GetModel()), fmt.Sprint(i.GetAttempt()), Line(i.GetLabel()), speed, Count(i.GetTokens()),
			Age(f.Now.Sub(i.GetSince().AsTime())), f.doing(i))
	}
	return strings.Split(strings.TrimRight(t.String(), "\n"), "\n")
}

// doing is what an attempt does now. Nothing is heard of one whose node is not up.
func (f Frame) doing(i *coordinatorv1.InFlight) string {
	if state := i.GetNodeState(); state == "lost" || state == "degraded" {
		return f.Style.Warn("node " + state)
	}
	if i.GetJudging() {
		return "judging"
	}
	return word(phases, i.GetPhase())
}

// steps lists a run's steps when there is more than one that calls a model: the newest that fit.
func (f Frame) steps(r *coordinatorv1.Run, room int) []string {
	steps := Calls(r)
	if len(steps) < 2 || room < 2 {
		return nil
	}
	var lines []string
	for _, s := range steps {
		lines = append(lines, "  "+StepLine(f.Style, s, f.Width-4))
	}
	if skipped := len(lines) - (room - 1); skipped > 0 {
		lines = lines[skipped:]
	}
	return append(lines, "")
}

// tail is what must be seen at the end: why items wait, failures, the script's last word, and what can be pressed.
func (f Frame) tail(r *coordinatorv1.Run) []string {
	var lines []string
	if f.Away == 0 {
		lines = append(lines, "")
		lines = append(lines, f.reasons(r)...)
		if text := asksText(r); text != "" {
			lines = append(lines, f.Style.Warn(text))
		}
	}
	if len(r.GetFailures()) > 0 {
		var found []string
		for _, g := range r.GetFailures() {
			found = append(found, fmt.Sprintf("%s %d", KindText(g.GetKind()), g.GetCount()))
		}
		lines = append(lines, f.Style.paint(red, fmt.Sprintf("FAILED %d", r.GetItems().GetFailed()))+"   "+strings.Join(found, "   "))
	}
	if logs := r.GetLogs(); len(logs) > 0 {
		lines = append(lines, "log    "+Line(logs[len(logs)-1]))
	}
	if f.Away > 0 {
		lines = append(lines, f.Style.Warn(awayText)+" ("+Age(f.Away)+")")
	}
	if f.Hint == "" {
		return lines
	}
	return append(lines, f.Hint)
}

// awayText is said while the coordinator cannot be reached.
const awayText = "the coordinator does not answer, trying again"

// reasons says of two kinds of waiting at most why.
func (f Frame) reasons(r *coordinatorv1.Run) (lines []string) {
	for _, w := range r.GetWaiting() {
		if w.GetWhy() != "" && len(lines) < 2 {
			lines = append(lines, fmt.Sprintf("%s waiting for %s: %s", Count(w.GetCount()), WaitText(w.GetWaitingFor()), Line(w.GetWhy())))
		}
	}
	return lines
}

// trailingBlanks is how many empty lines stand at the end.
func trailingBlanks(lines []string) int {
	n := 0
	for _, l := range slices.Backward(lines) {
		if l != "" {
			break
		}
		n++
	}
	return n
}

// Took is how long a run has taken, until now when it has not ended.
func Took(r *coordinatorv1.Run, now time.Time) time.Duration {
	from := r.GetStarted()
	if from == nil {
		from = r.GetCreated()
	}
	if from == nil {
		return 0
	}
	if r.GetEnded() != nil {
		now = r.GetEnded().AsTime()
	}
	return now.Sub(from.AsTime())
}
