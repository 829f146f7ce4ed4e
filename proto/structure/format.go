package structure

import (
	"fmt"
	"slices"
)

// formatFor returns what of a schema goes out as Ollama's format: a new schema built from the whitelist of what Ollama
// 0.17.4 was measured to enforce without harm. Everything else is dropped, so that the format accepts at least one answer
// that the schema accepts, and the full schema decides afterwards.
func formatFor(tree node) node {
	format, _ := formatWith(tree, func(format node) node { return format })
	return format
}

// formatWith returns the format after a change that must keep it within the bounds, too; any value, and false, when nothing does.
func formatWith(tree node, change func(format node) node) (format node, ok bool) {
	for depth := maxFormatDepth; depth > 0; depth /= 2 {
		l := newLoosener(tree, depth)
		out := l.loosen(tree, depth)
		if len(l.order) > 0 {
			out.members = append(out.members, member{"$defs", l.definitions()})
		}
		out = change(out)
		if l.nodes > 0 && l.repetitions <= maxRepetitions && grammarSize(out) <= max(maxGrammar, grammarPerByte*len(out.encode())) && !leftRecursive(l.defs) && ambiguity(out) <= maxAmbiguity {
			return out, true
		}
	}
	return anything(), false
}

// Bounds on what goes out. Ollama cuts a grammar at max(32 KiB, 4 × schema) and then fails to parse it.
const (
	maxFormatDepth = 64
	maxGrammar     = 28 << 10 // bytes, by the estimate of grammarSize
	grammarPerByte = 3        // of the format; 4 is the server's own bound
	maxNodes       = 20000    // schemas looked at; references that are merged multiply them
	maxName        = 200      // bytes of a property's name; the converter's regular expressions recurse over it
	maxLength      = 2000     // characters of a string; 2001 kills the runner
	maxItems       = 2000     // items of an array; 2002 kills the runner
	maxEnum        = 1000     // values; 2000 take 0.4 s a token
	maxRepetitions = 40000    // sum of all such bounds; ours, newer llama.cpp is known to fail on sums
	maxInteger     = 1e15     // a bound of a whole number
)

// loosener builds the format.
type loosener struct {
	root        node
	depth       int               // levels kept
	names       map[string]string // of definitions that are referred to, by the reference
	defs        map[string]node   // by name
	order       []string          // of their first use
	repetitions int               // sum of all bounds on lengths and items
	nodes       int               // schemas that may still be looked at
	cut         bool              // something lies deeper
	movedBase   bool              // a schema within has an $id: what a reference means is not in its text
}

func newLoosener(tree node, depth int) *loosener {
	inner := without(tree, "$id")
	return &loosener{root: tree, depth: depth, names: map[string]string{}, defs: map[string]node{}, nodes: maxNodes, movedBase: hasID(inner)}
}

// tooDeep says whether a schema has more levels than a format may have.
func tooDeep(tree node) bool {
	l := newLoosener(tree, maxFormatDepth)
	l.loosen(tree, maxFormatDepth)
	return l.cut
}

// anything is any JSON value. An empty schema would not do: Ollama reads it as "an object".
func anything() node {
	return object(member{"type", list(text("object"), text("array"), text("string"), text("number"), text("boolean"), text("null"))})
}

func (l *loosener) definitions() node {
	out := object()
	for _, name := range l.order {
		out.members = append(out.members, member{name, l.defs[name]})
	}
	return out
}

// loosen returns the safe part of one schema.
func (l *loosener) loosen(s node, depth int) node {
	if l.nodes--; depth == 0 || s.kind != '{' || l.nodes <= 0 {
		l.cut = l.cut || depth == 0 && len(s.members) > 0
		return anything()
	}
	if has(s, "$ref") {
		return l.reference(s.str("$ref"))
	}
	if v, ok := s.get("const"); ok && exact(v) {
		return object(member{"const", v})
	}
	if v, ok := s.get("enum"); ok && slices.IndexFunc(v.items, func(one node) bool { return !exact(one) }) < 0 {
		return enum(s, v)
	}
	if merged, ok := l.mergeAll(s); ok {
		return l.loosen(merged, depth-1)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if v, ok := s.get(key); ok && v.kind == '[' && len(v.items) > 0 {
			return l.union(s, key, v.items, depth)
		}
	}
	return l.typed(s, depth)
}

func (l *loosener) typed(s node, depth int) node {
	t, _ := s.get("type")
	if t.kind == '[' {
		var alternatives []node
		for _, one := range t.items {
			alternatives = append(alternatives, with(s, "type", one))
		}
		if len(alternatives) == 1 {
			return l.loosen(alternatives[0], depth)
		}
		return l.union(object(), "anyOf", alternatives, depth)
	}
	switch name, _ := t.scalar.(string); {
	case name == "object", name == "" && has(s, "properties"):
		return l.object(s, depth)
	case name == "array", name == "" && (has(s, "prefixItems") || has(s, "items")):
		return l.array(s, depth)
	case name == "string":
		return l.str(s)
	case name == "integer":
		return integer(s)
	case name == "number", name == "boolean", name == "null":
		return object(member{"type", t})
	default:
		return anything()
	}
}

// reference keeps a $ref into the same schema, under a name of ours: the converter makes one rule of names that differ in
// punctuation only, and knows neither "#" nor anchors. Siblings of the $ref would be ignored.
func (l *loosener) reference(ref string) node {
	target, ok := at(l.root, ref)
	if !ok || l.movedBase {
		return anything()
	}
	name, known := l.names[ref]
	if !known {
		name = fmt.Sprintf("type%d", len(l.names)+1)
		l.names[ref] = name
		l.order = append(l.order, name)
		l.defs[name] = anything() // so that a reference back finds it
		l.defs[name] = l.loosen(target, l.depth)
	}
	return object(member{"$ref", text("#/$defs/" + name)})
}

func (l *loosener) union(s node, key string, alternatives []node, depth int) node {
	base := without(s, "anyOf", "oneOf")
	var out []node
	for _, a := range alternatives {
		if has(base, "properties") && a.kind == '{' && !has(a, "$ref") {
			a = mergeObjects(base, a)
		}
		out = append(out, l.loosen(a, depth-1))
	}
	if key == "oneOf" && len(out) == 1 {
		return out[0]
	}
	return object(member{"anyOf", list(out...)})
}

// mergeAll turns an allOf of plain objects and what stands beside it into one object; Ollama's own merge makes every
// key required and loses the siblings. An allOf of anything else is dropped.
func (l *loosener) mergeAll(s node) (node, bool) {
	all, ok := s.get("allOf")
	if !ok {
		return s, false
	}
	merged := without(s, "allOf")
	for _, part := range all.items {
		if target, ok := l.resolve(part); ok && (has(target, "properties") || target.str("type") == "object") {
			merged = mergeObjects(merged, target)
		}
	}
	return merged, true
}

// resolve follows references a few steps.
func (l *loosener) resolve(s node) (node, bool) {
	for range 8 {
		if !has(s, "$ref") {
			return s, s.kind == '{'
		}
		var ok bool
		if s, ok = at(l.root, s.str("$ref")); !ok || l.movedBase {
			return node{}, false
		}
	}
	return node{}, false
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
