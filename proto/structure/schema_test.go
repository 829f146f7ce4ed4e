package structure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCompileNamesThePlace(t *testing.T) {
	for raw, want := range map[string]struct{ pointer, word string }{
		`{"type":"object","properties":{"v":{"type":"strin"}}}`:      {"/properties/v/type", ""},
		`{"type":"object","properties":{"v":{"maxLength":-1}}}`:      {"/properties/v/maxLength", ""},
		`{"type":"object","properties":{"v":{"pattern":"(?!a)"}}}`:   {"/properties/v/pattern", "(?!a)"},
		`{"properties":{"v":{"$ref":"https://example.com/s.json"}}}`: {"", "inside the schema"},
		`{"properties":{"v":{"$ref":"file:///etc/passwd"}}}`:         {"", "inside the schema"},
		`{"properties":{"v":{"$ref":"#/$defs/none"}}}`:               {"", "none"},
		`{"properties":{"v":{"minimum":1e999999999}}}`:               {"", "too large"},
		`{"type":`:   {"", "not a JSON value"},
		`[]`:         {"", "must be an object"},
		`"a string"`: {"", "must be an object"},
		``:           {"", "not a JSON value"},
	} {
		_, err := Compile(json.RawMessage(raw))
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v, want an Error", raw, err)
			continue
		}
		if bad.Pointer != want.pointer || !strings.Contains(bad.Problem, want.word) || bad.Problem == "" {
			t.Errorf("%s: pointer %q problem %q, want %q and %q", raw, bad.Pointer, bad.Problem, want.pointer, want.word)
		}
		if strings.Contains(err.Error(), "mem:") {
			t.Errorf("%s: the error shows our own address: %v", raw, err)
		}
	}
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
