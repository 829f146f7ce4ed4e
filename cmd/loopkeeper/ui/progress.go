package ui

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Progress shows a run while it is under way.
type Progress interface {
	// Show takes the newest view of the run, or the same one again as time goes by.
	Show(r *coordinatorv1.Run, now time.Time)
	// Away says that the coordinator does not answer; Show, with a view that is new, that it does again.
	Away(now time.Time)
	// Say puts a line of text where it stays.
	Say(text string)
	// End shows the run for the last time.
	End(r *coordinatorv1.Run, now time.Time)
}

// Live redraws itself in place on a terminal.
type Live struct {
	W     io.Writer
	Style Style
	Size  func() (width, height int)
	Hint  string
	rate  Rate
	run   *coordinatorv1.Run // as last shown
	away  time.Time          // since when the coordinator does not answer, zero while it does
	drawn int                // lines that are on the screen and will be drawn over
	last  time.Time          // when they were drawn
}

// RedrawInterval is how often Show should be called while nothing happens, so that times go on.
const RedrawInterval = 200 * time.Millisecond

// Show implements Progress.
func (l *Live) Show(r *coordinatorv1.Run, now time.Time) {
	if !l.away.IsZero() {
		l.away = time.Time{}
		l.rate.Restart()
	}
	l.run = r
	l.rate.Add(now, workedHere(r))
	if l.drawn == 0 || now.Sub(l.last) >= RedrawInterval { // faster cannot be read
		l.draw(r, now, l.Hint)
	}
}

// Away implements Progress.
func (l *Live) Away(now time.Time) {
	if l.away.IsZero() {
		l.away = now
	}
	if l.run != nil && (l.drawn == 0 || now.Sub(l.last) >= RedrawInterval) {
		l.draw(l.run, now, l.Hint)
	}
}

// End implements Progress. The final frame stays in the scrollback.
func (l *Live) End(r *coordinatorv1.Run, now time.Time) {
	l.away = time.Time{}
	l.draw(r, now, "")
	l.drawn = 0
}

// Say implements Progress.
func (l *Live) Say(text string) {
	_, _ = io.WriteString(l.W, l.erase()+text+"\n") // a terminal that is gone cannot be told
	l.drawn = 0
}

func (l *Live) draw(r *coordinatorv1.Run, now time.Time, hint string) {
	width, height := l.Size()
	f := Frame{Style: l.Style, Width: width - 1, Height: height, Now: now, Rate: &l.rate, Hint: hint}
	if !l.away.IsZero() {
		f.Away = max(now.Sub(l.away), time.Second)
	}
	lines := f.Lines(r)
	_, _ = io.WriteString(l.W, l.erase()+strings.Join(lines, "\n")+"\n")
	l.drawn, l.last = len(lines), now
}

// erase moves to where the last frame began and clears from there.
func (l *Live) erase() string {
	if l.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", l.drawn)
}

// Lines prints a line per tenth of the work, or every half minute; for pipes, files and screen readers.
type Lines struct {
	W     io.Writer
	rate  Rate
	last  time.Time
	tenth int64
	began bool
	ended map[string]bool // steps that were said to have ended
	logs  []string        // of the script, as last seen
	away  bool
	still stillness
	asks  string    // who or what the run waits for, as last said
	past  time.Time // when a run ended that was over before one looked; zero while things happen before one's eyes
	days  bool      // that past is not of today
}

// quiet is the longest silence while work is under way.
const quiet = 30 * time.Second

// Show implements Progress.
func (l *Lines) Show(r *coordinatorv1.Run, now time.Time) {
	c := r.GetItems()
	if l.away {
		l.away = false
		l.rate.Restart()
		l.line(now, "the coordinator answers again")
	}
	l.rate.Add(now, workedHere(r))
	if l.began {
		l.past = time.Time{}
	} else {
		l.begin(r, now)
	}
	for _, text := range newLogs(l.logs, r.GetLogs()) {
		l.logged(now, text)
	}
	l.logs = r.GetLogs()
	if text := asksText(r); text != l.asks {
		l.asks = text
		if text != "" {
			l.last = now
			l.line(now, "%s", text)
		}
	}
	if text := l.still.news(r, now); text != "" {
		l.last = now
		l.line(now, "%s", text)
	}
	if calls := Calls(r); len(calls) > 1 || len(calls) == 1 && calls[0].GetKind() != "batch" {
		l.steps(r, calls, now)
		return
	}
	tenth := int64(0)
	if c.GetTotal() > 0 {
		tenth = worked(c) * 10 / c.GetTotal()
	}
	if c.GetTotal() == 0 || tenth <= l.tenth && now.Sub(l.last) < quiet {
		return
	}
	l.tenth, l.last = max(tenth, l.tenth), now
	l.line(l.at(now), "%s  %s of %s, %s, %s%s", Percent(c.GetSucceeded(), c.GetTotal()), Count(c.GetSucceeded()), Count(c.GetTotal()), failedText(c),
		l.still.or(l.rate.Text(now, left(c))), Simulated(SimulatedRun(r)))
}

