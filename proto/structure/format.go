package structure

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// formatFor returns what of a schema goes out as Ollama's format: a new schema built from the whitelist of what Ollama
// 0.17.4 was measured to enforce without harm. Everything else is dropped, so that the format accepts at least one answer
// that the schema accepts (unless there is none), and the full schema decides afterwards. nil sends no format at all.
func formatFor(tree node) json.RawMessage {
	for depth := maxFormatDepth; depth > 0; depth /= 2 {
		l := loosener{root: tree, depth: depth, defs: map[string]node{}}
		out := l.loosen(tree, depth)
		if len(l.defs) > 0 {
			out.members = append(out.members, member{"$defs", l.definitions()})
		}
		if grammarSize(out, "") <= maxGrammar && l.repetitions <= maxRepetitions && !leftRecursive(l.defs) {
			return out.encode()
		}
	}
	return anything().encode()
}

// Bounds on what goes out. Ollama cuts a grammar at max(32 KiB, 4 × schema) and then fails to parse it.
const (
	maxFormatDepth = 64
	maxGrammar     = 24 << 10 // bytes, by the estimate of grammarSize
	maxLength      = 2000     // characters of a string; 2001 kills the runner
	maxItems       = 2000     // items of an array; 2002 kills the runner
	maxEnum        = 1000     // values; 2000 take 0.4 s a token
	maxRepetitions = 40000    // sum of all such bounds; ours, newer llama.cpp is known to fail on sums
	maxInteger     = 1e15     // a grammar writes at most 16 digits
)

// loosener builds the format.
type loosener struct {
	root        node
	depth       int             // levels kept
	defs        map[string]node // definitions that are referred to, by name
	order       []string        // of their first use
	repetitions int             // sum of all bounds on lengths and items
	cut         bool            // something lies deeper
}

