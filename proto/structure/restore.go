package structure

import (
	"slices"
	"strings"
)

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