// begin takes the first view. Of a run that is over it holds the past, whose lines have the times at which it happened.
func (l *Lines) begin(r *coordinatorv1.Run, now time.Time) {
	l.began, l.last = true, now
	if r.GetEnded() != nil {
		l.past = r.GetEnded().AsTime()
		l.days = r.GetCreated().AsTime().Local().Format(time.DateOnly) != now.Local().Format(time.DateOnly)
	}
	l.line(l.at(now), "run %s %s: %s%s", r.GetId(), stateText(r.GetState()), Line(r.GetWorkflow()), Simulated(SimulatedRun(r)))
}

// at is the time of what is told now.
func (l *Lines) at(now time.Time) time.Time {
	if !l.past.IsZero() {
		return l.past
	}
	return now
}

// logged is a line of the script. When it was written is known while one watches alone.
func (l *Lines) logged(now time.Time, text string) {
	if l.past.IsZero() {
		l.line(now, "log  %s", Line(text))
	} else {
		l.Say("         log  " + Line(text))
	}
}

// asksText is what a run wants of people, or where its pipeline is, on one line; "" for nothing.
func asksText(r *coordinatorv1.Run) string {
	switch {
	case r.GetEnded() != nil:
		return ""
	case r.GetState() == "suspended":
		return "suspended" + ifAny(": ", Line(r.GetParkedBy())) + "; loopkeeper resume " + r.GetId()
	case r.GetWaits() > 0:
		return WaitsText(r) + ": loopkeeper approvals " + r.GetId()
	default:
		return PhaseNow(r)
	}
}

// newLogs are the lines that came after those seen before. A view has the newest few only.
func newLogs(seen, now []string) []string {
	for n := min(len(seen), len(now)); n > 0; n-- {
		if slices.Equal(seen[len(seen)-n:], now[:n]) {
			return now[n:]
		}
	}
	return now
}

// steps says of a run that goes step by step which have ended.
func (l *Lines) steps(r *coordinatorv1.Run, calls []*coordinatorv1.Step, now time.Time) {
	if l.ended == nil {
		l.ended = map[string]bool{}
	}
	for _, s := range calls {
		if s.GetEnded() != nil && !l.ended[s.GetId()] {
			l.ended[s.GetId()], l.last = true, now
			at := now
			if !l.past.IsZero() {
				at = s.GetEnded().AsTime()
			}
			l.line(at, "%s", StepLine(Style{}, s, 100))
		}
	}
	if now.Sub(l.last) >= quiet {
		l.last = now
		l.line(now, "%s, %s%s", soFar(r), l.still.or("the run goes on"), Simulated(SimulatedRun(r)))
	}
}

func failedText(c *coordinatorv1.Counts) string { return Count(c.GetFailed()) + " failed" }

// End implements Progress. What the end was is said by the summary.
func (l *Lines) End(r *coordinatorv1.Run, now time.Time) { l.Show(r, now) }

// Away implements Progress.
func (l *Lines) Away(now time.Time) {
	if !l.away {
		l.away = true
		l.line(now, "%s", awayText)
	}
}

// Say implements Progress.
func (l *Lines) Say(text string) { _, _ = fmt.Fprintln(l.W, text) }

// line is a line with its time, and with its day where the past is not of today.
func (l *Lines) line(at time.Time, format string, args ...any) {
	form := time.TimeOnly
	if l.days && !l.past.IsZero() {
		form = time.DateTime
	}
	_, _ = fmt.Fprintf(l.W, at.Local().Format(form)+" "+format+"\n", args...)
}

// Simulated is the word that stands on everything a stand-in has to do with.
func Simulated(yes bool) string {
	if yes {
		return ", simulated"
	}
	return ""
}

// JSONLines prints a status object for every view of a run.
type JSONLines struct{ W io.Writer }

// Show implements Progress.
func (j *JSONLines) Show(r *coordinatorv1.Run, _ time.Time) {
	c := r.GetItems()
	_ = WriteJSONLine(j.W, map[string]any{"type": "status", "run": r.GetId(), "state": r.GetState(), "total": c.GetTotal(), "succeeded": c.GetSucceeded(),
		"failed": c.GetFailed(), "running": c.GetRunning(), "waiting": c.GetWaiting(), "waits": r.GetWaits(), "simulated": r.GetSimulated()})
}

// Away implements Progress.
func (j *JSONLines) Away(time.Time) {}

// End implements Progress.
func (j *JSONLines) End(*coordinatorv1.Run, time.Time) {}

// Say implements Progress.
func (j *JSONLines) Say(string) {}

// Silent shows nothing.
type Silent struct{}

// Show implements Progress.
func (Silent) Show(*coordinatorv1.Run, time.Time) {}

// Away implements Progress.
func (Silent) Away(time.Time) {}

// End implements Progress.
func (Silent) End(*coordinatorv1.Run, time.Time) {}

// Say implements Progress.
func (Silent) Say(string) {}
