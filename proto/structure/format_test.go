package structure

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// counts is what a real Ollama answered under one schema.
type counts struct {
	Conforming, Violating, Truncated int
	NotJSON                          int `json:"not_json"`
	Errors                           map[string]int
}

type recording struct {
	Name   string
	Schema json.RawMessage
	Old    *counts `json:"old_engine"`
	New    *counts `json:"new_engine"`
	Chat   *counts `json:"chat_old_engine"`
}

// text returns the schema; one was recorded as a string, because it has a key twice.
func (r recording) text() string {
	var s string
	if json.Unmarshal(r.Schema, &s) == nil {
		return s
	}
	return string(r.Schema)
}

func (r recording) runs() []*counts {
	return slices.DeleteFunc([]*counts{r.Old, r.New, r.Chat}, func(c *counts) bool { return c == nil })
}

func (r recording) harmful() bool {
	return slices.ContainsFunc(r.runs(), func(c *counts) bool { return len(c.Errors) > 0 || c.NotJSON > 0 })
}

func (r recording) enforced() bool {
	return !slices.ContainsFunc(r.runs(), func(c *counts) bool {
		return c.Conforming == 0 || c.Violating+c.Truncated+c.NotJSON+len(c.Errors) > 0
	})
}

func recordings(t *testing.T) []recording {
	all := lines[recording](t, "testdata/schemas-ollama-0.17.4.jsonl")
	if len(all) != 130 {
		t.Fatalf("%d recordings, want 130", len(all))
	}
	return all
}

// What made a real Ollama answer with an error, die, hang or write invalid JSON is never sent.
func TestFormatNeverHarms(t *testing.T) {
	harmful := 0
	for _, r := range recordings(t) {
		s, err := Compile(json.RawMessage(r.text()))
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) {
				t.Errorf("%s: error without a place: %v", r.Name, err)
			}
			continue // nothing is sent at all
		}
		checkSafe(t, r.Name, s.format)
		if !r.harmful() {
			continue
		}
		harmful++
		if string(s.format) == compact(t, json.RawMessage(r.text())) {
			t.Errorf("%s: sent unchanged: %s", r.Name, s.format)
		}
	}
	if harmful < 15 {
		t.Errorf("only %d harmful recordings were usable schemas; the test looks at nothing", harmful)
	}
}

// checkSafe holds a format to the table of what was measured as enforced (research on Ollama 0.17.4), independently of
// how it was made.
func checkSafe(t *testing.T, name string, format json.RawMessage) {
	t.Helper()
	tree, err := parseNode(format, false)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var walk func(n node, at string)
	walk = func(n node, at string) {
		fail := func(why string) { t.Errorf("%s: %s at %s in %s", name, why, at, format) }
		if n.kind != '{' || len(n.members) == 0 {
			fail("not a schema object with members")
			return
		}
		kind := n.str("type")
		for _, m := range n.members {
			switch m.key {
			case "type", "$defs", "const", "properties", "required", "additionalProperties":
			case "$ref":
				_, ok := strings.CutPrefix(m.value.scalar.(string), "#/$defs/")
				_, found := tree.get("$defs")
				if !ok || !found || len(n.members) > 2 {
					fail("a reference")
				}
			case "enum":
				if len(m.value.items) == 0 || len(n.members) > 1 {
					fail("an enum")
				}
			case "anyOf", "prefixItems":
				if len(m.value.items) == 0 || has(n, "items") || has(n, "properties") {
					fail(m.key)
				}
			case "items":
				if kind != "array" || m.value.kind != '{' {
					fail("items")
				}
			case "minItems", "maxItems":
				if v, ok := small(n, m.key, 2001); !ok || v < 0 || !has(n, "items") {
					fail(m.key)
				}
			case "minLength", "maxLength":
				if _, ok := small(n, m.key, 2000); !ok || kind != "string" || has(n, "pattern") || has(n, "format") {
					fail(m.key)
				}
			case "minimum", "maximum":
				if kind != "integer" || strings.ContainsAny(m.value.scalar.(json.Number).String(), ".eE") {
					fail(m.key)
				}
			case "pattern":
				p := m.value.scalar.(string)
				if kind != "string" || !strings.HasPrefix(p, "^") || !strings.HasSuffix(p, "$") || len(p) < 3 ||
					strings.Contains(p, `\`) || strings.Contains(p, "(?") || strings.Contains(p, "[^") {
					fail("pattern")
				}
			case "format":
				if !slices.Contains([]string{"date", "time", "date-time", "uuid"}, n.str("format")) || kind != "string" {
					fail("format")
				}
			default:
				fail("keyword " + m.key)
			}
		}
		for _, pair := range [][2]string{{"minLength", "maxLength"}, {"minItems", "maxItems"}} {
			low, okLow := small(n, pair[0], 1e6)
			high, okHigh := small(n, pair[1], 1e6)
			if okLow && okHigh && low > high {
				fail(pair[0] + " above " + pair[1])
			}
		}
		for _, group := range []string{"properties", "$defs"} {
			members, _ := n.get(group)
			for _, m := range members.members {
				walk(m.value, at+"/"+m.key)
			}
		}
		for _, group := range []string{"anyOf", "prefixItems"} {
			items, _ := n.get(group)
			for _, i := range items.items {
				walk(i, at+"/"+group)
			}
		}
		for _, key := range []string{"items", "additionalProperties"} {
			if v, ok := n.get(key); ok && v.kind != 0 {
				walk(v, at+"/"+key)
			}
		}
	}
	walk(tree, "")
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
	for _, r := range recordings(t) {
		s, err := Compile(json.RawMessage(r.text()))
		if err != nil || !r.enforced() || except[r.Name] != "" {
			if err != nil && r.enforced() && except[r.Name] == "" {
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
