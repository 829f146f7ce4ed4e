package structuretest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Schema makes a schema of bytes, the same of the same. Most are valid, odd, and near some edge of what a server stands.
func Schema(entropy []byte) json.RawMessage {
	d := &dice{left: entropy}
	s := d.schema(4)
	if d.roll(2) == 0 {
		var defs []string
		for _, name := range names[:3] {
			defs = append(defs, quoted(name)+":"+d.schema(3))
		}
		group := d.pick("$defs", "definitions")
		s = strings.TrimSuffix(s, "}") + "," + quoted(group) + ":{" + strings.Join(defs, ",") + "}}"
		s = strings.Replace(s, "{,", "{", 1)
	}
	return json.RawMessage(s)
}

type dice struct{ left []byte }

// roll returns 0 to n-1, and 0 when nothing is left, which ends every choice.
func (d *dice) roll(n int) int {
	if len(d.left) == 0 {
		return 0
	}
	at := int(d.left[0])
	d.left = d.left[1:]
	return at % n
}

func (d *dice) pick(from ...string) string { return from[d.roll(len(from))] }

var names = []string{"x", "a_b", "a-b", "v", "n", "root", "space", "string", "", "*", "$ref", "a b", "q\"", "b\\s", "é", "日本", "]", "^", "-",
	"n\nl", "\x01", "properties", "a/b", "~", strings.Repeat("long", 15), strings.Repeat("é", 150), "ref", "defs", "x-kv", "item", "additional"}

var numbers = []string{"0", "1", "2", "3", "5", "9", "10", "99", "100", "105", "1000", "1001", "-1", "-3", "-5", "-10", "-105", "1.5", "-0.5", "1e2", "2000", "2001", "2002",
	"999999999999999", "1000000000000000", "9999999999999999", "9223372036854775807", "123456789012345678901234567890", "1e400", "0.1234567890123456789", "1e-300", "-0.0"}

var patterns = []string{`^[a-z]{3}-[0-9]{2}$`, `^s[0-9]{1,2}$`, `^(foo|bar)$`, `^\d{3}$`, `^\w+$`, `^(?:foo|bar)$`, `^.{2,4}$`, `^[^x]{3}$`, ``, `[a-z]+`, `^ab`, `^a\.b$`, `^(a*)*$`,
	`^(a|b?)+$`, `^a{5,2}$`, `^a{1,3000}$`, `^a{0}$`, `^[a-z]*$`, `^a?$`, `^a{0,3}$`, `^(a?b?)$`, `^[a-z]{0,1000}$`, `^(a{0})b$`, `^a{2,}$`, `^([a-z]{1,30}-){1,30}$`, `^(a+)+b$`, `^[a-z0-9_./-]{1,48}$`, `^[]a]$`, `^[a\-z]$`, `^a|b$`, `^(a|b)(c|d)*$`,
	`^"$`, `^/$`, `^#$`, `^a{1}{2}$`, `^a??$`, `^()$`, `^(|a)$`, `^[ -~]{3}$`, `^é+$`, `^\$[0-9]+$`, `^[.*+?(){}|$]+$`, `^a{1,1000}b{1,1000}$`, `^((((a))))+$`, `^~x<'>!$`}

var values = []string{`"a"`, `"b"`, `""`, `1`, `1.0`, `1e400`, `0.1234567890123456789`, `9223372036854775808`, `true`, `null`, `{"b":1,"a":[2]}`, `{"$ref":"#/x"}`, `[]`, `"é\"\\x\n"`, `"日本"`, `"\u0000"`,
	`"\ud83d"`, `"` + strings.Repeat("y", 3000) + `"`, `-0.0`, `"$"`, `{"":{}}`}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string always marshals
	return string(text)
}

