package ui

import (
	"fmt"
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
	Hint          string // the last line: what the user can press, or what is wrong
}

// Lines draws the run.
func (f Frame) Lines(r *coordinatorv1.Run) []string {
	lines := f.head(r)
	tail := f.tail(r)
	room := f.Height - 1 - len(lines) - len(tail)
	middle := append(f.steps(r, room/2), f.inFlight(r, room)...)
	lines = append(append(lines, middle[:min(len(middle), max(room, 0))]...), tail...)
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, f.Width, "")
	}
	return lines[:min(len(lines), max(f.Height-1, 1))]
}

func (f Frame) head(r *coordinatorv1.Run) []string {
	simulated := ""
	if r.GetSimulated() {
		simulated = "  " + f.Style.Warn("simulated")
	}
	c := r.GetItems()
	return []string{
		fmt.Sprintf("%s  run %s  %s%s  %s", Line(r.GetWorkflow()), r.GetId(), f.Style.paint(looks[r.GetState()].sgr, strings.ToUpper(r.GetState())),
			simulated, Duration(Took(r, f.Now))),
		fmt.Sprintf("items  %s  %s  %s of %s", f.bar(c), Percent(done(c), c.GetTotal()), Count(c.GetSucceeded()), Count(c.GetTotal())),
		"       " + Tally(r),
		fmt.Sprintf("rate   %s   tokens %s in, %s out", f.Rate.Text(f.Now, c.GetTotal()-done(c)), Tokens(r.GetPromptTokens()), Tokens(r.GetOutputTokens())),
		"",
	}
}

func (f Frame) bar(c *coordinatorv1.Counts) string {
	if c.GetTotal() == 0 {
		return f.Style.Bar(max(f.Width-40, 10))
	}
	share := func(n int64) float64 { return float64(n) / float64(c.GetTotal()) }
	return f.Style.Bar(max(f.Width-40, 10), Part{share(c.GetSucceeded()), Ours}, Part{share(c.GetFailed()), Foreign}, Part{share(c.GetRunning()), Loading})
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
		text := Count(c.GetWaiting()) + " waiting"
		var reasons []string
		for _, w := range r.GetWaiting() {
			reasons = append(reasons, w.GetWaitingFor())
		}
		if len(reasons) > 0 {
			text += ": " + strings.Join(reasons, ", ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "  ")
}

func (f Frame) inFlight(r *coordinatorv1.Run, room int) []string {
	flights := r.GetInFlight()
	if len(flights) == 0 || room < 2 {
		return nil
	}
	t := Table{Columns: Columns("NODE", "MODEL", ">TRY", "ITEM", ">TOK/S", ">TOKENS", ">FOR", "")}
	wide := max(f.Width-54, 16)
	for _, i := range flights[:min(len(flights), room-1)] {
		speed := "-"
		if i.GetTokensPerSecond() > 0 {
			speed = fmt.Sprintf("%.1f", i.GetTokensPerSecond())
		}
		t.Add(Line(i.GetNode()), Line(i.GetModel()), fmt.Sprint(i.GetAttempt()), Middle(Line(i.GetLabel()), wide), speed, Count(i.GetTokens()),
			Age(f.Now.Sub(i.GetSince().AsTime())), i.GetPhase())
	}
	return strings.Split(strings.TrimRight(t.String(), "\n"), "\n")
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
	lines := []string{""}
	for _, w := range r.GetWaiting() {
		if w.GetWhy() != "" {
			lines = append(lines, fmt.Sprintf("%s waiting for %s: %s", Count(w.GetCount()), w.GetWaitingFor(), Line(w.GetWhy())))
		}
		if len(lines) == 3 {
			break
		}
	}
	if len(r.GetFailures()) > 0 {
		var kinds []string
		for _, g := range r.GetFailures() {
			kinds = append(kinds, fmt.Sprintf("%s %d", g.GetKind(), g.GetCount()))
		}
		lines = append(lines, f.Style.paint(red, fmt.Sprintf("FAILED %d", r.GetItems().GetFailed()))+"   "+strings.Join(kinds, "   "))
	}
	if logs := r.GetLogs(); len(logs) > 0 {
		lines = append(lines, "log    "+Line(logs[len(logs)-1]))
	}
	return append(lines, f.Hint)
}

// Calls are the steps of a run that a model answers.
func Calls(r *coordinatorv1.Run) []*coordinatorv1.Step {
	var out []*coordinatorv1.Step
	for _, s := range r.GetSteps() {
		switch s.GetKind() {
		case "generate", "batch", "plan", "evaluate", "embed":
			out = append(out, s)
		}
	}
	return out
}

// StepLine is one step: mark, position, kind, what it is about and how far it is.
func StepLine(s Style, step *coordinatorv1.Step, width int) string {
	what := Line(step.GetLabel())
	var facts []string
	if c := step.GetItems(); c.GetTotal() > 1 {
		facts = append(facts, fmt.Sprintf("%d/%d", c.GetSucceeded(), c.GetTotal()))
	}
	for _, f := range []string{step.GetNode(), waitText(step), Line(step.GetError())} {
		if f != "" {
			facts = append(facts, f)
		}
	}
	if step.GetEnded() != nil && step.GetStarted() != nil {
		facts = append(facts, Duration(step.GetEnded().AsTime().Sub(step.GetStarted().AsTime())))
	}
	end := strings.Join(facts, "  ")
	line := fmt.Sprintf("%s %2s  %-8s  %s  %s", s.Mark(step.GetState()), step.GetId(), step.GetKind(), Middle(what, max(width-22-len(end), 12)), end)
	return strings.TrimRight(line, " ")
}

func waitText(step *coordinatorv1.Step) string {
	if step.GetWaitingFor() == "" {
		return ""
	}
	return "waiting for " + step.GetWaitingFor()
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
