package structure

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/structure/structuretest"
)

// checkSafe holds a format to what was measured, by a check that knows nothing of how it was made.
func checkSafe(t *testing.T, name string, format json.RawMessage) {
	t.Helper()
	if err := structuretest.Whitelisted(format); err != nil {
		t.Errorf("%s: %v in %s", name, err, format)
	}
}

// values is a pool in which every recorded constraint has values on both sides.
func values(long bool) []string {
	pool := []string{
		`null`, `true`, `false`, `0`, `1`, `2`, `3`, `5`, `6`, `12`, `13`, `-3`, `-4`, `1.5`, `0.5`, `1e2`, `{}`, `[]`, `{"a":1}`, `{"b":1,"a":2}`,
		`[1]`, `[1,true]`, `[true,1]`, `[true]`, `[true,true]`, `[true,true,true]`, `[true,false,true,true]`, `[1,2]`, `["x"]`, `["a"]`, `["a","b"]`, `["b","b"]`,
		`{"k":"a","n":1}`, `{"k":"b","s":"x"}`, `{"k":"a","s":"x"}`, `{"l":[]}`, `{"l":[{"l":[]}]}`, `{"l":[1]}`,
	}
	for _, s := range []string{
		"", "x", "y", "k", "a", "abc", "abcd", "123456789012", "12345678901", "passed", "failed", "r1", "r3", "foo", "bar", "foobar", "abc-12", "ab-1", "s1", "s12", "s123",
		"2024-02-29", "2024-13-01", "10:00:00Z", "2024-02-29T10:00:00Z", "123e4567-e89b-12d3-a456-426614174000", "a b", "é\"\\x", "日本", "a\nb", strings.Repeat("z", 2000), strings.Repeat("z", 2001),
	} {
		quoted, _ := json.Marshal(s)
		pool = append(pool, string(quoted))
	}
	for _, n := range []int{1999, 2000, 2001, 2002} {
		if !long {
			break
		}
		pool = append(pool, "["+strings.TrimSuffix(strings.Repeat("true,", n), ",")+"]")
	}
	return pool
}

// What a real Ollama enforced is still sent: whatever the full schema refuses because of it, the format refuses, too.
func TestFormatStillEnforces(t *testing.T) {
	except := map[string]string{
		"not const":     "Ollama ignores not, and the random model never hit the one value that it shuts out",
		"maxItems 2001": "we stop one below what the server stood",
		"enum value of wrong type (type string, enum [1])": "no value satisfies it",
		"items:[..] tuple (draft-07)":                      "no schema of draft 2020-12; with the draft named it works, see TestCompileNamesThePlace",
	}
	looked := 0
	for _, r := range structuretest.Recordings(t) {
		s, err := Compile(json.RawMessage(r.Text()))
		if err != nil || !r.Enforced() || except[r.Name] != "" {
			if err != nil && r.Enforced() && except[r.Name] == "" {
				t.Errorf("%s: refused although it works: %v", r.Name, err)
			}
			continue
		}
		sent := mustCompile(t, string(closed(t, s.format)))
		full := mustCompile(t, string(closed(t, s.tree.encode())))
		for _, v := range values(strings.HasPrefix(r.Name, "maxItems")) {
			for _, instance := range []string{v, `{"v":` + v + `}`, `{"v":` + v + `,"w":1}`} {
				n, err := parseNode([]byte(instance), true)
				if err != nil {
					t.Fatal(err)
				}
				looked++
				if full.validate(n) != nil && sent.validate(n) == nil {
					t.Errorf("%s: %.80s is refused by the schema but not by what is sent: %s", r.Name, instance, s.format)
				}
			}
		}
	}
	t.Logf("%d pairs", looked)
}

// closed reads a schema as Ollama does: an object with properties that does not say otherwise has no others.
func closed(t *testing.T, raw json.RawMessage) json.RawMessage {
	tree, err := parseNode(raw, true)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n node) node
	walk = func(n node) node {
		out := n
		out.members, out.items = nil, nil
		for _, m := range n.members {
			if m.key != "const" && m.key != "enum" {
				m.value = walk(m.value)
			}
			out.members = append(out.members, m)
		}
		for _, i := range n.items {
			out.items = append(out.items, walk(i))
		}
		if p, ok := n.get("properties"); ok && p.kind == '{' && len(p.members) > 0 && !has(n, "additionalProperties") && !has(n, "allOf") {
			out.members = append(out.members, member{"additionalProperties", node{scalar: false}})
		}
		return out
	}
	return walk(tree).encode()
}

