package structuretest

import (
	"encoding/json"
	"strings"
	"testing"
)

// The check itself: it refuses every schema that harmed a real server, as it was tried, and what its converter gets wrong.
func TestWhitelistedRefusesWhatHarms(t *testing.T) {
	harmful := 0
	for _, r := range Recordings(t) {
		if !r.Harmful() {
			continue
		}
		harmful++
		if Whitelisted(json.RawMessage(r.Text())) == nil {
			t.Errorf("%s passes: %s", r.Name, r.Text())
		}
	}
	if harmful < 25 {
		t.Errorf("only %d harmful recordings", harmful)
	}
	for _, format := range []string{
		`{"type":"integer","minimum":105}`, `{"type":"integer","maximum":-1}`, `{"type":"integer","minimum":2,"maximum":1}`, `{"type":"number","minimum":0}`,
		`{"type":"object","properties":{"":{"type":"null"}}}`, `{"type":"object","properties":{"a]":{"type":"null"}},"additionalProperties":true}`,
		`{"const":1e400}`, `{"const":{"$ref":"#/x"}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"$ref":"#/$defs/a-b","$defs":{"a-b":{"type":"null"}}}`,
		`{"type":"string","pattern":"^(a|b?)+$"}`, `{"type":"string","pattern":"^a$","maxLength":2}`, `{"type":"array","minItems":1}`, `{"anyOf":[]}`, `{}`, `true`,
	} {
		if Whitelisted(json.RawMessage(format)) == nil {
			t.Errorf("%s passes", format)
		}
	}
}

func TestAccepts(t *testing.T) {
	accepts, err := Accepts(json.RawMessage(`{"type":"object","properties":{"v":{"type":"array","prefixItems":[{"type":"integer"}]}},"required":["v"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for answer, ok := range map[string]bool{`{"v":[1]}`: true, `{"v":[]}`: false, `{"v":[1,2]}`: false, `{"v":["x"]}`: false, `{"v":[1],"w":2}`: false, `{}`: false, `{"v":[1]`: false} {
		if err := accepts(answer); (err == nil) != ok {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// The same bytes make the same schema, and many bytes make many.
func TestSchema(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100 {
		entropy := []byte(strings.Repeat(string(rune('a'+i)), i))
		s := Schema(entropy)
		if string(s) != string(Schema(entropy)) || !json.Valid(s) {
			t.Fatalf("%s", s)
		}
		seen[string(s)] = true
	}
	if len(seen) < 30 {
		t.Errorf("%d schemas of 100", len(seen))
	}
}
