package ui

import (
	"fmt"
	"strings"
	"unicode"
)

// Text is a text from outside, such as a model's answer, in which nothing is hidden: what would move the terminal's cursor, change its
// colours, turn the direction of the letters around it or take no room stands there by its number. Files and JSON keep it as it is.
func Text(s string) string {
	return visible(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool { return r == '\n' || r == '\t' })
}

// Line makes one line of such a text.
func Line(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r >= '\t' && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
	}), " ")
	return visible(s, func(rune) bool { return false })
}

// visible replaces the characters that hide or do something, but those to keep.
func visible(s string, keep func(rune) bool) string {
	if strings.IndexFunc(s, func(r rune) bool { return acts(r) && !keep(r) }) < 0 {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for _, r := range s {
		if acts(r) && !keep(r) && !joins(before, r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// acts says whether a character is a control (C0, C1), a format character (such as those of direction and of no width: Cf), or one that
// separates lines or paragraphs.
func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// joins says whether a character is part of how the one before it is written: Persian and Indic scripts and emoji need the joiners.
func joins(before, r rune) bool {
	return (r == '\u200c' || r == '\u200d') && before > unicode.MaxLatin1 && !acts(before) && !unicode.IsSpace(before)
}
