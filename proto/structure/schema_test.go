package structure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// What cannot be used is refused with the place, what is wrong there, and what to write instead.
func TestCompileNamesThePlace(t *testing.T) {
	large := `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`
	for name, c := range map[string]struct{ schema, pointer, problem, instead string }{
		"minimum above maximum":        {`{"type":"object","properties":{"age":{"type":"integer","minimum":10,"maximum":2}}}`, "/properties/age/minimum", "minimum 10 is above maximum 2", "raise maximum"},
		"minimum at an open maximum":   {`{"type":"number","minimum":1,"exclusiveMaximum":1}`, "/minimum", "nothing below exclusiveMaximum 1", "lower minimum"},
		"fractions":                    {`{"properties":{"v":{"exclusiveMinimum":0.5,"maximum":0.25}}}`, "/properties/v/exclusiveMinimum", "is above maximum", "raise maximum"},
		"minLength above maxLength":    {`{"type":"array","items":{"type":"string","minLength":5,"maxLength":2}}`, "/items/minLength", "minLength 5 is above maxLength 2", "lower minLength"},
		"minItems above maxItems":      {`{"anyOf":[{"type":"null"},{"type":"array","minItems":3,"maxItems":1}]}`, "/anyOf/1/minItems", "3", "maxItems"},
		"minProperties":                {`{"$defs":{"a/b":{"minProperties":3,"maxProperties":1}}}`, "/$defs/a~1b/minProperties", "3", "maxProperties"},
		"minContains":                  {`{"contains":{},"minContains":3,"maxContains":1}`, "/minContains", "3", "maxContains"},
		"an empty enum":                {`{"properties":{"v":{"enum":[]}}}`, "/properties/v/enum", "empty enum", "at least one value"},
		"an enum of the wrong type":    {`{"type":"object","properties":{"v":{"type":"string","enum":[1]}},"required":["v"]}`, "/properties/v", "enum", "fit the type"},
		"a required key not allowed":   {`{"type":"object","required":["a"],"additionalProperties":false}`, "", `"a" is required and not allowed`, "add it to properties"},
		"a type that is none":          {`{"properties":{"v":{"type":"strin"}}}`, "/properties/v/type", "", "use object, array"},
		"a length below nothing":       {`{"properties":{"v":{"maxLength":-1}}}`, "/properties/v/maxLength", "", "whole number"},
		"more than a word holds":       {`{"type":"array","minItems":123456789012345678901234567890}`, "/minItems", "more than any answer", "smaller number"},
		"half a length":                {`{"properties":{"v":{"maxLength":2.7}}}`, "/properties/v/maxLength", "", "whole number"},
		"required as a string":         {`{"type":"object","properties":{"v":{}},"required":"v"}`, "/required", "", `["a", "b"]`},
		"enum as a string":             {`{"properties":{"v":{"enum":"x"}}}`, "/properties/v/enum", "", `["yes", "no"]`},
		"minimum as a string":          {`{"properties":{"v":{"minimum":"1"}}}`, "/properties/v/minimum", "", "write a number"},
		"properties as a list":         {`{"properties":["v"]}`, "/properties", "", "an object of schemas"},
		"a property that is no schema": {`{"properties":{"v":"string"}}`, "/properties/v", "", `{"name": {"type": "string"}}`},
		"items as in draft 7":          {`{"items":[{"type":"integer"}]}`, "/items", "", "prefixItems"},
		"an anyOf of nothing":          {`{"anyOf":[]}`, "/anyOf", "", "at least one schema"},
		"lookahead":                    {`{"properties":{"v":{"pattern":"(?!a)"}}}`, "/properties/v/pattern", "(?!a)", "without look-around"},
		"an unbalanced pattern":        {`{"properties":{"v":{"pattern":"^(a$"}}}`, "/properties/v/pattern", "^(a$", "RE2"},
		"a remote reference":           {`{"properties":{"v":{"$ref":"https://example.com/s.json"}}}`, "/properties/v/$ref", "outside", "$defs"},
		"a file":                       {`{"properties":{"v":{"$ref":"file:///etc/passwd"}}}`, "/properties/v/$ref", "outside", "$defs"},
		"a dangling reference":         {`{"properties":{"v":{"$ref":"#/$defs/none"}},"$defs":{}}`, "/properties/v/$ref", "nothing at", "$defs"},
		"a reference to an anchor":     {`{"properties":{"v":{"$ref":"#none"}}}`, "", "none", ""},
		"a reference to itself":        {`{"type":"object","required":["v"],"properties":{"v":{"$ref":"#"}}}`, "", "itself", "array"},
		"a number beyond all":          {`{"properties":{"v":{"minimum":1e999999999}}}`, "", "too large", ""},
		"too deep":                     {strings.Repeat(`{"type":"array","items":`, 80) + `{}` + strings.Repeat("}", 80), "", "deeper than 64", "$defs"},
		"too large":                    {large, "", "bytes", "ask for less"},
		"broken JSON":                  {`{"type":`, "", "not a JSON value", "an object"},
		"a list":                       {`[]`, "", "must be an object", "an object"},
		"a string":                     {`"a string"`, "", "must be an object", "an object"},
		"nothing":                      {``, "", "not a JSON value", "an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(c.schema))
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("%v, want an Error", err)
			}
			if bad.Pointer != c.pointer || !strings.Contains(bad.Problem, c.problem) || bad.Problem == "" || !strings.Contains(bad.Instead, c.instead) {
				t.Errorf("pointer %q problem %q instead %q, want %q, %q and %q", bad.Pointer, bad.Problem, bad.Instead, c.pointer, c.problem, c.instead)
			}
			if said := err.Error(); strings.Contains(said, "mem:") || !strings.Contains(said, bad.Pointer+": ") || !strings.HasSuffix(said, bad.Instead) {
				t.Errorf("the error says %q", said)
			}
		})
	}
}

