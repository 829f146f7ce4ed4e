package ui

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Pulls shows how downloads go on: on a screen that redraws itself a line for each machine, elsewhere a line at each tenth. Make one with
// its fields set; it is used by one goroutine.
type Pulls struct {
	W     io.Writer
	Style Style
	Live  bool // the screen redraws itself

	rows  []*coordinatorv1.PullModelResponse // newest of each machine, in the order in which they came
	tenth map[string]int64                   // that was told last, by machine
	drawn int                                // lines of the last frame
	shown time.Time
}

// pullPause is the least time between two frames.
const pullPause = 100 * time.Millisecond

// Add takes in what came of one machine.
func (p *Pulls) Add(m *coordinatorv1.PullModelResponse, now time.Time) {
	known := false
	for i, row := range p.rows {
		if row.GetNode() == m.GetNode() {
			p.rows[i], known = m, true
		}
	}
	if !known {
		p.rows = append(p.rows, m)
	}
	final := m.GetDone() || m.GetError() != ""
	if !p.Live {
		p.tell(m, final)
	} else if final || now.Sub(p.shown) >= pullPause {
		p.shown = now
		p.draw()
	}
}

// draw replaces the frame before.
func (p *Pulls) draw() {
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	names := 0
	for _, row := range p.rows {
		names = max(names, ansi.StringWidth(Line(row.GetNode())))
	}
	for _, row := range p.rows {
		name := Line(row.GetNode())
		line := name + strings.Repeat(" ", names-ansi.StringWidth(name)) + "  " + p.state(row, true)
		b.WriteString("\x1b[2K" + ansi.Truncate(line, max(p.Style.Width-1, leastCell), "") + "\n")
	}
	p.drawn = len(p.rows)
	_, _ = io.WriteString(p.W, b.String()) // a screen that is gone is nobody's loss
}

// tell writes a line when there is something new to say.
func (p *Pulls) tell(m *coordinatorv1.PullModelResponse, final bool) {
	if p.tenth == nil {
		p.tenth = map[string]int64{}
	}
	tenth := int64(-1)
	if total := m.GetPull().GetTotalBytes(); total > 0 {
		tenth = int64(m.GetPull().GetCompletedBytes() * 10 / total)
	}
	last, told := p.tenth[m.GetNode()]
	if !final && told && tenth <= last {
		return
	}
	p.tenth[m.GetNode()] = max(tenth, last)
	_, _ = fmt.Fprintf(p.W, "%s: %s\n", Line(m.GetNode()), p.state(m, false))
}

// pullBar is how many cells a download's bar gets.
const pullBar = 20

// state is how far one machine is.
func (p *Pulls) state(m *coordinatorv1.PullModelResponse, bar bool) string {
	d := m.GetPull()
	switch {
	case m.GetError() != "":
		return p.Style.Mark("failed") + " " + Line(m.GetError())
	case m.GetDone() && d.GetTotalBytes() > 0:
		return fmt.Sprintf("%s has it now, %s GB", p.Style.Mark("completed"), gb(d.GetTotalBytes()))
	case m.GetDone():
		return p.Style.Mark("completed") + " has it"
	case d.GetTotalBytes() == 0:
		return Line(d.GetStatus())
	}
	text := fmt.Sprintf("%s of %s GB", gb(d.GetCompletedBytes()), gb(d.GetTotalBytes()))
	if r := d.GetBytesPerSecond(); r > 0 {
		text += fmt.Sprintf(", %.1f MB/s, %s left", r/1e6, Duration(time.Duration(float64(d.GetTotalBytes()-min(d.GetCompletedBytes(), d.GetTotalBytes()))/r*1e9)))
	}
	percent := Percent(int64(d.GetCompletedBytes()), int64(d.GetTotalBytes()))
	if !bar {
		return percent + ", " + text
	}
	return fmt.Sprintf("%s  %5s  %s", p.Style.Bar(pullBar, Part{float64(d.GetCompletedBytes()) / float64(d.GetTotalBytes()), Ours}), percent, text)
}

// gb is GB as registries count them.
func gb(bytes uint64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e9) }
