package structure

import (
	"regexp/syntax"
	"strings"
)

// How many tokens an answer may take: (Σ maxLength/3 + 6 × leaf fields) × 1.2, from the settings that the research on Ollama
// 0.17.4 proposes. What has no bound of its own counts with one of these.
const (
	bytesPerToken = 3
	leafTokens    = 6    // name, quotes and comma of a field
	openLength    = 2000 // characters of a string without a maxLength
	openItems     = 16   // items of an array without a maxItems, and keys of a map
	openPattern   = 60   // characters of a pattern that repeats without end
	formatLength  = 40   // characters of a date, a uuid and the like
	leastBudget   = 64
	mostBudget    = 16384
	followed      = 3 // references within each other
)

// Budget returns how many tokens an answer that the schema accepts may take, for num_predict: 64 to 16384.
func (s *Schema) Budget() int {
	b := budget{root: s.tree, known: map[step]int{}}
	return min(max(b.of(s.tree, followed)*6/5, leastBudget), mostBudget)
}

type budget struct {
	root  node
	known map[step]int
}

func (b budget) of(s node, left int) int {
	if ref := s.str("$ref"); ref != "" {
		return b.reference(ref, left)
	}
	if values, ok := named(s); ok {
		most := 0
		for _, v := range values {
			most = max(most, len(v.encode()))
		}
		return most/bytesPerToken + leafTokens
	}
	total := 0
	all, _ := s.get("allOf")
	for _, part := range all.items {
		total = capped(total + b.of(part, left))
	}
	most := 0
	for _, key := range []string{"anyOf", "oneOf"} {
		alternatives, _ := s.get(key)
		for _, one := range alternatives.items {
			most = max(most, b.of(one, left))
		}
	}
	if total+most > 0 && !has(s, "properties") && !has(s, "items") {
		return capped(total + most)
	}
	return capped(total + most + b.typed(s, left))
}

func (b budget) reference(ref string, left int) int {
	target, ok := at(b.root, ref)
	if !ok || left == 0 {
		return leafTokens
	}
	at := step{ref, left}
	if known, ok := b.known[at]; ok {
		return known
	}
	b.known[at] = leafTokens
	b.known[at] = b.of(target, left-1)
	return b.known[at]
}

// typed counts the largest of the types that a value may have.
func (b budget) typed(s node, left int) int {
	t, ok := s.get("type")
	names := stringsIn(s, "type")
	if name, isText := t.scalar.(string); isText {
		names = []string{name}
	}
	switch {
	case ok:
	case has(s, "properties"):
		names = []string{"object"}
	case has(s, "items"), has(s, "prefixItems"):
		names = []string{"array"}
	default:
		names = []string{"string"}
	}
	most := leafTokens
	for _, name := range names {
		switch name {
		case "object":
			most = max(most, b.object(s, left))
		case "array":
			most = max(most, b.array(s, left))
		case "string":
			most = max(most, characters(s)/bytesPerToken+leafTokens)
		}
	}
	return most
}

func (b budget) object(s node, left int) int {
	properties, _ := s.get("properties")
	total := 0
	for _, p := range properties.members {
		total = capped(total + b.of(p.value, left))
	}
	additional, open := s.get("additionalProperties")
	if open && additional.scalar == false || !open && len(properties.members) > 0 {
		return total
	}
	keys := openItems
	if n, ok := small(s, "maxProperties", maxItems); ok {
		keys = max(0, n-len(properties.members))
	}
	return capped(total + keys*(b.of(additional, left)+leafTokens))
}

func (b budget) array(s node, left int) int {
	items, _ := s.get("items")
	tuple, _ := s.get("prefixItems")
	if items.kind == '[' {
		tuple, items = items, node{scalar: false}
	}
	most := openItems
	if n, ok := small(s, "maxItems", maxItems); ok {
		most = n
	} else if n, ok := small(s, "minItems", maxItems); ok {
		most = max(most, n)
	}
	total := 0
	for _, i := range tuple.items[:min(most, len(tuple.items))] {
		total = capped(total + b.of(i, left))
	}
	if items.scalar == false || len(tuple.items) > 0 && items.kind == 0 {
		return total
	}
	return capped(total + max(0, most-len(tuple.items))*b.of(items, left))
}

// characters is how long a string may be.
func characters(s node) int {
	most := openLength
	if n, ok := small(s, "maxLength", 1<<20); ok {
		most = n
	} else if has(s, "format") && !has(s, "pattern") {
		most = formatLength
	}
	if least, ok := small(s, "minLength", 1<<20); ok {
		most = max(most, least)
	}
	pattern := s.str("pattern")
	if !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") {
		return most
	}
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		return min(most, longest(parsed))
	}
	return most
}

// longest is how many characters a pattern matches at most.
func longest(p *syntax.Regexp) int {
	total, most := 0, 0
	for _, sub := range p.Sub {
		n := longest(sub)
		total, most = capped(total+n), max(most, n)
	}
	switch p.Op {
	case syntax.OpLiteral:
		return len(p.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpStar, syntax.OpPlus:
		return capped(max(openPattern, most))
	case syntax.OpRepeat:
		if p.Max < 0 {
			return capped(max(openPattern, most*p.Min))
		}
		return capped(most * p.Max)
	case syntax.OpAlternate:
		return most
	default:
		return total
	}
}

// capped keeps a sum from growing beyond what anyone asks for.
func capped(n int) int { return min(n, 1<<24) }