// A format never shuts out every answer that the schema accepts, else the model could not succeed.
func TestFormatLeavesAnAnswer(t *testing.T) {
	for schema, answer := range map[string]string{
		`{"type":"object","properties":{"p":{"type":"boolean"}},"required":["p"],"anyOf":[{"type":"object","properties":{"q":{"type":"integer"}},"required":["q"]}]}`: `{"p":true,"q":1}`,
		`{"type":"object","properties":{"p":{"type":"boolean"}},"allOf":[{"type":"object","properties":{"q":{"type":"integer"}},"required":["q"]}]}`:                  `{"p":true,"q":1}`,
		`{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a","zz"]}`:                                                                               `{"a":true,"zz":"x"}`,
		`{"type":"array","prefixItems":[{"type":"boolean"}],"items":{"type":"integer"},"minItems":3}`:                                                                 `[true,1,2]`,
		`{"type":"array","prefixItems":[{"type":"boolean"}],"minItems":2}`:                                                                                            `[true,"x"]`,
		`{"type":"object","properties":{"v":{"description":"anything"}},"required":["v"]}`:                                                                            `{"v":"text"}`,
		`{"type":"object","properties":{"v":true},"required":["v"]}`:                                                                                                  `{"v":1}`,
		`{"type":"object","properties":{"v":{"minimum":1}},"required":["v"]}`:                                                                                         `{"v":"text"}`,
		`{"type":"object","properties":{"v":{"type":"string","pattern":"b+"}},"required":["v"]}`:                                                                      `{"v":"abbc"}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"$ref":"#"}}}}`:                                                                                  `{"l":[{"l":[]}]}`,
		`{"type":"object","properties":{"a":{}},"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`:                                                     `{"a":1,"b":2}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"minProperties":2}`:                                                                                   `{"a":1,"b":2}`,
		`{"type":"object","properties":{"v":{"type":"string","minLength":3000}},"required":["v"]}`:                                                                    `{"v":"` + strings.Repeat("x", 3000) + `"}`,
		`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"integer"}]}},"type":"object","properties":{"v":{"$ref":"#/$defs/a"}}}`:                                 `{"v":1}`,
	} {
		s := mustCompile(t, schema)
		checkSafe(t, schema, s.format)
		n, err := parseNode([]byte(answer), false)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(schema, "$defs") { // the library refuses to run round in a circle; what is sent must not be one
			if strings.Contains(string(s.format), `$defs`) {
				t.Errorf("sent a definition that leads back to itself: %s", s.format)
			}
			continue
		}
		if reasons := s.validate(n); reasons != nil {
			t.Fatalf("%s: the test's own answer is refused: %v", schema, reasons)
		}
		if reasons := mustCompile(t, string(closed(t, s.format))).validate(n); reasons != nil {
			t.Errorf("%s: what is sent, %s, refuses %.60s: %v", schema, s.format, answer, reasons)
		}
	}
}

func TestFormatKeepsOrder(t *testing.T) {
	s := mustCompile(t, `{"required":["a","z"],"type":"object","properties":{"z":{"type":"boolean"},"m":{"type":"null"},"a":{"type":"integer"}}}`)
	z, m, a := strings.Index(string(s.format), `"z":`), strings.Index(string(s.format), `"m":`), strings.Index(string(s.format), `"a":`)
	if z < 0 || z > m || m > a {
		t.Errorf("the order of properties is lost: %s", s.format)
	}
}

// Measured: 120 optional keys of 65 bytes make a grammar of 43 kB, which Ollama cuts off and cannot parse.
func TestFormatBoundsTheGrammar(t *testing.T) {
	properties := object()
	for i := range 120 {
		name := strings.Repeat("x", 62) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		properties.members = append(properties.members, member{name, object(member{"type", text("boolean")})})
	}
	s := mustCompile(t, string(object(member{"type", text("object")}, member{"properties", properties}).encode()))
	if strings.Contains(string(s.format), "xxx") {
		t.Errorf("a grammar that is too large is sent: %d bytes of schema", len(s.format))
	}
}

// Bounds that stand alone: what the converter of 0.17.4 spells right is sent as it is, the rest is lowered or left out.
func TestFormatOfOneBound(t *testing.T) {
	for bounds, want := range map[string]string{
		`"minimum":0`: `"minimum":0`, `"minimum":9`: `"minimum":9`, `"minimum":10`: `"minimum":10`, `"minimum":115`: `"minimum":115`, `"minimum":-1000`: `"minimum":-1000`,
		`"minimum":100`: `"minimum":99`, `"minimum":105`: `"minimum":99`, `"minimum":1900`: `"minimum":1899`, `"minimum":11052`: `"minimum":9999`,
		`"minimum":25052`: `"minimum":24999`, `"exclusiveMinimum":1000`: `"minimum":999`, `"minimum":1000,"maximum":2000`: `"minimum":1000,"maximum":2000`,
		`"maximum":12`: `"maximum":12`, `"maximum":0`: `"maximum":0`, `"maximum":-1`: ``, `"minimum":-9,"maximum":-1`: `"minimum":-9,"maximum":-1`,
		`"minimum":1e30`: ``,
	} {
		if want != "" {
			want = "," + want
		}
		s := mustCompile(t, `{"type":"integer",`+bounds+`}`)
		checkSafe(t, bounds, s.format)
		if got := string(s.format); got != `{"type":"integer"`+want+`}` {
			t.Errorf("%s: %s", bounds, got)
		}
	}
}

