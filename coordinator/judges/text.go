package judges

import (
	"regexp"
	"slices"
	"strings"
)

// What of a text is used.
const (
	fewestWords  = 5 // of a sentence that something is asked about
	fewestPoints = 3
	excerptWords = 9    // of a sentence that a criterion quotes
	longest      = 4000 // bytes: a judge reads each subject five times
)

// text is a text in parts: sentences and points, with what stands between them.
type text struct {
	parts []string
	long  []int // indices of the parts that something can be asked about: each is there once
}

// sentenceEnd is where one sentence ends and the next begins, or a line ends.
var sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*[ \t]+|\n+`)

func newText(raw string) text {
	raw = strings.TrimSpace(strings.ReplaceAll(raw, "\r\n", "\n"))
	var t text
	for size := 0; raw != "" && size < longest; {
		end := len(raw)
		if at := sentenceEnd.FindStringIndex(raw); at != nil {
			end = at[1]
		}
		t.parts = append(t.parts, raw[:end])
		size, raw = size+end, raw[end:]
	}
	seen := map[string]int{}
	for i, p := range t.parts {
		if words := len(strings.Fields(p)); words >= fewestWords && words <= 60 && len(p) <= 400 && !strings.Contains(p, `"`) {
			t.long = append(t.long, i)
			seen[excerpt(p)]++
		}
	}
	t.long = slices.DeleteFunc(t.long, func(i int) bool { return seen[excerpt(t.parts[i])] > 1 })
	return t
}

func (t text) String() string { return strings.TrimSpace(strings.Join(t.parts, "")) }

// with is the text with another part i; the space behind the part stays.
func (t text) with(i int, part string) string {
	parts := slices.Clone(t.parts)
	rest := strings.TrimRight(parts[i], " \t\n")
	parts[i] = part + parts[i][len(rest):]
	return text{parts: parts}.String()
}

// without is the text without part i.
func (t text) without(i int) string {
	return text{parts: slices.Delete(slices.Clone(t.parts), i, i+1)}.String()
}

var point = regexp.MustCompile(`^\s*(?:[-*•]|\d{1,3}[.)])\s+`)

// lead is what marks a part as a point of a list.
func lead(part string) string { return point.FindString(part) }

// excerpt is the beginning of a part, as a criterion quotes it.
func excerpt(part string) string {
	words := strings.Fields(strings.TrimPrefix(part, lead(part)))
	return strings.TrimRight(strings.Join(words[:min(len(words), excerptWords)], " "), ".,;:!?")
}

// said says whether a text has words, however they are broken into lines.
func said(text, words string) bool {
	return strings.Contains(strings.Join(strings.Fields(text), " "), words)
}
