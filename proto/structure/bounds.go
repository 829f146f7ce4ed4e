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

// Bounds on what a server follows at once. It keeps one stack for each way in which what was written so far can be read:
// a definition that leads back to itself through two alternatives that begin alike doubles them with every level, until
// the memory is full. 2000 take 0.4 s a token with a vocabulary of 150 000 (measured, as values of an enum).
const (
	maxAmbiguity = 2000
	unrolled     = 12 // references followed within each other: a cycle that doubles is far beyond the bound by then
)

// leftRecursive says whether a definition leads back to itself with nothing in between; the grammar of one never ends
// and kills the runner.
func leftRecursive(defs map[string]node) bool {
	const entered, left = 1, 2
	state := map[string]int{}
	var visit func(n node) bool
	visit = func(n node) bool {
		if ref := n.str("$ref"); ref != "" {
			name := strings.TrimPrefix(ref, "#/$defs/")
			if state[name] != 0 {
				return state[name] == entered
			}
			state[name] = entered
			if visit(defs[name]) {
				return true
			}
			state[name] = left
		}
		alternatives, _ := n.get("anyOf")
		return slices.ContainsFunc(alternatives.items, visit)
	}
	for name := range defs {
		if visit(object(member{"$ref", text("#/$defs/" + name)})) {
			return true
		}
	}
	return false
}

// ambiguity returns in how many ways a server may have to read an answer at once, at most.
func ambiguity(format node) int {
	definitions, _ := format.get("$defs")
	a := ambiguous{definitions: definitions, known: map[step]int{}}
	return a.of(format, unrolled)
}

type ambiguous struct {
	definitions node
	known       map[step]int
}

// step is a definition and how many references may still be followed from there.
type step struct {
	ref  string
	left int
}

func (a ambiguous) of(n node, left int) int {
	if ref := n.str("$ref"); ref != "" {
		return a.reference(ref, left)
	}
	most := 1
	within := func(part node) { most = min(max(most, a.of(part, left)), 2*maxAmbiguity) }
	if values, ok := n.get("enum"); ok {
		return max(1, len(values.items))
	}
	if alternatives, ok := n.get("anyOf"); ok {
		return a.union(alternatives.items, left)
	}
	properties, _ := n.get("properties")
	for _, p := range properties.members {
		within(p.value)
	}
	most = max(most, len(properties.members)-len(stringsIn(n, "required"))+1)
	tuple, _ := n.get("prefixItems")
	for _, i := range tuple.items {
		within(i)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if part, _ := n.get(key); part.kind == '{' {
			within(part)
		}
	}
	return most
}

func (a ambiguous) reference(ref string, left int) int {
	if left == 0 {
		return 1
	}
	at := step{ref, left}
	if known, ok := a.known[at]; ok {
		return known
	}
	target, _ := a.definitions.get(strings.TrimPrefix(ref, "#/$defs/"))
	a.known[at] = a.of(target, left-1)
	return a.known[at]
}

// union adds up the alternatives that cannot be told apart by how they begin.
func (a ambiguous) union(alternatives []node, left int) int {
	ways := make([]int, len(alternatives))
	for i, one := range alternatives {
		ways[i] = a.of(one, left)
	}
	most := 1
	for i, one := range alternatives {
		sum := 0
		for j, other := range alternatives {
			if i == j || !a.distinct(one, other, 4) {
				sum = min(sum+ways[j], 2*maxAmbiguity)
			}
		}
		most = max(most, sum)
	}
	return most
}

// distinct says whether how a value begins tells which of two schemas it follows: by its type, or by the first key of an
// object and what stands there.
func (a ambiguous) distinct(one, other node, depth int) bool {
	one, other = a.target(one), a.target(other)
	if depth == 0 {
		return false
	}
	if a.begins(one, 8)&a.begins(other, 8) == 0 {
		return true
	}
	first, ok := firstKey(one)
	second, okToo := firstKey(other)
	if ok && okToo {
		return first.key != second.key || a.distinct(first.value, second.value, depth-1)
	}
	values, isEnum := named(one)
	others, isEnumToo := named(other)
	return isEnum && isEnumToo && !slices.ContainsFunc(values, func(v node) bool {
		return slices.ContainsFunc(others, func(o node) bool { return string(v.encode()) == string(o.encode()) })
	})
}

func (a ambiguous) target(n node) node {
	for range 8 {
		ref := n.str("$ref")
		if ref == "" {
			break
		}
		n, _ = a.definitions.get(strings.TrimPrefix(ref, "#/$defs/"))
	}
	return n
}

// begins returns the types that a value may have, everything when that is not seen within a few steps.
func (a ambiguous) begins(n node, depth int) typeSet {
	n = a.target(n)
	if values, ok := named(n); ok {
		var of typeSet
		for _, v := range values {
			of |= typeOf(v)
		}
		return of
	}
	alternatives, isUnion := n.get("anyOf")
	if t, ok := n.get("type"); ok && t.kind == 0 {
		return typeNamed[n.str("type")]
	}
	if !isUnion || depth == 0 {
		return everything
	}
	var of typeSet
	for _, one := range alternatives.items {
		of |= a.begins(one, depth-1)
	}
	return of
}

// firstKey is the property that an object begins with: the first of those that are required.
func firstKey(n node) (member, bool) {
	required := stringsIn(n, "required")
	properties, _ := n.get("properties")
	for _, p := range properties.members {
		if slices.Contains(required, p.key) {
			return p, true
		}
	}
	return member{}, false
}

// named are the values of an enum or const.
func named(n node) ([]node, bool) {
	if v, ok := n.get("const"); ok {
		return []node{v}, true
	}
	v, ok := n.get("enum")
	return v.items, ok
}