// Names and values that the converter gets wrong, as its source shows.
func TestFormatLeavesOutWhatTheConverterGetsWrong(t *testing.T) {
	long := strings.Repeat("é", 150)
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"":{"type":"integer"}}}`:                                      `{"type":"object"}`,
		`{"type":"object","properties":{"$ref":{"type":"integer"}}}`:                                  `{"type":"object"}`,
		`{"type":"object","properties":{"*":{"type":"integer"}}}`:                                     `{"type":"object"}`,
		`{"type":"object","properties":{"` + long + `":{"type":"integer"}}}`:                          `{"type":"object"}`,
		`{"type":"object","properties":{"a]":{"type":"integer"}},"additionalProperties":true}`:        `{"type":"object"}`,
		`{"type":"object","properties":{"a]":{"type":"integer"}}}`:                                    `{"type":"object","properties":{"a]":{"type":"integer"}}}`,
		`{"type":"number","const":0.1234567890123456789}`:                                             `{"type":"number"}`,
		`{"type":"number","enum":[1e300,1e301]}`:                                                      `{"type":"number"}`,
		`{"type":"integer","enum":[9223372036854775807,1]}`:                                           `{"enum":[9223372036854775807,1]}`,
		`{"const":{"$ref":"#/x"}}`:                                                                    string(anything().encode()),
		`{"$ref":"#/$defs/a-b","$defs":{"a-b":{"type":"integer"},"a_b":{"type":"string"}}}`:           `{"$ref":"#/$defs/type1","$defs":{"type1":{"type":"integer"}}}`,
		`{"type":"object","properties":{"v":{"type":"integer"},"w":{"$ref":"#/properties/v"}}}`:       `{"type":"object","properties":{"v":{"type":"integer"},"w":{"$ref":"#/$defs/type1"}},"$defs":{"type1":{"type":"integer"}}}`,
		`{"$id":"https://example.com/a","type":"object","properties":{"v":{"$id":"b","$ref":"#/x"}}}`: ``,
	} {
		s, err := Compile(json.RawMessage(schema))
		if err != nil {
			if want != "" {
				t.Errorf("%.80s: %v", schema, err)
			}
			continue
		}
		checkSafe(t, schema, s.format)
		if string(s.format) != want {
			t.Errorf("%.80s: %s", schema, s.format)
		}
	}
}

// A union whose alternatives begin alike, within itself, doubles what a server follows with every level.
func TestFormatBoundsAmbiguity(t *testing.T) {
	tree := func(left, right string) string {
		return `{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[{"type":"integer"},` + left + `,` + right + `]}}}`
	}
	node := func(first, other string) string {
		return `{"type":"object","properties":{` + first + `,"kid":{"$ref":"#/$defs/n"},"` + other + `":{"type":"null"}},"required":["` + strings.Split(first, `"`)[1] + `","kid","` + other + `"]}`
	}
	for name, c := range map[string]struct {
		schema string
		sent   bool
	}{
		"a tag tells them apart":      {tree(node(`"op":{"const":"add"}`, "a"), node(`"op":{"const":"neg"}`, "b")), true},
		"the first key tells them":    {tree(node(`"add":{"type":"null"}`, "a"), node(`"neg":{"type":"null"}`, "b")), true},
		"the type tells them":         {tree(`{"type":"array","items":{"$ref":"#/$defs/n"}}`, node(`"neg":{"type":"null"}`, "b")), true},
		"nothing tells them in time":  {tree(node(`"op":{"type":"null"}`, "a"), node(`"op":{"type":"null"}`, "b")), false},
		"two kinds of arrays":         {tree(`{"type":"array","items":{"$ref":"#/$defs/n"}}`, `{"type":"array","minItems":1,"items":{"$ref":"#/$defs/n"}}`), false},
		"a tag that is not the first": {tree(node(`"x":{"type":"null"},"op":{"const":"add"}`, "a"), node(`"x":{"type":"null"},"op":{"const":"neg"}`, "b")), false},
	} {
		s := mustCompile(t, c.schema)
		checkSafe(t, name, s.format)
		if sent := strings.Count(string(s.format), `"$ref"`) > 1; sent != c.sent {
			t.Errorf("%s: sent %t: %s", name, sent, s.format)
		}
	}
}
