package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words are what a text is compared by: lower case, without marks.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// fillers are words that change nothing about what is to be done.
var fillers = []string{"a", "an", "the", "please", "now", "then", "also", "and", "of", "to", "in", "on", "for", "with", "it", "its", "all", "them", "step"}

// gist is the words of an instruction that count, sorted: two with the same gist ask for the same work.
func gist(instruction string) []string {
	out := slices.DeleteFunc(words(instruction), func(w string) bool { return slices.Contains(fillers, w) })
	slices.Sort(out)
	return slices.Compact(out)
}

func (c check) duplicateStep() (out []string) {
	for i, a := range c.draft.Steps {
		for k, b := range c.draft.Steps[:i] {
			if a.Worker == b.Worker && slices.Equal(gist(a.Instruction), gist(b.Instruction)) {
				out = append(out, fmt.Sprintf("steps %d and %d ask %s for the same work; keep one of them", k+1, i+1, a.Worker))
				break
			}
		}
	}
	return out
}

func (c check) readsUnnamed() (out []string) {
	for i, s := range c.draft.Steps {
		if len(s.Reads) > 0 && !slices.ContainsFunc(s.Reads, func(name string) bool { return names(s.Instruction, name) }) {
			out = append(out, fmt.Sprintf("the instruction of step %d names none of what it reads: %s", i+1, strings.Join(s.Reads, ", ")))
		}
	}
	return out
}

// names says whether an instruction speaks of a name: the whole of it, its last element, or that without the ending.
func names(instruction, name string) bool {
	said := " " + strings.Join(words(instruction), " ") + " "
	base := path.Base(name)
	for _, form := range []string{name, base, strings.TrimSuffix(base, path.Ext(base))} {
		if w := words(form); len(w) > 0 && strings.Contains(said, " "+strings.Join(w, " ")+" ") {
			return true
		}
	}
	return false
}

// shortestCopy is from how many words on a part of the instruction is a copy of it and no accident.
const shortestCopy = 6

func (c check) doneWhenCopied() (out []string) {
	for i, s := range c.draft.Steps {
		task := words(s.Instruction)
		for _, d := range s.DoneWhen {
			done := words(d)
			if slices.Equal(done, task) || len(done) >= shortestCopy && strings.Contains(" "+strings.Join(task, " ")+" ", " "+strings.Join(done, " ")+" ") {
				out = append(out, fmt.Sprintf("done_when of step %d repeats its instruction; say how one can see that it is done", i+1))
				break
			}
		}
		if len(s.DoneWhen) == 0 {
			out = append(out, fmt.Sprintf("step %d does not say how one can see that it is done", i+1))
		}
	}
	return out
}

// How alike instructions are that ask for the same work over different elements: all but so many words in one place.
const (
	mostDiffering = 3
	fewestSame    = 2 // words; and they are at least half
	fewestAlike   = 3 // steps; two can be an accident
)

func (c check) fanOut() (out []string) {
	if len(c.task.Lists) == 0 {
		return c.unknownLists()
	}
	var lists []string
	for _, l := range c.task.Lists {
		lists = append(lists, l.Name)
	}
	told := make([]bool, len(c.draft.Steps))
	for i, a := range c.draft.Steps {
		if told[i] || a.Each != "" {
			continue
		}
		alike := []string{fmt.Sprint(i + 1)}
		for k := i + 1; k < len(c.draft.Steps); k++ {
			if b := c.draft.Steps[k]; a.Worker == b.Worker && b.Each == "" && differInOnePlace(words(a.Instruction), words(b.Instruction)) {
				alike, told[k] = append(alike, fmt.Sprint(k+1)), true
			}
		}
		if len(alike) >= fewestAlike {
			out = append(out, fmt.Sprintf("steps %s give %s the same work for one element each; make one step of them, with the list in i_each (%s)",
				strings.Join(alike, ", "), a.Worker, strings.Join(lists, ", ")))
		}
	}
	return append(out, c.unknownLists()...)
}

func (c check) unknownLists() (out []string) {
	for i, s := range c.draft.Steps {
		if s.Each != "" && !slices.ContainsFunc(c.task.Lists, func(l List) bool { return l.Name == s.Each }) {
			out = append(out, fmt.Sprintf("step %d goes over the list %q, which is not there", i+1, s.Each))
		}
	}
	return out
}

func differInOnePlace(a, b []string) bool {
	front := 0
	for front < min(len(a), len(b)) && a[front] == b[front] {
		front++
	}
	back := 0
	for back < min(len(a), len(b))-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	same, longest := front+back, max(len(a), len(b))
	return same >= fewestSame && same*2 >= longest && longest-same <= mostDiffering
}

func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
