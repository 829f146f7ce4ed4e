package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// field checks the value of one field of a request; what is wrong reads on after the field's name.
type field func(name string, v any) error

// fields are the fields of an object.
type fields map[string]field

// Bounds of what a request may ask for: far beyond what is of use, and within what the wire carries.
const (
	mostAttempts  = 1000
	mostTokens    = 10_000_000
	mostSteps     = 1000
	mostUses      = 16
	longestName   = 100 // bytes
	mostPositions = 1 << 40
)

var (
	retryField = object(fields{"attempts": whole(1, mostAttempts)})
	judgeField = object(fields{"criteria": criteria, "model": oneOrMore})
	// calling is what every call of a model may hold, see docs/requests.md.
	calling = fields{"model": oneOrMore, "label": text, "retry": retryField, "options": options, "uses": uses}
	// writing is what a call may hold that makes a model write.
	writing = with(calling, fields{"system": text, "think": think, "max_tokens": whole(1, mostTokens), "temperature": number})
	waiting = fields{"show": list(anything), "timeout_seconds": number, "label": text}
	working = with(writing, fields{"prompt": text, "context": list(anything), "schema": anything, "evaluate": judgeField, "images": images})
	// refFields are those of a reference to a stored body.
	refFields = fields{"ref": text, "name": text, "bytes": whole(0, 1<<50)}
)

// refusal says what is wrong with a request that is asked for now, "" when nothing is. It is recorded with the request, so that a
// later version that refuses more or less still reads the runs of this one.
func refusal(kind string, body json.RawMessage) string {
	known, ok := steps[kind]
	if !ok {
		return "" // parseSpec says so
	}
	if wrong := wrongField(kind, known.fields, body); wrong != "" || kind != KindEvaluate {
		return wrong
	}
	var asked struct{ Criteria []json.RawMessage }
	if json.Unmarshal(body, &asked) != nil || len(asked.Criteria) == 0 {
		return "evaluate: no criterion is given"
	}
	return ""
}

func wrongField(kind string, known fields, body json.RawMessage) string {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Sprintf("%s: the request does not parse: %v", kind, err)
	}
	if err := object(known)(kind, v); err != nil {
		return err.Error()
	}
	return ""
}

func with(base, more fields) fields {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

// object checks an object whose fields are all known. A null counts as not given.
func object(known fields) field {
	return func(name string, v any) error {
		given, ok := v.(map[string]any)
		if !ok {
			return mustBe(name, "an object", v)
		}
		for _, key := range slices.Sorted(maps.Keys(given)) {
			check, ok := known[key]
			if !ok {
				return fmt.Errorf("%s has no field %q; it has %s", name, key, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			}
			if given[key] == nil {
				continue
			}
			if err := check(name+"."+key, given[key]); err != nil {
				return err
			}
		}
		return nil
	}
}

func list(element field) field {
	return func(name string, v any) error {
		elements, ok := v.([]any)
		if !ok {
			return mustBe(name, "an array", v)
		}
		for i, e := range elements {
			if err := element(fmt.Sprintf("%s[%d]", name, i), e); err != nil {
				return err
			}
		}
		return nil
	}
}

func whole(least, most float64) field {
	return func(name string, v any) error {
		if n, ok := v.(float64); !ok || n != math.Trunc(n) || n < least || n > most {
			return mustBe(name, fmt.Sprintf("a whole number from %.0f to %.0f", least, most), v)
		}
		return nil
	}
}

func number(name string, v any) error {
	if n, ok := v.(float64); !ok || n < 0 {
		return mustBe(name, "a number that is not negative", v)
	}
	return nil
}

func text(name string, v any) error {
	if _, ok := v.(string); !ok {
		return mustBe(name, "a text", v)
	}
	return nil
}

// criteria are what a judge is asked about, at least one.
func criteria(name string, v any) error {
	if all, ok := v.([]any); ok && len(all) == 0 {
		return fmt.Errorf("%s: no criterion is given", name)
	}
	if err := list(criterion)(name, v); err != nil {
		return err
	}
	for _, c := range v.([]any) {
		if more, ok := c.(map[string]any); !ok || more["must"] != false {
			return nil
		}
	}
	return fmt.Errorf("%s: none of them must hold, so everything would pass", name)
}

// criterion is a text, or says more about what it asks.
func criterion(name string, v any) error {
	more, ok := v.(map[string]any)
	if !ok {
		return word(name, v)
	}
	if _, ok := more["text"]; !ok {
		return fmt.Errorf("%s has no text", name)
	}
	return object(fields{"text": word, "must": yes, "absence": yes, "type": text})(name, v)
}

// word is a text that says something.
func word(name string, v any) error {
	if s, ok := v.(string); ok && strings.TrimSpace(s) == "" {
		return fmt.Errorf("%s is empty", name)
	}
	return text(name, v)
}

func think(name string, v any) error {
	switch v.(type) {
	case bool, string:
		return nil
	default:
		return mustBe(name, "true, false or a level", v)
	}
}

// options are Ollama's; the worker knows which it passes on.
func options(name string, v any) error {
	given, ok := v.(map[string]any)
	if !ok {
		return mustBe(name, "an object", v)
	}
	if n, ok := given["num_ctx"]; ok {
		return whole(1, mostTokens)(name+".num_ctx", n)
	}
	return nil
}

// uses are names of resources; whether there is a limit on one is the coordinator's setting.
func uses(name string, v any) error {
	if names, ok := v.([]any); ok && len(names) > mostUses {
		return fmt.Errorf("%s names %d resources, at most %d can be held", name, len(names), mostUses)
	}
	return list(func(name string, v any) error {
		if s, ok := v.(string); !ok || strings.TrimSpace(s) != s || s == "" || len(s) > longestName {
			return mustBe(name, "the name of a resource", v)
		}
		return nil
	})(name, v)
}

// yes is a field that is true or left out.
func yes(name string, v any) error {
	if _, ok := v.(bool); !ok {
		return mustBe(name, "true or false", v)
	}
	return nil
}

func oneOf(choices ...string) field {
	return func(name string, v any) error {
		if s, ok := v.(string); !ok || !slices.Contains(choices, s) {
			return mustBe(name, strings.Join(choices, " or "), v)
		}
		return nil
	}
}

// either takes what one of two checks takes.
func either(what string, a, b field) field {
	return func(name string, v any) error {
		switch v.(type) {
		case []any:
			return a(name, v)
		case map[string]any:
			return b(name, v)
		default:
			return mustBe(name, what, v)
		}
	}
}

// lines are an artifact with one body a line.
func lines(name string, v any) error {
	return object(fields{"lines": object(refFields)})(name, v)
}

func anything(string, any) error { return nil }

func mustBe(name, what string, v any) error {
	got, _ := json.Marshal(v) // it came from JSON
	const limit = 60
	if len(got) > limit {
		got = append([]byte(strings.ToValidUTF8(string(got[:limit]), "")), "…"...)
	}
	return fmt.Errorf("%s must be %s, and is %s", name, what, got)
}