func (d *dice) schema(depth int) string {
	var parts []string
	if depth <= 0 || len(d.left) == 0 {
		return d.pick(`{}`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"$ref":"#/$defs/x"}`, `true`)
	}
	add := func(key, value string) { parts = append(parts, quoted(key)+":"+value) }
	kind := d.pick("object", "array", "string", "integer", "number", "object", "union", "values", "reference", "boolean", "null", "types", "")
	switch kind {
	case "union":
		add(d.pick("anyOf", "oneOf", "allOf"), d.list(depth))
	case "values":
		add("enum", d.values())
	case "reference":
		add("$ref", quoted(d.pick("#/$defs/x", "#/$defs/a_b", "#/$defs/a-b", "#", "#/definitions/x", "#/properties/v", "#/items", "#/$defs/none", "#x", "x.json")))
	case "types":
		add("type", d.pick(`["string","null"]`, `["object","array"]`, `["integer","number"]`, `["object"]`))
	case "":
	default:
		add("type", quoted(kind))
	}
	for range d.roll(4) {
		d.keyword(depth, kind, add)
	}
	switch kind {
	case "object":
		d.object(depth, add)
	case "array":
		add(d.pick("items", "prefixItems", "contains"), d.either(depth))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// keyword adds one that suits the kind, or at times any.
func (d *dice) keyword(depth int, kind string, add func(key, value string)) {
	if d.roll(5) == 0 {
		kind = d.pick("string", "integer", "array", "object", "union", "else")
	}
	switch kind {
	case "string":
		switch d.roll(3) {
		case 0:
			add("pattern", quoted(patterns[d.roll(len(patterns))]))
		case 1:
			add("format", quoted(d.pick("date", "time", "date-time", "uuid", "email", "uri", "wibble", "uuid4")))
		default:
			add(d.pick("minLength", "maxLength"), d.number())
		}
	case "integer", "number":
		add(d.pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), d.number())
	case "array":
		add(d.pick("minItems", "maxItems"), d.number())
	case "object":
		add(d.pick("additionalProperties", "propertyNames", "not", "if", "then", "additionalProperties"), d.pick("true", "false", d.schema(depth-1)))
	case "union":
		add(d.pick("anyOf", "oneOf", "allOf"), d.list(depth))
	default:
		add(d.pick("description", "title", "const", "uniqueItems", "minProperties", "patternProperties"), d.pick(`"d"`, `"$ref"`, "true", "2", `{"^k":{}}`, values[d.roll(len(values))]))
	}
}

func (d *dice) object(depth int, add func(key, value string)) {
	var properties, required []string
	for range d.roll(5) {
		name := names[d.roll(len(names))]
		properties = append(properties, quoted(name)+":"+d.schema(depth-1))
		if d.roll(3) > 0 {
			required = append(required, quoted(name))
		}
	}
	if d.roll(40) == 1 {
		for i := range 100 + d.roll(300) {
			properties = append(properties, fmt.Sprintf(`"p%d":{"type":"boolean"}`, i))
		}
	}
	add("properties", "{"+strings.Join(properties, ",")+"}")
	if len(required) > 0 {
		add("required", "["+strings.Join(unique(required), ",")+"]")
	}
}

func unique(all []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			out = append(out, s)
		}
		seen[s] = true
	}
	return out
}

func (d *dice) either(depth int) string {
	if d.roll(4) == 1 {
		return d.list(depth)
	}
	return d.schema(depth - 1)
}

func (d *dice) list(depth int) string {
	schemas := []string{d.schema(depth - 1)}
	for range d.roll(4) {
		schemas = append(schemas, d.schema(depth-1))
	}
	return "[" + strings.Join(schemas, ",") + "]"
}

func (d *dice) values() string {
	var out []string
	for range d.roll(4) {
		out = append(out, values[d.roll(len(values))])
	}
	if d.roll(20) == 1 {
		for i := range 100 + 5*d.roll(256) {
			out = append(out, fmt.Sprintf("%q", fmt.Sprintf("id-%d", i)))
		}
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (d *dice) number() string { return numbers[d.roll(len(numbers))] }