func TestCompileReadsOlderDrafts(t *testing.T) {
	tuple := `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"integer"},{"type":"boolean"}]}`
	if s, err := Compile(json.RawMessage(tuple)); err != nil || !strings.Contains(string(s.format), "prefixItems") {
		t.Errorf("a tuple of draft 7: %v", err)
	}
	if _, err := Compile(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"f":{"type":"string","format":"file"}}}`)); err != nil {
		t.Errorf("a usable schema is refused: %v", err)
	}
}

func TestSafePattern(t *testing.T) {
	for pattern, want := range map[string]string{
		`^[a-z]{3}-[0-9]{2}$`:      `^[a-z]{3}-[0-9]{2}$`,
		`^s[0-9]{1,2}$`:            `^s[0-9]{1,2}$`,
		`^(foo|bar)$`:              `^(foo|bar)$`,
		`^[a-z0-9_./-]{1,48}$`:     `^[a-z0-9_./-]{1,48}$`,
		`^\d{3}\.\d+$`:             `^[0-9]{3}[.][0-9]+$`,
		`^(?:foo|bar)+$`:           `^(foo|bar)+$`,
		`^[\w.-]+$`:                `^[a-zA-Z0-9_.-]+$`,
		`^[a-z]*$`:                 `^[a-z]*$`,
		`^a?$`:                     `^a?$`,
		`^a{0,3}$`:                 `^a{0,3}$`,
		`^a{0,}$`:                  `^a{0,}$`,
		`^a{0}$`:                   "",
		`^a{0,0}b$`:                "",
		`[a-z]+`:                   "", // not anchored: an error
		`^ab`:                      "",
		``:                         "",
		`^$`:                       "",
		`^.{2,4}$`:                 "", // lets quotes through
		`^[^x]{3}$`:                "",
		`^(?!a)[a-z]+$`:            "", // kills the daemon
		`^*a$`:                     "",
		`^+$`:                      "",
		`^{3}$`:                    "",
		`^(a*)*$`:                  "", // kills the runner
		`^(a|b?)+$`:                "",
		`^a{5,2}$`:                 "", // fills the memory
		`^a{1,3000}$`:              "",
		`^([a-z]{1,500}b){1,500}$`: "",
		`^a\sb$`:                   "",
		`^(a$`:                     "",
		`^a)$`:                     "",
		`^a|b$`:                    "", // anchored on one end each
		`^"x"$`:                    "",
		`^é$`:                      "",
		`^a**$`:                    "",
		`^[z-a]$`:                  "",
	} {
		got, ok := safePattern(pattern)
		if ok != (want != "") || got != want {
			t.Errorf("%q: %q %v, want %q", pattern, got, ok, want)
		}
	}
}
