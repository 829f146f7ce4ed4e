package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostLiterals bounds what one plan has to repeat: a goal that names more holds data rather than names.
const mostLiterals = 40

// literal is something that the goal names and that must not get lost on the way to an instruction.
type literal struct {
	text   string
	number bool // compared as a number
	entry  bool // of an enumeration: a step that goes over a list covers it
}

func (c check) literalDropped() []string {
	overList := slices.ContainsFunc(c.draft.Steps, func(s draftStep) bool { return s.Each != "" })
	var said []string
	for _, s := range c.draft.Steps {
		said = append(said, s.Instruction)
	}
	text := strings.Join(said, "\n")
	plain, numbers := plainText(text), numbersIn(text)
	var lost []string
	for _, l := range literals(c.task.Goal) {
		switch {
		case l.entry && overList:
		case l.number && !slices.Contains(numbers, l.text) && !slices.Contains(words(text), numberWords[l.text]):
			lost = append(lost, l.text)
		case !l.number && !strings.Contains(plain, plainText(l.text)):
			lost = append(lost, fmt.Sprintf("%q", l.text))
		}
	}
	if lost == nil {
		return nil
	}
	return []string{fmt.Sprintf("the goal names %s, and no instruction does; name it in the instruction of the step that it is about", strings.Join(lost, ", "))}
}

// literals are what a goal names literally: quoted strings, names of files, entries of enumerations and numbers.
func literals(goal string) []literal {
	var out []literal
	add := func(l literal) {
		if l.text != "" && len(out) < mostLiterals && !slices.ContainsFunc(out, func(o literal) bool { return strings.EqualFold(o.text, l.text) }) {
			out = append(out, l)
		}
	}
	for _, q := range quoted(goal) {
		add(literal{text: q})
	}
	for _, f := range fileNames(goal) {
		add(literal{text: f})
	}
	for _, e := range entries(goal) {
		add(literal{text: e, entry: true})
	}
	for _, n := range numbersIn(goal) {
		add(literal{text: n, number: true})
	}
	return out
}

var (
	quotes     = regexp.MustCompile("\"([^\"\n]{1,120})\"|“([^”\n]{1,120})”|„([^“”\n]{1,120})[“”]|«([^»\n]{1,120})»|`([^`\n]{1,120})`|(?:^|[\\s(])'([^'\n]{2,120})'(?:$|[\\s.,;:!?)])")
	listMark   = regexp.MustCompile(`(?m)^\s*(?:[-*•]|\d{1,2}[.)])\s+`)
	bullet     = regexp.MustCompile(`^\s*[-*•]\s+(.*?)[\s,;]*$`) // a full stop makes it a sentence
	number     = regexp.MustCompile(`^[$€£#]?\d+(?:[.,]\d+)*%?$`)
	fileName   = regexp.MustCompile(`^[\p{L}\p{N}_./~-]*[\p{L}\p{N}_-]\.(?:[a-zA-Z][a-zA-Z0-9]{1,4}|[chrdmo])$`)
	shortEntry = regexp.MustCompile(`^[\p{L}\p{N}](?:[\p{L}\p{N}_.'’+-]*[\p{L}\p{N}+])?(?: [\p{L}\p{N}_.'’+-]*[\p{L}\p{N}+]){0,2}$`)
	capitals   = regexp.MustCompile(`\p{Lu}[\p{L}\p{N}_-]*(?: \p{Lu}[\p{L}\p{N}_-]*)?(?:, \p{Lu}[\p{L}\p{N}_-]*(?: \p{Lu}[\p{L}\p{N}_-]*)?)+,? (?:and|or|und|oder|y|et|e) \p{Lu}[\p{L}\p{N}_-]*(?: \p{Lu}[\p{L}\p{N}_-]*)?`)
	joiner     = regexp.MustCompile(`,? (?:and|or|und|oder|y|et|e) |, `)
)

// tokens are the words of a text with what belongs to them, such as the dot in a file name.
func tokens(text string) []string {
	var out []string
	for _, t := range strings.Fields(listMark.ReplaceAllString(text, "\n")) {
		if t = strings.Trim(t, `.,;:!?()[]{}"'“”„«»‘’…*`+"`"); t != "" {
			out = append(out, t)
		}
	}
	return out
}

func quoted(text string) []string {
	var out []string
	for _, m := range quotes.FindAllStringSubmatch(text, -1) {
		for _, inside := range m[1:] {
			if inside = strings.TrimSpace(inside); inside != "" {
				out = append(out, inside)
			}
		}
	}
	return out
}

func fileNames(text string) []string {
	var out []string
	for _, t := range tokens(text) {
		if fileName.MatchString(t) && !strings.Contains(t, "..") {
			out = append(out, t)
		}
	}
	return out
}

// numbersIn are the numbers of a text in one form: without signs of money, percent and thousands; ranges, dates and times
// in their parts.
func numbersIn(text string) []string {
	var out []string
	for _, t := range tokens(text) {
		for _, n := range strings.FieldsFunc(t, func(r rune) bool { return strings.ContainsRune("-–/:", r) }) {
			if !number.MatchString(n) {
				continue
			}
			n = thousands.ReplaceAllString(strings.Trim(n, "$€£#%"), "$1")
			if n = strings.ReplaceAll(n, ",", "."); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

var thousands = regexp.MustCompile(`,(\d{3}\b)`)

var numberWords = map[string]string{"1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven", "8": "eight", "9": "nine",
	"10": "ten", "11": "eleven", "12": "twelve"}

// entries are the elements of enumerations: short lines with a mark in front, what follows a colon with commas between, and names
// with capital letters. Other commas enumerate nothing that could be found again word for word.
func entries(goal string) []string {
	var out []string
	for line := range strings.Lines(goal) {
		if m := bullet.FindStringSubmatch(line); m != nil && shortEntry.MatchString(m[1]) {
			out = append(out, m[1])
		}
		if _, after, ok := strings.Cut(line, ": "); ok {
			out = append(out, enumerated(strings.TrimRight(after, " \r\n.;!?"))...)
		}
	}
	for _, at := range capitals.FindAllStringIndex(goal, -1) {
		all := joiner.Split(goal[at[0]:at[1]], -1)
		if head, rest, two := strings.Cut(all[0], " "); two && head != "" && beginsSentence(goal, at[0]) {
			all[0] = rest // "Compare Berlin, Paris and Rome"
		}
		out = append(out, all...)
	}
	return out
}

// enumerated returns the elements if all of them are short and there are at least three.
func enumerated(text string) []string {
	if i := strings.IndexAny(text, ".;!?"); i >= 0 && strings.HasPrefix(text[i:], ". ") {
		text = text[:i]
	}
	if !strings.Contains(text, ", ") {
		return nil
	}
	all := joiner.Split(text, -1)
	if len(all) < 3 || slices.ContainsFunc(all, func(e string) bool { return !shortEntry.MatchString(e) }) {
		return nil
	}
	return all
}

func beginsSentence(text string, at int) bool {
	front := strings.TrimRight(text[:at], " \t\n")
	return front == "" || strings.ContainsAny(front[len(front)-1:], ".:!?") || strings.HasSuffix(text[:at], "\n")
}

// plainText is the form in which literals are looked for.
func plainText(text string) string {
	plain := strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", " ", " ").Replace(strings.ToLower(text))
	return strings.Join(strings.Fields(plain), " ")
}
