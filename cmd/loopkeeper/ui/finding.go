package ui

import (
	"slices"
	"strings"
)

// Finding is something that was found, in a sentence behind its mark, and what to do about it, in lines that fit.
func (s Style) Finding(mark, text string, next ...string) string {
	return s.hanging(mark+" ", "  ", Line(text)) + s.advice("  ", next)
}

// advice is what helps, hints before commands, each in a line of its own; "" for none.
func (s Style) advice(indent string, all []string) string {
	var hints, commands string
	for _, one := range all {
		switch {
		case one == "":
		case Command(one):
			commands += s.hanging(indent+"Next: ", indent+"      ", Line(one))
		default:
			hints += s.hanging(indent+"Hint: ", indent+"      ", Line(one))
		}
	}
	return hints + commands
}

// nextLines are advice under a table: hints, and the commands under each other.
func (s Style) nextLines(all []string) string {
	hints := slices.DeleteFunc(slices.Clone(all), Command)
	commands := slices.DeleteFunc(slices.Clone(all), func(one string) bool { return !Command(one) })
	if len(commands) == 0 {
		return s.advice("", hints)
	}
	return s.advice("", hints) + "Next: " + strings.Join(commands, "\n      ") + "\n"
}

// Fold breaks a text into lines of at most width cells, those after the first behind an indent.
func Fold(text string, width int, indent string) string {
	return strings.TrimSuffix(Style{Width: width}.hanging("", indent, text), "\n")
}

// hanging is a text behind a lead, its further lines indented; where nothing is cut it is one line.
func (s Style) hanging(lead, indent, text string) string {
	if s.Width <= 0 {
		return lead + text + "\n"
	}
	lines := strings.Split(wrapped(text, max(s.Width-len(indent), leastCell)), "\n")
	return lead + strings.Join(lines, "\n"+indent) + "\n"
}

// programs are those that advice names beside loopkeeper.
var programs = []string{"loopkeeper", "ollama", "ls", "wc", "make", "sudo"}

// Command says whether advice is a command: it begins with a program. Anything else is said in words and never stands behind "Next:".
func Command(advice string) bool {
	program, _, _ := strings.Cut(advice, " ")
	return slices.Contains(programs, program)
}
