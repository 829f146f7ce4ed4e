package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// timelineWidth is how wide a timeline is, cells, where the place does not say.
const timelineWidth = 80

// traceTimeline prints a run over time, a lane for each machine and each kind of waiting.
func (a *app) traceTimeline(ctx context.Context, c *client, id string) error {
	id, names, err := c.named(ctx, id)
	if err != nil {
		return err
	}
	t, err := answers.Lay(c.events(ctx, id), names)
	if err != nil {
		return err
	}
	waited, err := c.waited(ctx, id, t)
	if err != nil {
		return err
	}
	if len(waited) > 0 {
		if t, err = answers.Lay(c.events(ctx, id), names, waited...); err != nil {
			return err
		}
	}
	if a.json() {
		return a.printJSON(t)
	}
	style := a.style(a.stdout)
	if style.Width == 0 || style.Width > timelineWidth {
		style.Width = timelineWidth
	}
	return a.printText(drawn(style, t))
}

// mostAsked is of how many steps it is asked what their calls waited for, those that come first.
const mostAsked = 64

// waited asks what the calls that waited did wait for, as it was decided then.
func (c *client) waited(ctx context.Context, id string, t *answers.Timeline) ([]answers.Waited, error) {
	var out []answers.Waited
	asked := map[int]bool{}
	for _, l := range t.Lanes {
		for _, s := range l.Spans {
			if l.Name != answers.ForPlace || asked[s.Step] || len(asked) == mostAsked || s.End.Sub(s.Begin) < time.Second/10 {
				continue
			}
			asked[s.Step] = true
			e, err := c.Explain(ctx, &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_RunId{RunId: id}, Step: strconv.Itoa(s.Step)})
			if err != nil {
				return nil, err
			}
			for _, d := range e.GetDecisions() {
				if d.GetWaitingFor() != "" && d.GetAt() != nil {
					out = append(out, answers.Waited{Step: s.Step, At: d.GetAt().AsTime(), For: d.GetWaitingFor()})
				}
			}
		}
	}
	return out, nil
}

// cells are how spans are drawn, with Unicode and without; where several share a cell the first of the list shows.
var cells = []struct{ what, unicode, ascii, legend string }{
	{answers.Failing, "✗", "x", "failed"},
	{answers.Loading, "▒", "+", "loading"},
	{answers.Judging, "▓", "%", "judging"},
	{answers.Working, "█", "#", "working"},
	{answers.Waiting, "~", "~", "waiting"},
}

// nameCells is how wide the name of a lane is at most, shareCells what is behind it: how much of the time it was busy.
const (
	nameCells  = 14
	shareCells = 6
)

func drawn(style ui.Style, t *answers.Timeline) string {
	if len(t.Lanes) == 0 {
		return "nothing of the run was on a machine, and it waited for nothing\n"
	}
	wide := 0
	for _, l := range t.Lanes {
		wide = max(wide, min(len(laneName(l)), nameCells))
	}
	room := max(style.Width-wide-2-shareCells, 10)
	begin, end := t.Begin.Local().Format("15:04:05"), t.End.Local().Format("15:04:05")
	length := t.End.Sub(t.Begin)
	middle := ui.Duration(length)
	gap := max(room-len(begin)-len(end)-len(middle), 2)
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", wide+2) + begin + strings.Repeat(" ", gap/2) + middle + strings.Repeat(" ", gap-gap/2) + end + "\n")
	used := map[string]bool{}
	for _, l := range t.Lanes {
		fmt.Fprintf(&b, "%-*s  %s %4d%%\n", wide, ui.Middle(laneName(l), wide), bar(style, t, l, room, used), share(l.Busy, length))
	}
	var legend []string
	for _, c := range cells {
		if used[c.what] {
			legend = append(legend, glyph(style, c.unicode, c.ascii)+" "+c.legend)
		}
	}
	b.WriteString(strings.Repeat(" ", wide+2) + strings.Join(legend, "  ") + "\n")
	b.WriteString(loads(t) + longest(t))
	return b.String()
}

func laneName(l *answers.Lane) string {
	if l.Wait {
		return l.Name
	}
	return ui.Line(l.Name)
}

func glyph(style ui.Style, unicode, ascii string) string {
	if style.Unicode {
		return unicode
	}
	return ascii
}

func share(busy, of time.Duration) int {
	if of <= 0 {
		return 0
	}
	return int(100 * busy / of)
}

// bar draws a lane: every span has a cell at least.
func bar(style ui.Style, t *answers.Timeline, l *answers.Lane, room int, used map[string]bool) string {
	line := make([]int, room) // 1 + the place in cells, 0 for nothing
	length := max(t.End.Sub(t.Begin), 1)
	cell := func(at time.Time) int {
		return min(max(int(int64(at.Sub(t.Begin))*int64(room)/int64(length)), 0), room-1)
	}
	for _, s := range l.Spans {
		what := 0
		for i, c := range cells {
			if c.what == s.What {
				what = i + 1
			}
		}
		last := cell(s.End)
		if first := cell(s.Begin); last > first && s.End.Before(t.End) {
			last-- // a span that ends where a cell begins is not in it
		}
		for i := cell(s.Begin); i <= last; i++ {
			if line[i] == 0 || what < line[i] {
				line[i] = what
			}
		}
	}
	var b strings.Builder
	for _, what := range line {
		if what == 0 {
			b.WriteString(glyph(style, "·", "."))
			continue
		}
		used[cells[what-1].what] = true
		b.WriteString(glyph(style, cells[what-1].unicode, cells[what-1].ascii))
	}
	return b.String()
}

// loads says what loading models took, by machine.
func loads(t *answers.Timeline) string {
	var b strings.Builder
	for _, l := range t.Lanes {
		n, sum := 0, time.Duration(0)
		for _, s := range l.Spans {
			if s.What == answers.Loading && !l.Wait {
				n++
				sum += s.End.Sub(s.Begin)
			}
		}
		if n > 0 {
			fmt.Fprintf(&b, "%s: %s loaded a model first, %s in all\n", ui.Line(l.Name), ui.Plural(int64(n), "call", "calls"), ui.Duration(sum))
		}
	}
	return b.String()
}

// longest names the longest waits.
func longest(t *answers.Timeline) string {
	type wait struct {
		lane string
		answers.Span
	}
	var waits []wait
	for _, l := range t.Lanes {
		for _, s := range l.Spans {
			if l.Wait && s.End.Sub(s.Begin) >= time.Second/10 {
				waits = append(waits, wait{l.Name, s})
			}
		}
	}
	slices.SortStableFunc(waits, func(x, y wait) int { return cmp.Compare(y.End.Sub(y.Begin), x.End.Sub(x.Begin)) })
	var b strings.Builder
	for i, w := range waits {
		if i == 3 {
			fmt.Fprintf(&b, "and %s more\n", ui.Plural(int64(len(waits)-i), "wait", "waits"))
			break
		}
		fmt.Fprintf(&b, "waited %s %s: step %d, item %d\n", ui.Duration(w.End.Sub(w.Begin)), w.lane, w.Step, w.Item)
	}
	return b.String()
}
