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
