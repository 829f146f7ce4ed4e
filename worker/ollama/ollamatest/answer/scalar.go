package answer

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	favourable   = []string{"passed", "pass", "met", "yes", "ok", "accept", "accepted", "approve", "approved", "plan", "valid", "done", "complete", "success", "all"}
	unfavourable = []string{"sent_back", "failed", "fail", "not_met", "no", "reject", "rejected", "invalid", "incomplete"}
	verdictNames = []string{"passed", "pass", "met", "ok", "accepted", "approved", "valid", "complete", "done", "success"}
)

// choose picks an enum value: the verdict that is wanted, or else what the seed says. Ids go by number.
func (b *builder) choose(values []json.RawMessage, at place) json.RawMessage {
	if at.step != nil && isID(at.name) {
		return values[at.step.index%len(values)]
	}
	if at.step != nil && at.step.work != nil && hasAny(at.name, "worker", "each") {
		said := at.step.work.worker
		if hasAny(at.name, "each") {
			said = at.step.work.each
		}
		if i := slices.Index(texts(values), said); i >= 0 {
			return values[i]
		}
	}
	wanted := favourable
	if b.req.Reject {
		wanted = append(slices.Clone(unfavourable), favourable...) // what cannot be refused, such as a plan, is not
	}
	for _, w := range wanted {
		for _, v := range values {
			if strings.EqualFold(string(v), `"`+w+`"`) {
				return v
			}
		}
	}
	if at.index > 0 || hasAny(at.name, "parts") {
		return values[at.index%len(values)]
	}
	return values[int(pick(b.req.Seed, at.path, b.subject)*float64(len(values)))]
}

func (b *builder) boolean(at place) bool {
	switch {
	case hasAny(at.name, verdictNames...):
		return !b.req.Reject
	case hasAny(at.name, "external", "irreversible", "optional"):
		return false
	}
	return pick(b.req.Seed, at.path, b.subject) < 0.5
}

// number picks a number in its range.
func (b *builder) number(s *schema, whole bool, at place) string {
	low, high := bounds(s, whole)
	if whole && at.step != nil && isID(at.name) {
		return strconv.Itoa(at.step.index + 1)
	}
	u := pick(b.req.Seed, at.path, b.subject)
	v := low + math.Floor(u*math.Min(high-low+1, 10))
	switch {
	case hasAny(at.name, "line", "line_number"):
		v = float64(b.quote(at.index).number)
	case hasAny(at.name, "score", "confidence", "rating"):
		if v = high; b.req.Reject {
			v = low
		}
	case !whole && high-low <= 1:
		v = low + math.Round(u*80+10)/100*(high-low)
	}
	if s.Multiple != nil && *s.Multiple > 0 {
		v = math.Ceil(low / *s.Multiple) * *s.Multiple
	}
	v = math.Max(low, math.Min(v, high))
	if whole {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// bounds are the smallest and the largest number allowed; a side that is open lies ten from the other.
func bounds(s *schema, whole bool) (low, high float64) {
	nudge := 1e-3
	if whole {
		nudge = 1
	}
	low, high = math.Inf(-1), math.Inf(1)
	if s.Minimum != nil {
		low = *s.Minimum
	}
	if s.Above != nil {
		low = math.Max(low, *s.Above+nudge)
	}
	if s.Maximum != nil {
		high = *s.Maximum
	}
	if s.Below != nil {
		high = math.Min(high, *s.Below-nudge)
	}
	if whole {
		low, high = math.Ceil(low), math.Floor(high)
	}
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return 1, 10
	case math.IsInf(low, -1):
		return high - 10, high
	case math.IsInf(high, 1):
		return low, low + 10
	}
	return low, high
}

// formats are valid values for the formats of JSON Schema.
var formats = map[string]string{
	"date": "2026-01-15", "time": "09:30:00Z", "date-time": "2026-01-15T09:30:00Z", "uuid": "3f2b8c1e-7d4a-4b6f-9a1c-0e5d8f7a2b91",
	"email": "someone@example.com", "uri": "https://example.com/", "ipv4": "192.0.2.1", "hostname": "example.com",
}

// text makes a string that fits pattern, format and length.
func (b *builder) text(s *schema, at place) string {
	if s.Pattern != nil {
		return b.matching(*s.Pattern, at)
	}
	if v, ok := formats[s.Format]; ok {
		return v
	}
	return fitLength(b.wording(at), number(s.MinLength, 0), number(s.MaxLength, 400))
}

// wording is what a field of that name says.
func (b *builder) wording(at place) string {
	switch {
	case at.step != nil && isID(at.name):
		return fmt.Sprintf("s%d", at.step.index+1)
	case isID(at.name):
		return fmt.Sprintf("id%d", at.index+1)
	case at.step != nil && isGoal(at.name):
		return at.step.goal
	case hasAny(at.name, "model", "model_hint", "worker"):
		return ""
	case hasAny(at.name, "quote", "quotes", "words", "excerpt", "evidence"):
		return padded(b.quote(at.index).text)
	case hasAny(at.name, "reason", "reasons", "why", "note", "explanation", "feedback", "problem"):
		return b.reason(at.index)
	case hasAny(at.name, "against"):
		return ""
	case hasAny(at.name, "done_when"):
		return fmt.Sprintf("The result of this step %s", [...]string{"exists and is not empty", "answers its goal"}[at.index%2])
	case at.index == 0 && hasAny(at.name, "summary", "answer", "text"):
		return strings.Join(b.key(2), " ")
	}
	best := b.key(5)
	if len(best) == 0 {
		return b.sentence(at.index)
	}
	return best[at.index%len(best)]
}

// padded lengthens a quote that is too short for most schemas by marks, which say nothing.
func padded(quote string) string {
	for utf8.RuneCountInString(quote) < 3 {
		quote += "."
	}
	return quote
}

func (b *builder) reason(i int) string {
	if b.req.Reject {
		return "It does not yet cover this: " + clip(b.sentence(i), 120)
	}
	return "It says so: " + clip(b.quote(i).text, 120)
}

// matching finds a string for a pattern: a word that means something if one matches, else one made from the pattern.
func (b *builder) matching(pattern string, at place) string {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return ""
	}
	n := at.index + 1
	if at.step != nil && isID(at.name) {
		n = at.step.index + 1
	}
	candidates := []string{b.wording(at), fmt.Sprintf("s%d", n), fmt.Sprintf("step%d", n), fmt.Sprintf("step-%d", n), strconv.Itoa(n)}
	if i := slices.IndexFunc(candidates, func(c string) bool { return c != "" && re.MatchString(c) }); i >= 0 {
		return candidates[i]
	}
	return fromPattern(pattern, n-1)
}

// fitLength clips or repeats text so that its length in characters is within bounds.
func fitLength(text string, least, most int) string {
	if strings.TrimSpace(text) == "" && least == 0 {
		return ""
	}
	if text == "" {
		text = "none"
	}
	for unit := " " + text; utf8.RuneCountInString(text) < least; {
		text += unit
	}
	short := clip(text, most)
	if utf8.RuneCountInString(short) < least { // clip went back to a word
		short = string([]rune(text)[:min(most, utf8.RuneCountInString(text))])
	}
	return short
}
