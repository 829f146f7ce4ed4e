package structure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/structure/structuretest"
)

// violating is an answer for each recorded schema that Ollama took and did not hold answers to.
var violating = map[string]string{
	"nullable:true (OpenAPI)":                      `{"v":null}`,
	"required names a key not in properties":       `{"a":true}`,
	"patternProperties alone":                      `{"k1":"x"}`,
	"propertyNames pattern + additionalProperties": `{"q":1}`,
	"propertyNames enum + additionalProperties":    `{"s3":true}`,
	"minProperties 2":                              `{"a":1}`,
	"maxProperties 1":                              `{"a":1,"b":2}`,
	"dependentRequired":                            `{"a":true}`,
	"pattern + maxLength 4 (^[a-z]+$)":             `{"v":"abcde"}`,
	"format date: calendar-valid":                  `{"v":"2025-09-31"}`,
	"format email":                                 `{"v":"x"}`,
	"format uri":                                   `{"v":"a b"}`,
	"format ipv4":                                  `{"v":"1.2.3.400"}`,
	"integer multipleOf 5":                         `{"v":7}`,
	"number minimum 0 maximum 1":                   `{"v":1.5}`,
	"number exclusiveMaximum 1":                    `{"v":1}`,
	"minItems/maxItems without items":              `{"v":[1]}`,
	"uniqueItems":                                  `{"v":["a","a"]}`,
	"contains":                                     `{"v":["b"]}`,
	"prefixItems + items:integer (rest)":           `{"v":[1,2]}`,
	"oneOf exclusivity (integer|number)":           `{"v":3}`,
	"anyOf with sibling properties/required":       `{"q":1}`,
	"allOf with sibling properties":                `{"p":true}`,
	"not const true on boolean":                    `{"v":true}`,
	"if/then/else":                                 `{"a":true}`,
	"$ref with sibling maxLength":                  `{"v":"xy"}`,
	// What makes the server fail as it is, goes out in another form that lets these through.
	"maxLength 3 without type":     `{"v":"abcd"}`,
	"maxLength 2001":               `{"v":"` + strings.Repeat("x", 2002) + `"}`,
	"minLength 2001":               `{"v":"x"}`,
	"pattern unanchored [a-z]+":    `{"v":"12"}`,
	"pattern only ^ anchor":        `{"v":"ba"}`,
	`pattern \s escape: ^a\sb$`:    `{"v":"ab"}`,
	"pattern dot ^.{2,4}$":         `{"v":"abcde"}`,
	`pattern [^"] class ^[^x]{3}$`: `{"v":"xxx"}`,
	"minimum without type":         `{"v":0}`,
	"maxItems 2002":                `{"v":[` + strings.Repeat("true,", 2002) + `true]}`,
	"not (alone)":                  `{"v":"x"}`,
	"$ref by $anchor/#name":        `{"v":"x"}`,
}

// These were not held to what they say, and say nothing that an answer could violate.
var open = []string{"required absent: all keys optional, always all present?", "additionalProperties:true -> opened (extra keys seen)"}

// Every recorded schema, by name: refused with the place, or sent in a form that was measured to be harmless; and whatever
// the server does not hold answers to is caught here.
func TestEveryRecordedSchema(t *testing.T) {
	caught := 0
	for _, r := range structuretest.Recordings(t) {
		t.Run(r.Name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(r.Text()))
			if err != nil {
				var bad *Error
				if !errors.As(err, &bad) || !strings.HasPrefix(bad.Pointer, "/properties/") || bad.Instead == "" {
					t.Errorf("an error without a place: %v", err)
				}
				return // nothing is sent at all
			}
			checkSafe(t, r.Name, s.Format())
			if r.Harmful() && string(s.Format()) == compact(t, json.RawMessage(r.Text())) {
				t.Errorf("sent unchanged: %s", s.Format())
			}
			answer, ok := violating[r.Name]
			if !ok {
				return
			}
			caught++
			if e := s.Extract(answer, "", false); e.Finding != Refused || len(e.Reasons) == 0 {
				t.Errorf("%s passes: %s", answer, e.Value)
			}
		})
	}
	if caught != len(violating) {
		t.Errorf("%d of %d violating answers were tried", caught, len(violating))
	}
}

// No recorded schema that Ollama does not hold answers to is left out above.
func TestEveryIgnoredSchemaHasAViolation(t *testing.T) {
	for _, r := range structuretest.Recordings(t) {
		_, refused := Compile(json.RawMessage(r.Text()))
		_, tried := violating[r.Name]
		says := true
		for _, name := range open {
			says = says && name != r.Name
		}
		if r.Ignored() && says && refused == nil && !tried {
			t.Errorf("%s: nothing shows that a violation is caught", r.Name)
		}
	}
}

// Of what Ollama ignores, the format lets the violation through, so that it is validation that catches it: the table above
// would prove nothing if no answer under that format could look like that.
func TestViolationsKeepToTheFormat(t *testing.T) {
	// Here more is sent than was written: unions are spelled out with what stands beside them, and what is required is there.
	stricter := map[string]bool{"required names a key not in properties": true, "anyOf with sibling properties/required": true,
		"allOf with sibling properties": true, "nullable:true (OpenAPI)": true, "minItems/maxItems without items": true}
	for _, r := range structuretest.Recordings(t) {
		answer, tried := violating[r.Name]
		s, err := Compile(json.RawMessage(r.Text()))
		if !tried || err != nil {
			continue
		}
		accepts, err := structuretest.Accepts(s.Format())
		if err != nil {
			t.Fatal(err)
		}
		if let := accepts(answer) == nil; let == stricter[r.Name] {
			t.Errorf("%s: the format %s lets %.60s through: %t", r.Name, s.Format(), answer, let)
		}
	}
}
