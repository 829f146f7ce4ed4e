package structure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestSchemasThatNothingSatisfiesAreRefused(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","required":["a"],"properties":{"a":`, 70) + `{"type":"string"}` + strings.Repeat("}}", 70)
	for raw, want := range map[string]struct{ pointer, word string }{
		`{"enum":[]}`:                                                                                         {"", "empty enum"},
		`{"type":"string","enum":[1,2]}`:                                                                      {"", "enum"},
		`{"type":"string","const":1}`:                                                                         {"", "const"},
		`{"type":"string","minLength":5,"maxLength":2}`:                                                       {"", "minLength 5"},
		`{"type":"number","minimum":5,"maximum":2}`:                                                           {"", "minimum 5"},
		`{"type":"integer","minimum":5,"exclusiveMaximum":5}`:                                                 {"", "5"},
		`{"type":"array","minItems":3,"maxItems":1}`:                                                          {"", "minItems 3"},
		`{"type":"array","minItems":1,"items":{"enum":[]}}`:                                                   {"/items", "empty enum"},
		`{"type":"array","minItems":1,"prefixItems":[false]}`:                                                 {"/prefixItems/0", ""},
		`{"type":"array","contains":{"enum":[]}}`:                                                             {"/contains/enum", "empty enum"},
		`{"type":"object","minProperties":3,"maxProperties":1}`:                                               {"", "minProperties 3"},
		`{"type":"object","required":["a","b"],"maxProperties":1}`:                                            {"", "2 properties"},
		`{"type":"object","required":["a"],"additionalProperties":false}`:                                     {"", `"a"`},
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":5,"maxLength":2}}}`: {"/properties/a", "minLength 5"},
		`{"$ref":"#"}`: {"", "itself"},
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`: {"", "itself"},
		`{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}}`:         {"", "itself"},
		`{"allOf":[{"type":"string"},{"type":"number"}]}`:                                  {"", "all of its parts"},
		`{"anyOf":[{"enum":[]},{"type":"array","minItems":2,"maxItems":1}]}`:               {"", ""},
		`{"type":"string","anyOf":[{"type":"number"},{"type":"null"}]}`:                    {"", ""},
		`false`: {"", "no value"},
		deep:    {"", "nested deeper than 64"},
		strings.Repeat(`{"not":`, 600) + `{}` + strings.Repeat("}", 600): {"", "nested deeper than"},
	} {
		_, err := Compile(json.RawMessage(raw))
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%.90s: %v, want an Error", raw, err)
			continue
		}
		if !strings.HasPrefix(bad.Pointer, want.pointer) || !strings.Contains(bad.Problem, want.word) || bad.Problem == "" {
			t.Errorf("%.90s: pointer %q problem %q, want %q and %q", raw, bad.Pointer, bad.Problem, want.pointer, want.word)
		}
	}
}

// What can be satisfied, however oddly, must pass.
func TestSchemasThatSomethingSatisfiesPass(t *testing.T) {
	for _, raw := range []string{
		`true`, `{}`, `{"type":"array","items":{"$ref":"#"}}`,
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		`{"type":"object","properties":{"never":false}}`,
		`{"type":"object","required":["v"],"properties":{"v":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`,
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","required":["kids"],"properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`,
		`{"type":"integer","minimum":5,"maximum":5}`,
		`{"type":"string","enum":[1,"a"]}`, `{"const":null}`,
		`{"type":"object","required":["x1"],"patternProperties":{"^x":{}},"additionalProperties":false}`,
		`{"allOf":[{"type":["string","null"]},{"type":["number","null"]}]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","minItems":2,"items":[{"type":"integer"}],"additionalItems":{"type":"string"}}`,
		strings.Repeat(`{"type":"array","items":`, 60) + `{"type":"string"}` + strings.Repeat("}", 60),
	} {
		if _, err := Compile(json.RawMessage(raw)); err != nil {
			t.Errorf("%.90s: %v", raw, err)
		}
	}
}
