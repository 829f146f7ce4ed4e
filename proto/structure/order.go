package structure

import (
	"encoding/json"
	"slices"
	"strings"
)

// Ordered returns a format whose names sort in the order of the schema, for servers that sort properties by name, and what
// maps an answer back: to be applied to the raw reply, before Extract. "name" and "age" become "a_name" and "b_age"; an
// object that is sorted already keeps its names. What does not follow the format comes back as it is, for Extract to judge.
func (s *Schema) Ordered() (format json.RawMessage, restore func(answer json.RawMessage) json.RawMessage) {
	var meant node
	sent, ok := formatWith(s.tree, func(format node) node {
		meant = format
		return sorted(format)
	})
	if !ok {
		return sent.encode(), func(answer json.RawMessage) json.RawMessage { return answer }
	}
	return sent.encode(), func(answer json.RawMessage) json.RawMessage {
		value, err := parseNode(answer, false)
		if err != nil {
			return answer
		}
		r := restorer{steps: restoreSteps*len(answer) + 1024}
		r.sent, _ = sent.get("$defs")
		r.meant, _ = meant.get("$defs")
		restored, ok := r.value(sent, meant, value)
		if !ok {
			return answer
		}
		return restored.encode()
	}
}

// sorted renames the properties of each object whose names do not sort in the order in which they stand.
func sorted(format node) node {
	out := object()
	for _, m := range format.members {
		switch m.key {
		case "const", "enum":
		case "properties", "$defs":
			inner := object()
			for _, p := range m.value.members {
				inner.members = append(inner.members, member{p.key, sorted(p.value)})
			}
			m.value = inner
		default:
			m.value = sortedPart(m.value)
		}
		out.members = append(out.members, m)
	}
	return prefixed(out)
}

// sortedPart is what a keyword holds: a schema, a list of them, or something else.
func sortedPart(v node) node {
	switch v.kind {
	case '{':
		return sorted(v)
	case '[':
		out := list()
		for _, i := range v.items {
			out.items = append(out.items, sortedPart(i))
		}
		return out
	}
	return v
}

func prefixed(s node) node {
	properties, ok := s.get("properties")
	byName := func(a, b member) int { return strings.Compare(a.key, b.key) }
	if !ok || slices.IsSortedFunc(properties.members, byName) {
		return s
	}
	names := map[string]string{}
	renamed, required := object(), list()
	for i, p := range properties.members {
		names[p.key] = prefix(i, len(properties.members)) + p.key
		renamed.members = append(renamed.members, member{names[p.key], p.value})
	}
	for _, name := range stringsIn(s, "required") {
		required.items = append(required.items, text(names[name]))
	}
	return with(with(s, "properties", renamed), "required", required)
}

// prefix is that of property i of n: letters of equal number and an underscore.
func prefix(i, n int) string {
	const letters = 26
	width := 1
	for most := letters; most < n; most *= letters {
		width++
	}
	p := make([]byte, width, width+1)
	for at := width - 1; at >= 0; at-- {
		p[at] = 'a' + byte(i%letters)
		i /= letters
	}
	return string(append(p, '_'))
}

// restoreSteps bounds the mapping back, in steps a byte: alternatives within alternatives are tried one after the other.
const restoreSteps = 64

// restorer maps an answer to one format back to another that differs from it in the names of properties alone.
type restorer struct {
	sent, meant node // the definitions of both
	steps       int  // left
}

// value maps a value back that follows what was sent, as far as its names and types go; false for one that does not.
func (r *restorer) value(sent, meant, v node) (node, bool) {
	if r.steps--; r.steps < 0 {
		return v, false
	}
	if ref := sent.str("$ref"); ref != "" {
		name := strings.TrimPrefix(ref, "#/$defs/")
		sent, _ = r.sent.get(name)
		meant, _ = r.meant.get(name)
		return r.value(sent, meant, v)
	}
	if alternatives, ok := sent.get("anyOf"); ok {
		same, _ := meant.get("anyOf")
		for i, one := range alternatives.items {
			if out, ok := r.value(one, same.items[i], v); ok {
				return out, true
			}
		}
		return v, false
	}
	if values, ok := named(sent); ok {
		return v, slices.ContainsFunc(values, func(one node) bool { return equal(one, v) })
	}
	if t, ok := sent.get("type"); ok && !typeAllows(t, v) {
		return v, false
	}
	switch v.kind {
	case '{':
		return r.object(sent, meant, v)
	case '[':
		return r.array(sent, meant, v)
	}
	return v, true
}

func (r *restorer) object(sent, meant, v node) (node, bool) {
	properties, closed := sent.get("properties")
	names, _ := meant.get("properties")
	additional, open := sent.get("additionalProperties")
	others, _ := meant.get("additionalProperties")
	out := object()
	for _, m := range v.members {
		var ok bool
		switch i := slices.IndexFunc(properties.members, func(p member) bool { return p.key == m.key }); {
		case i >= 0:
			m.key = names.members[i].key
			m.value, ok = r.value(properties.members[i].value, names.members[i].value, m.value)
		case additional.kind == '{':
			m.value, ok = r.value(additional, others, m.value)
		default:
			ok = !closed || open && additional.scalar == true
		}
		if !ok {
			return v, false
		}
		out.members = append(out.members, m)
	}
	missing := slices.ContainsFunc(stringsIn(sent, "required"), func(name string) bool { return !has(v, name) })
	return out, !missing
}

func (r *restorer) array(sent, meant, v node) (node, bool) {
	tuple, isTuple := sent.get("prefixItems")
	same, _ := meant.get("prefixItems")
	item, _ := sent.get("items")
	sameItem, _ := meant.get("items")
	out := list()
	for i, one := range v.items {
		var ok bool
		switch {
		case isTuple && i < len(tuple.items):
			one, ok = r.value(tuple.items[i], same.items[i], one)
		case item.kind == '{':
			one, ok = r.value(item, sameItem, one)
		default:
			ok = !isTuple
		}
		if !ok {
			return v, false
		}
		out.items = append(out.items, one)
	}
	return out, true
}

// equal says whether two values are the same, in whatever order their keys are and however a number is written.
func equal(a, b node) bool {
	if a.kind != b.kind || len(a.members) != len(b.members) || len(a.items) != len(b.items) {
		return false
	}
	for _, m := range a.members {
		if other, ok := b.get(m.key); !ok || !equal(m.value, other) {
			return false
		}
	}
	for i, one := range a.items {
		if !equal(one, b.items[i]) {
			return false
		}
	}
	left, isNumber := rationalOf(a)
	right, isNumberToo := rationalOf(b)
	if isNumber && isNumberToo {
		return left.Cmp(right) == 0
	}
	return a.scalar == b.scalar
}
