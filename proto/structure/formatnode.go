package structure

import (
	"encoding/json"
	"slices"
	"strconv"
)

// grammarSize estimates the bytes of the grammar that llama.cpp writes for a format, on the high side: each rule is
// named after its path, and each optional key makes two rules. Measured: 120 optional keys of 65 bytes make 43 kB.
func grammarSize(n node, path string) int {
	const rule = 60
	size := rule + len(path)
	if v, ok := n.get("enum"); ok {
		size += 2*len(v.encode()) + 4*len(v.items)
	}
	if v, ok := n.get("const"); ok {
		size += 2 * len(v.encode())
	}
	size += 2 * len(n.str("pattern"))
	if n.str("type") == "integer" && (has(n, "minimum") || has(n, "maximum")) {
		size += 600
	}
	required := stringsIn(n, "required")
	properties, _ := n.get("properties")
	_, mixed := n.get("additionalProperties")
	for _, p := range properties.members {
		name := path + "-" + p.key
		size += 3*len(name) + 2*len(text(p.key).encode()) + rule + grammarSize(p.value, name)
		if mixed { // the other keys are spelled out letter by letter, as what they are not
			size += 30 * len(p.key)
		}
		if !slices.Contains(required, p.key) {
			size += 4*len(name) + rule
		}
	}
	for _, key := range []string{"anyOf", "prefixItems"} {
		v, _ := n.get(key)
		for i, e := range v.items {
			name := path + "-" + strconv.Itoa(i)
			size += len(name) + grammarSize(e, name)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if v, ok := n.get(key); ok && v.kind == '{' {
			size += 2*len(path) + rule + grammarSize(v, path+"-item")
		}
	}
	definitions, _ := n.get("$defs")
	for _, d := range definitions.members {
		size += grammarSize(d.value, "ref-defs-"+d.key)
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
