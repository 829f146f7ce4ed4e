// Package evidence numbers the lines of texts that a model judges, and looks up what the model says that stands on them.
// A model names a line and a few words of it; code checks that the words are there and takes the text itself from the
// line, so that nothing a model wrote ever counts as what the text says. Everything is a pure function of its arguments.
package evidence

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// longestLine is how many characters one numbered line may have; a longer line of a text is shown as several, each with
// a number of its own, so that a number says where something stands (judgement §5).
const longestLine = 400

// Text is a text that evidence may come from.
type Text struct {
	Name  string // "subject", or the name of a source
	Body  string // what it says
	Shown string // what the model is shown: Body without control strings, line for line; empty: Body
}

// Lines are the numbered lines of some texts. The numbers go on from one text to the next, so that a number says which
// text it is, too.
type Lines struct {
	texts []Text
	lines []line
	form  func(string) string
}

// line is one numbered line.
type line struct {
	text   int    // index of the text
	number int    // in its text, from 1; the parts of a long line share it
	body   string // what the text says
	shown  string // what the model is shown
}

// Number numbers the lines of the texts in this order. form is what everything is brought into before words are compared,
// so that what a model was shown and what stands in the text compare alike; nil: as it is.
func Number(form func(string) string, texts ...Text) Lines {
	if form == nil {
		form = func(text string) string { return text }
	}
	l := Lines{texts: texts, form: form}
	for i, t := range texts {
		body := split(t.Body)
		shown := body
		if t.Shown != "" {
			shown = split(t.Shown)
		}
		if len(shown) != len(body) { // what is shown decides what a number means
			body = shown
		}
		for n := range body {
			l.lines = append(l.lines, fold(line{text: i, number: n + 1, body: body[n], shown: shown[n]})...)
		}
	}
	return l
}

// split returns the lines of a text, without the empty ones at its end.
func split(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// fold cuts a line that is too long, between words where it can.
func fold(l line) []line {
	if utf8.RuneCountInString(l.shown) <= longestLine {
		return []line{l}
	}
	aligned := utf8.RuneCountInString(l.shown) == utf8.RuneCountInString(l.body)
	var out []line
	shown, body := []rune(l.shown), []rune(l.body)
	for len(shown) > 0 {
		end := min(longestLine, len(shown))
		if end < len(shown) {
			for cut := end; cut > end/2; cut-- {
				if shown[cut-1] == ' ' {
					end = cut
					break
				}
			}
		}
		part := line{text: l.text, number: l.number, shown: string(shown[:end])}
		part.body = part.shown
		if aligned {
			part.body, body = string(body[:end]), body[end:]
		}
		out, shown = append(out, part), shown[end:]
	}
	return out
}

// Count is how many numbered lines there are.
func (l Lines) Count() int { return len(l.lines) }

// CountOf is how many lines the text of that index has, as people count them.
func (l Lines) CountOf(text int) int {
	n := 0
	for _, x := range l.lines {
		if x.text == text {
			n = x.number
		}
	}
	return n
}

// Show returns the text of that index with its numbers: "L0001|…".
func (l Lines) Show(text int) string {
	return l.show(text, func(int) bool { return true })
}

func (l Lines) show(text int, wanted func(int) bool) string {
	var b strings.Builder
	gap := false
	for i, x := range l.lines {
		switch {
		case x.text != text:
		case !wanted(i):
			gap = true
		default:
			if gap {
				b.WriteString("…\n")
			}
			gap = false
			fmt.Fprintf(&b, "L%04d|%s\n", i+1, strings.ReplaceAll(x.shown, "\t", "    "))
		}
	}
	if gap {
		b.WriteString("…\n")
	}
	return b.String()
}

// Around is how many lines an excerpt shows on each side of one that was named.
const Around = 4

// mostShared is how many lines an excerpt shows because they share words with what is asked.
const mostShared = 8

// Excerpt returns what to show of each text when a question is asked again: the lines around those that were named, and
// those that share the most words with the question and with what was said to stand there. Numbers stay as they were.
func (l Lines) Excerpt(named []int, about string) []string {
	wanted := map[int]bool{}
	near := func(i int) {
		for k := max(0, i-Around); k <= min(len(l.lines)-1, i+Around); k++ {
			wanted[k] = true
		}
	}
	for _, n := range named {
		near(n - 1)
	}
	for _, i := range l.sharing(about) {
		for k := max(0, i-1); k <= min(len(l.lines)-1, i+1); k++ {
			wanted[k] = true
		}
	}
	var out []string
	for t := range l.texts {
		out = append(out, l.show(t, func(i int) bool { return wanted[i] }))
	}
	return out
}

// sharing returns the lines with the most words of a text, at most mostShared.
func (l Lines) sharing(about string) []int {
	asked := slices.DeleteFunc(wordsOf(about), func(w string) bool { return utf8.RuneCountInString(w) < 4 })
	type scored struct{ at, score int }
	var all []scored
	for i, x := range l.lines {
		score := 0
		for _, w := range slices.Compact(slices.Sorted(slices.Values(wordsOf(x.shown)))) {
			if slices.Contains(asked, w) {
				score++
			}
		}
		if score > 0 {
			all = append(all, scored{i, score})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return b.score - a.score })
	var out []int
	for _, s := range all[:min(mostShared, len(all))] {
		out = append(out, s.at)
	}
	return out
}
