package ui

import "strings"

// Finding is something that was found, in a sentence behind its mark, and what to do about it, in lines that fit.
func (s Style) Finding(mark, text, next string) string {
	out := s.hanging(mark+" ", "  ", Line(text))
	if next != "" {
		out += s.hanging("  Next: ", "        ", Line(next))
	}
	return out
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
