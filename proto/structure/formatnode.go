package structure

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// grammarSize estimates the bytes of the grammar that llama.cpp writes for a format, on the high side: each rule is
// named after its path, and each optional key makes two rules. Measured: 120 optional keys of 65 bytes make 43 kB.
func grammarSize(format node) int {
	const primitives = 1000 // the rules of all types and formats
	definitions, _ := format.get("$defs")
	size := primitives + rulesSize(format, "root")
	for _, d := range definitions.members {
		size += rulesSize(d.value, "ref-defs-"+d.key)
	}
	return size
}

// rulesSize estimates the rules of one schema. What a rule says of others is their names, and around them less than this.
func rulesSize(n node, path string) int {
	const around = 30
	own := len(path) + around
	if values, ok := named(n); ok {
		for _, v := range values {
			own += 2*len(v.encode()) + 5
		}
		return own
	}
	alternatives, isUnion := n.get("anyOf")
	types, _ := n.get("type")
	switch {
	case len(n.members) == 1 && types.kind == 0 && n.str("type") != "" && n.str("type") != "object":
		return 0 // a rule that there is already
	case has(n, "$ref"):
		return own + around
	case isUnion:
		return own + partsSize(alternatives.items, path)
	case types.kind == '[':
		return own + len(types.items)*2*(len(path)+around)
	case has(n, "pattern"):
		return own + 3*len(n.str("pattern")) + strings.Count(n.str("pattern"), "{")*2*own
	case n.str("type") == "integer":
		return own + rangeSize(n)
	}
	tuple, _ := n.get("prefixItems")
	own += partsSize(tuple.items, path)
	if items, ok := n.get("items"); ok {
		own += 2*len(path) + 3*around + rulesSize(items, path+"-item")
	}
	if n.str("type") == "object" {
		own += propertiesSize(n, path)
	}
	return own
}

// rangeSize estimates a range of whole numbers, which is spelled out for each number of digits, digit by digit.
func rangeSize(n node) int {
	size := 60
	for _, key := range []string{"minimum", "maximum"} {
		v, _ := n.get(key)
		digits, _ := v.scalar.(json.Number)
		size += 16 * len(digits) * (len(digits) + 4)
	}
	return size
}

func partsSize(parts []node, path string) int {
	size := 0
	for i, p := range parts {
		name := path + "-tuple-" + strconv.Itoa(i)
		size += len(name) + 10 + rulesSize(p, name)
	}
	return size
}

func propertiesSize(n node, path string) int {
	const pair, rest = 60, 60 // of the rules besides names
	size := 0
	required := stringsIn(n, "required")
	properties, _ := n.get("properties")
	additional, mixed := n.get("additionalProperties")
	mixed = mixed && additional.scalar != false
	for _, p := range properties.members {
		name := path + "-" + p.key
		size += 3*len(name) + 2*len(text(p.key).encode()) + pair + rulesSize(p.value, name)
		if !slices.Contains(required, p.key) {
			size += 4*len(name) + rest
		}
		if mixed { // the other keys are spelled out letter by letter, as what they are not
			size += 30 * len(p.key)
		}
	}
	if mixed {
		size += 8*len(path) + 4*rest + rulesSize(additional, path+"-additional-value")
	}
	return size
}

// mergeObjects puts two object schemas together; where both have a property, the first one's counts.
func mergeObjects(a, b node) node {
	out := without(a, "properties", "required", "type", "additionalProperties")
	out.members = append(out.members, member{"type", text("object")})
	properties, _ := a.get("properties")
	merged := object(properties.members...)
	more, _ := b.get("properties")
	for _, p := range more.members {
		if !has(merged, p.key) {
			merged.members = append(merged.members, p)
		}
	}
	required := list()
	for _, name := range append(stringsIn(a, "required"), stringsIn(b, "required")...) {
		required.items = append(required.items, text(name))
	}
	out.members = append(out.members, member{"properties", merged}, member{"required", required})
	if v, ok := a.get("additionalProperties"); ok {
		out.members = append(out.members, member{"additionalProperties", v})
	}
	return out
}

func has(n node, key string) bool {
	_, ok := n.get(key)
	return ok
}

// with returns a copy in which key has another value.
func with(n node, key string, value node) node {
	out := object(slices.Clone(n.members)...)
	for i := range out.members {
		if out.members[i].key == key {
			out.members[i].value = value
		}
	}
	return out
}

// without returns a copy that lacks the keys.
func without(n node, keys ...string) node {
	out := object()
	for _, m := range n.members {
		if !slices.Contains(keys, m.key) {
			out.members = append(out.members, m)
		}
	}
	return out
}

// stringsIn returns the different strings of a list, in order.
func stringsIn(n node, key string) []string {
	v, _ := n.get(key)
	var out []string
	for _, e := range v.items {
		if s, ok := e.scalar.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// small returns a whole number from 0 to limit.
func small(n node, key string, limit int64) (int, bool) {
	v, _ := n.get(key)
	num, ok := v.scalar.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(num.String(), 10, 64)
	if err != nil || i < 0 || i > limit {
		return 0, false
	}
	return int(i), true
}

func typeAllows(t, v node) bool {
	if t.kind == '[' {
		return slices.ContainsFunc(t.items, func(one node) bool { return typeAllows(one, v) })
	}
	name, _ := t.scalar.(string)
	switch s := v.scalar.(type) {
	case string:
		return name == "string"
	case json.Number:
		_, err := strconv.ParseInt(s.String(), 10, 64)
		return name == "number" || name == "integer" && err == nil
	case bool:
		return name == "boolean"
	}
	return v.kind == '{' && name == "object" || v.kind == '[' && name == "array" || v.kind == 0 && name == "null"
}