// tooDeep says whether a schema has more levels than a format may have.
func tooDeep(tree node) bool {
	l := loosener{root: tree, depth: maxFormatDepth, defs: map[string]node{}}
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
	if depth == 0 || s.kind != '{' {
		l.cut = l.cut || len(s.members) > 0
		return anything()
	}
	if ref, ok := s.get("$ref"); ok {
		return l.reference(ref)
	}
	if v, ok := s.get("const"); ok {
		return object(member{"const", v})
	}
	if v, ok := s.get("enum"); ok {
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

// reference keeps a $ref to a definition of the same schema; its siblings would be ignored. Everything else is dropped.
func (l *loosener) reference(ref node) node {
	path, _ := ref.scalar.(string)
	for _, group := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(path, "#/"+group+"/")
		if !ok || !plainName(name) {
			continue
		}
		definitions, _ := l.root.get(group)
		target, ok := definitions.get(name)
		key := name
		if group == "definitions" && hasIn(l.root, "$defs", name) {
			key = "definitions-" + name
		}
		if !ok {
			return anything()
		}
		l.define(key, target)
		return object(member{"$ref", text("#/$defs/" + key)})
	}
	return anything()
}

func (l *loosener) define(key string, target node) {
	if _, done := l.defs[key]; done {
		return
	}
	l.order = append(l.order, key)
	l.defs[key] = anything() // so that a reference back finds it
	l.defs[key] = l.loosen(target, l.depth)
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

// resolve follows references to definitions a few steps.
func (l *loosener) resolve(s node) (node, bool) {
	for range 8 {
		path := s.str("$ref")
		if path == "" {
			return s, s.kind == '{'
		}
		group, name, _ := strings.Cut(strings.TrimPrefix(path, "#/"), "/")
		definitions, _ := l.root.get(group)
		var ok bool
		if s, ok = definitions.get(name); !ok {
			return node{}, false
		}
	}
	return node{}, false
}

func (l *loosener) str(s node) node {
	out := object(member{"type", text("string")})
	if pattern, ok := safePattern(s.str("pattern")); ok {
		out.members = append(out.members, member{"pattern", text(pattern)})
		return out
	}
	if f := s.str("format"); slices.Contains([]string{"date", "time", "date-time", "uuid"}, f) {
		out.members = append(out.members, member{"format", text(f)})
		return out
	}
	out.members = append(out.members, l.bounds(s, "minLength", "maxLength", maxLength)...)
	return out
}

// bounds keeps a pair of bounds that hang together and are small enough.
func (l *loosener) bounds(s node, low, high string, limit int64) []member {
	least, hasLeast := small(s, low, limit)
	most, hasMost := small(s, high, limit)
	if hasLeast && hasMost && least > most {
		return nil
	}
	var out []member
	if hasLeast {
		out = append(out, member{low, number(least)})
	}
	if hasMost {
		out = append(out, member{high, number(most)})
	}
	l.repetitions += max(least, most)
	return out
}

func (l *loosener) array(s node, depth int) node {
	out := object(member{"type", text("array")})
	items, hasItems := s.get("items")
	tuple, hasTuple := s.get("prefixItems")
	if hasItems && items.kind == '[' {
		tuple, hasTuple, hasItems = items, true, false
	}
	limits := object(l.bounds(s, "minItems", "maxItems", maxItems)...)
	least, hasLeast := small(limits, "minItems", maxItems)
	most, hasMost := small(limits, "maxItems", maxItems)
	switch n := len(tuple.items); {
	case hasTuple && n > 0 && !(hasLeast && least > n) && !(hasMost && most < n) && (!hasItems || items.scalar == false):
		out.members = append(out.members, member{"prefixItems", l.each(tuple.items, depth)})
		return out
	case hasTuple, !hasItems && !hasLeast && !hasMost:
		return out
	case hasItems && items.scalar == false:
		return object(member{"type", text("array")}, member{"items", anything()}, member{"maxItems", number(0)})
	}
	out.members = append(out.members, member{"items", l.loosen(items, depth-1)})
	out.members = append(out.members, limits.members...)
	return out
}

func (l *loosener) each(items []node, depth int) node {
	out := list()
	for _, i := range items {
		out.items = append(out.items, l.loosen(i, depth-1))
	}
	return out
}

func (l *loosener) object(s node, depth int) node {
	out := object(member{"type", text("object")})
	properties, _ := s.get("properties")
	additional, hasAdditional := s.get("additionalProperties")
	closed := hasAdditional && additional.scalar == false
	required := stringsIn(s, "required")
	props := object()
	for _, p := range properties.members {
		props.members = append(props.members, member{p.key, l.loosen(p.value, depth-1)})
	}
	for _, r := range required {
		if !has(props, r) && !closed { // else it could never be produced
			props.members = append(props.members, member{r, anything()})
		}
	}
	if len(props.members) > 0 || closed {
		out.members = append(out.members, member{"properties", props})
	}
	if len(required) > 0 {
		var names []node
		for _, r := range required {
			names = append(names, text(r))
		}
		out.members = append(out.members, member{"required", list(names...)})
	}
	switch {
	case hasAdditional && additional.kind == '{' && len(additional.members) > 0:
		out.members = append(out.members, member{"additionalProperties", l.loosen(additional, depth-1)})
	case closed, hasAdditional && additional.scalar == true:
		out.members = append(out.members, member{"additionalProperties", additional})
	case needsMoreKeys(s, len(props.members)):
		out.members = append(out.members, member{"additionalProperties", node{scalar: true}})
	}
	return out
}

// needsMoreKeys says whether other keywords may ask for keys that are not among the properties: Ollama closes an object
// that does not say otherwise.
func needsMoreKeys(s node, properties int) bool {
	for _, key := range []string{"then", "else", "dependentSchemas", "dependentRequired"} {
		if has(s, key) && properties > 0 {
			return true
		}
	}
	least, ok := small(s, "minProperties", maxItems)
	return ok && least > properties && properties > 0
}

// enum keeps the values that the type allows; Ollama does not look at a type beside an enum.
func enum(s, values node) node {
	t, hasType := s.get("type")
	var kept []node
	for _, v := range values.items {
		if !hasType || typeAllows(t, v) {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 || len(kept) > maxEnum {
		return anything()
	}
	return object(member{"enum", list(kept...)})
}

// integer keeps whole bounds; Ollama would read a minimum of 1.5 as 1.
func integer(s node) node {
	out := object(member{"type", text("integer")})
	least, hasLeast := wholeBound(s, "minimum", "exclusiveMinimum", 1)
	most, hasMost := wholeBound(s, "maximum", "exclusiveMaximum", -1)
	if hasLeast && hasMost && least.Cmp(most) > 0 {
		return out
	}
	if hasLeast {
		out.members = append(out.members, member{"minimum", node{scalar: json.Number(least.String())}})
	}
	if hasMost {
		out.members = append(out.members, member{"maximum", node{scalar: json.Number(most.String())}})
	}
	return out
}

// wholeBound returns the tightest whole number that an inclusive and an exclusive bound allow; towards is the side
// inside: 1 for a minimum, -1 for a maximum.
func wholeBound(s node, inclusive, exclusive string, towards int64) (*big.Int, bool) {
	var best *big.Int
	for _, key := range []string{inclusive, exclusive} {
		v, _ := s.get(key)
		text, ok := v.scalar.(json.Number)
		if !ok {
			continue
		}
		r, ok := new(big.Rat).SetString(text.String())
		if !ok {
			continue
		}
		whole := new(big.Int).Div(r.Num(), r.Denom()) // rounds down
		switch {
		case !r.IsInt() && towards > 0, r.IsInt() && key == exclusive && towards > 0:
			whole.Add(whole, big.NewInt(1))
		case r.IsInt() && key == exclusive:
			whole.Sub(whole, big.NewInt(1))
		}
		if best == nil || whole.Cmp(best)*int(towards) > 0 {
			best = whole
		}
	}
	if best == nil || new(big.Int).Abs(best).Cmp(big.NewInt(maxInteger)) >= 0 {
		return nil, false
	}
	return best, true
}
