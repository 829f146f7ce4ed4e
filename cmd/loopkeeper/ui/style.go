// Package ui prints what the commands have to say: tables, progress, units and JSON. It asks nothing and decides nothing.
package ui

import "strings"

// Style says how a place that is written to may look. The zero value is plain ASCII without colour.
type Style struct {
	Colour  bool // ANSI-16 colours, on state words and marks only
	Unicode bool // marks and bars beyond ASCII
	Width   int  // cells of a line, 0 for a place where nothing is cut
}

// The colours, as SGR parameters. Meaning never rests on colour alone.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	cyan   = "36"
	dim    = "2"
)

func (s Style) paint(sgr, text string) string {
	if !s.Colour || text == "" || sgr == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// Warn paints what needs attention.
func (s Style) Warn(text string) string { return s.paint(yellow, text) }

// look is how one state is shown.
type look struct{ sgr, mark, ascii string }

var (
	ended   = look{green, "✓", "."}
	broken  = look{red, "✗", "x"}
	going   = look{cyan, "↻", "~"}
	waiting = look{dim, "⧖", "w"}
	ceased  = look{yellow, "⊘", "c"}
	partial = look{yellow, "⚠", "!"}
)

// looks has the states of runs, steps and nodes; they share words on purpose.
var looks = map[string]look{
	"completed": ended, "succeeded": ended, "up": ended,
	"failed": broken, "diverged": broken, "timed_out": broken, "exhausted": broken, "impossible": broken,
	"running": going, "placed": going, "chosen": ended, "fits": ended,
	"queued": waiting, "waiting": waiting, "pending": waiting, "ready": waiting, "suspended": waiting, "wait": waiting,
	"cancelled": ceased, "skipped": {dim, "⊘", "s"},
	"excluded": ceased, "no_model": ceased,
	"incomplete": partial, "lost": partial, "degraded": partial, "draining": partial, "paused": ceased,
	"in_progress": going, "approved": ended, "rejected": ceased, "passed": ended, "sent_back": ceased, "needs_human": waiting,
	"loaded": ended, "yes": ended, "evict": waiting, "blocked": ceased, "no": broken,
	"unknown":   {yellow, "?", "?"},
	"device_ok": ended, "device_asleep": {dim, "z", "z"}, "device_degraded": partial, "device_lost": broken, "device_unsupported": ceased,
}

// State returns a state's mark and word, painted.
func (s Style) State(state string) string {
	return strings.TrimSpace(s.Mark(state) + " " + s.paint(looks[state].sgr, stateText(strings.TrimPrefix(state, "device_"))))
}

// Mark returns a state's mark, painted.
func (s Style) Mark(state string) string {
	l, ok := looks[state]
	switch {
	case !ok:
		return " "
	case s.Unicode:
		return s.paint(l.sgr, l.mark)
	default:
		return s.paint(l.sgr, l.ascii)
	}
}

// good and bad mark a finding that is no state.
func (s Style) good() string { return s.Mark("completed") }
func (s Style) bad() string  { return s.Mark("incomplete") }

// Part is a piece of a bar: so much of it in one of the fills.
type Part struct {
	Share float64 // 0..1 of the whole
	Fill  Fill
}

// Fill says what a part of a bar stands for.
type Fill int

// The fills.
const (
	Ours    Fill = iota // done, or memory of ours
	Foreign             // failed, or memory of others
	Loading             // in flight
	Free                // to do, or free
)

var fills = map[Fill][2]string{Ours: {"█", "#"}, Foreign: {"▓", "%"}, Loading: {"▒", "+"}, Free: {"░", "."}}

// Bar draws parts over width cells; what they leave is free. A part that is not nothing gets a cell while there is one.
func (s Style) Bar(width int, parts ...Part) string {
	var b strings.Builder
	left := width
	for _, p := range parts {
		n := int(p.Share*float64(width) + 0.5)
		if n == 0 && p.Share > 0 {
			n = 1
		}
		n = min(max(n, 0), left)
		left -= n
		b.WriteString(strings.Repeat(s.cell(p.Fill), n))
	}
	b.WriteString(strings.Repeat(s.cell(Free), left))
	return b.String()
}

func (s Style) cell(f Fill) string {
	if s.Unicode {
		return fills[f][0]
	}
	return fills[f][1]
}
