package answer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Harm is what a schema does to Ollama 0.17.4 (research: judgement §1.3).
type Harm int

// The harms, from mild to grave.
const (
	Refuses     Harm = iota + 1 // 500 "invalid JSON schema in format"
	KillsRunner                 // 500, and the model is gone
	Hangs                       // no answer ever
	KillsServer                 // the connection breaks, and all models are gone
)

// Refusal is the error for a schema that Ollama has no answer to.
type Refusal struct {
	Harm   Harm
	Reason string
}

// Error says what is wrong with the schema.
func (r *Refusal) Error() string { return r.Reason }

// Limits beyond which the grammar cannot be built.
const (
	longestString = 2000
	longestArray  = 2001
)

var (
	typeWords   = []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	kindWords   = []string{"type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "additionalProperties", "items", "prefixItems", "pattern", "format"}
	deadly      = regexp.MustCompile(`\(\?|^\^[*+?{]`)           // groups with a question mark, a quantifier with nothing before it
	classEscape = regexp.MustCompile(`\\[dDwWsS-]`)              // read as a literal backslash by the grammar
	subSchemas  = []string{"properties", "$defs", "definitions"} // keywords that hold schemas by name
	subLists    = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
)

// refused returns what the schema would do to Ollama, or nil. It knows the recorded cases, not every one.
func refused(raw json.RawMessage) *Refusal {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return &Refusal{Refuses, "reading the schema: " + err.Error()}
	}
	return worst(v)
}

// worst walks the schema and returns the gravest refusal.
func worst(v any) *Refusal {
	s, ok := v.(map[string]any)
	if !ok {
		return &Refusal{Refuses, "a schema must be an object"}
	}
	found := judge(s)
	add := func(v any) {
		if r := worst(v); r != nil && (found == nil || r.Harm > found.Harm) {
			found = r
		}
	}
	for _, key := range subLists {
		list, _ := s[key].([]any)
		for _, sub := range list {
			add(sub)
		}
	}
	for _, key := range subSchemas {
		subs, _ := s[key].(map[string]any)
		for _, sub := range subs {
			add(sub)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		add(items)
	}
	return found
}

// judge looks at the keywords of one schema.
func judge(s map[string]any) *Refusal {
	if p, ok := s["pattern"].(string); ok {
		switch {
		case deadly.MatchString(p):
			return &Refusal{KillsServer, fmt.Sprintf("pattern %q", p)}
		case !strings.HasPrefix(p, "^") || !strings.HasSuffix(p, "$"):
			return &Refusal{Refuses, fmt.Sprintf("pattern %q is not anchored", p)}
		case classEscape.MatchString(p):
			return &Refusal{KillsRunner, fmt.Sprintf("pattern %q", p)}
		}
	}
	least, _ := s["minLength"].(float64)
	most, bounded := s["maxLength"].(float64)
	if bounded && least > most {
		return &Refusal{Hangs, "minLength is more than maxLength"}
	}
	items, _ := s["maxItems"].(float64)
	if least > longestString || most > longestString || items > longestArray {
		return &Refusal{KillsRunner, "a length is too large"}
	}
	if t, ok := s["type"].(string); ok && !slices.Contains(typeWords, t) {
		return &Refusal{Refuses, fmt.Sprintf("type %q is unknown", t)}
	}
	if r, ok := s["$ref"].(string); ok && (!strings.HasPrefix(r, "#/") || r == "#/") {
		return &Refusal{Refuses, fmt.Sprintf("reference %q", r)}
	}
	if len(s) > 0 && !slices.ContainsFunc(kindWords, func(k string) bool { return s[k] != nil }) {
		return &Refusal{Refuses, "nothing says what kind of value it is"}
	}
	return nil
}
