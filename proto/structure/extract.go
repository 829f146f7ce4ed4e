package structure

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// Finding says what an answer holds.
type Finding int

// The findings.
const (
	Value       Finding = iota // a value that the schema accepts
	Nothing                    // nothing but white space or thinking
	NoStructure                // text without a value, or a tool call printed as text
	Refused                    // a value that the schema refuses, or that contradicts itself
	Cut                        // the answer was cut off: whatever is in it does not count as whole
)

// Extraction is what was found.
type Extraction struct {
	Finding Finding
	Value   json.RawMessage // compact, keys in order, numbers as written; nil unless Finding is Value
	From    string          // the text that the value was taken from
	Reasons []string        // why a value was refused
	Notes   []string        // what was bent to get the value
}

// Notes of an Extraction.
const (
	NoteRepaired  = "repaired"               // the JSON was malformed and has been repaired
	NoteEmbedded  = "taken out of text"      // the value stood between other text
	NoteMisrouted = "value came as thinking" // Ollama put it into the wrong field
)

// Extract finds the value in an answer. The schema decides which of several values counts, the first that it accepts;
// of what is broken the outer value is tried before the inner ones. cut says that a limit ended the answer.
func (s *Schema) Extract(answer, thinking string, cut bool) Extraction {
	if cut {
		return Extraction{Finding: Cut}
	}
	whole := strings.TrimSpace(answer)
	rest := WithoutThinking(whole)
	if rest == "" {
		if v, err := parseNode([]byte(unfenced(strings.TrimSpace(thinking))), false); err == nil && s.validate(v) == nil {
			return Extraction{Value: v.encode(), From: thinking, Notes: []string{NoteMisrouted}}
		}
		return Extraction{Finding: Nothing}
	}
	f := finder{schema: s, budget: scanBudget*len(rest) + 1024}
	for _, text := range slices.Compact([]string{whole, rest, unfenced(rest)}) {
		if f.strict(text) {
			return Extraction{Value: f.found.encode(), From: text}
		}
	}
	if f.refused == nil && f.conflict == nil && f.search(rest, 0) {
		return Extraction{Value: f.found.encode(), From: f.from, Notes: f.notes}
	}
	return f.failure()
}

// Bounds of the search. The repair library is quadratic on hostile input (measured: 1.3 s for 40 kB) and recursive, so
// it gets a few short and shallow texts only.
const (
	scanBudget  = 32 // times the length of the answer
	maxRepairs  = 4
	repairBytes = 24 << 10
	repairDepth = 64
)

// finder looks for the first value that the schema accepts.
type finder struct {
	schema   *Schema
	budget   int // bytes that may still be scanned
	repairs  int
	found    node
	from     string
	notes    []string
	conflict error    // a value contradicted itself
	refused  []string // why the first well-formed value was refused
	toolCall bool     // a well-formed value was a tool call printed as text
}

// strict tries a text as one whole JSON value.
func (f *finder) strict(text string) bool {
	v, err := parseNode([]byte(text), false)
	if err != nil {
		if errors.Is(err, errConflict) || errors.Is(err, errNumber) || errors.Is(err, errDepth) {
			f.conflict = err
		}
		return false
	}
	return f.accept(v)
}

func (f *finder) accept(v node) bool {
	reasons := f.schema.validate(v)
	if reasons == nil {
		f.found = v
		return true
	}
	f.toolCall = f.toolCall || isToolCall(v)
	if f.refused == nil {
		f.refused = reasons
	}
	return false
}

// search walks over the bracketed spans of a text. Well-formed ones are tried first; then each broken one is repaired,
// and if that does not help, searched inside: outer before inner, so that a fragment never stands in for its whole.
func (f *finder) search(text string, depth int) bool {
	var broken []string
	for at := 0; at < len(text) && f.budget > 0; {
		open := strings.IndexAny(text[at:], "{[")
		if open < 0 {
			break
		}
		at += open
		end, closed := matching(text[at:])
		f.budget -= end
		span := text[at : at+end]
		if closed && f.strict(span) {
			f.from, f.notes = span, append(f.notes, NoteEmbedded)
			return true
		}
		if f.conflict != nil {
			return false
		}
		if !json.Valid([]byte(span)) {
			broken = append(broken, span)
		}
		at += end
	}
	for _, span := range broken {
		if f.repair(span) {
			return true
		}
		if f.conflict != nil {
			return false
		}
		if depth < repairDepth && f.search(span[1:], depth+1) {
			return true
		}
	}
	return false
}

func (f *finder) repair(span string) bool {
	if f.repairs == maxRepairs || len(span) > repairBytes || nesting(span) > repairDepth {
		return false
	}
	f.repairs++
	repaired, err := jsonrepair.Repair(span)
	if err != nil || !f.strict(repaired) {
		return false
	}
	f.from, f.notes = span, append(f.notes, NoteRepaired)
	return true
}

func (f *finder) failure() Extraction {
	switch {
	case f.conflict != nil:
		return Extraction{Finding: Refused, Reasons: []string{f.conflict.Error()}}
	case f.toolCall:
		return Extraction{Finding: NoStructure, Reasons: []string{"a tool call printed as text"}}
	case f.refused != nil:
		return Extraction{Finding: Refused, Reasons: f.refused}
	default:
		return Extraction{Finding: NoStructure}
	}
}

// isToolCall recognises a call of a tool that nobody offered, printed as text.
func isToolCall(v node) bool {
	name := firstNonEmpty(v.str("name"), v.str("tool"), v.str("function"))
	_, parameters := v.get("parameters")
	_, arguments := v.get("arguments")
	return name != "" && (parameters || arguments)
}

// matching returns the length of the bracketed span that text begins with, and whether it is closed.
func matching(text string) (length int, closed bool) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}

// nesting is the deepest that brackets can be nested in text.
func nesting(text string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

var (
	thinkOpen  = regexp.MustCompile(`(?i)<(?:think|thinking|thought|reasoning)>`)
	thinkClose = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning)>`)
	thinkEnd   = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning)>[ \t]*(?:\r?\n|$)`)
	fence      = regexp.MustCompile("^```[A-Za-z0-9_-]*[ \t]*\r?\n([\\s\\S]*?)\r?\n?```$")
)

// WithoutThinking drops the thinking blocks that a text begins with; one that is never closed is all of it: thoughts
// are not an answer. Some templates open the block in the prompt, then only its end is in the text.
func WithoutThinking(text string) string {
	text = strings.TrimSpace(text)
	opened := false
	for {
		open := thinkOpen.FindStringIndex(text)
		if open == nil || open[0] != 0 {
			break
		}
		opened = true
		end := thinkClose.FindStringIndex(text)
		if end == nil {
			return ""
		}
		text = strings.TrimSpace(text[end[1]:])
	}
	if end := thinkEnd.FindStringIndex(text); !opened && end != nil && !thinkOpen.MatchString(text[:end[0]]) {
		return strings.TrimSpace(text[end[1]:])
	}
	return text
}

// unfenced takes a text out of the one code fence around it.
func unfenced(text string) string {
	if m := fence.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return text
}
