package structure

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

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
	if !sendable(s, properties) {
		return out
	}
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

// sendable says whether an object's names do no harm in the converter, where "" is taken for the root and "*" for all other
// keys, "$ref" is read as a reference, and which does not escape names when other keys are allowed beside them.
func sendable(s, properties node) bool {
	additional, _ := s.get("additionalProperties")
	mixed := additional.kind == '{' || additional.scalar == true || needsMoreKeys(s, len(properties.members))
	names := stringsIn(s, "required")
	for _, p := range properties.members {
		names = append(names, p.key)
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		return name == "" || name == "*" || name == "$ref" || len(name) > maxName || mixed && strings.IndexFunc(name, func(r rune) bool { return r != '_' && (r > 'z' || !isAlnum(byte(r))) }) >= 0
	})
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

// integer keeps whole bounds; Ollama would read a minimum of 1.5 as 1. A maximum below 0 alone is left out: the converter
// lets -05 through then.
func integer(s node) node {
	out := object(member{"type", text("integer")})
	least, hasLeast := wholeBound(s, "minimum", "exclusiveMinimum", 1)
	most, hasMost := wholeBound(s, "maximum", "exclusiveMaximum", -1)
	switch {
	case hasLeast && hasMost && least.Cmp(most) > 0, !hasLeast && hasMost && most.Sign() < 0:
		return out
	case hasLeast && !hasMost:
		least = spelled(least)
	}
	if hasLeast {
		out.members = append(out.members, member{"minimum", node{scalar: json.Number(least.String())}})
	}
	if hasMost {
		out.members = append(out.members, member{"maximum", node{scalar: json.Number(most.String())}})
	}
	return out
}

// spelled lowers a minimum that stands alone to one that the converter spells right. It forgets zeros within: of at least
// 105 it makes "1 and one more digit", so that 15 passes. Below that there is 99.
func spelled(least *big.Int) *big.Int {
	for {
		digits := least.String()
		if least.Sign() <= 0 || len(digits) < 3 {
			return least
		}
		zero := strings.IndexByte(digits[1:len(digits)-1], '0') + 1
		if zero == 0 {
			return least
		}
		tail := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(digits)-zero)), nil)
		least = new(big.Int).Sub(new(big.Int).Mul(new(big.Int).Div(least, tail), tail), big.NewInt(1))
	}
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

// exact says whether a value comes out of the converter as it went in: it reads numbers as float64 and refuses larger ones,
// and takes "$ref" for a reference even within a value.
func exact(v node) bool {
	for _, m := range v.members {
		if m.key == "$ref" || !exact(m.value) {
			return false
		}
	}
	number, isNumber := v.scalar.(json.Number)
	return slices.IndexFunc(v.items, func(one node) bool { return !exact(one) }) < 0 && (!isNumber || exactNumber(string(number)))
}

// exactNumber: at most 15 digits and a small exponent, which every float64 gives back, or a whole number of 64 bits.
func exactNumber(number string) bool {
	if _, err := strconv.ParseInt(number, 10, 64); err == nil {
		return true
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(number), "e")
	e, err := strconv.Atoi(exponent)
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	return len(digits) <= 15 && len(mantissa) <= 40 && (!scientific || err == nil && e > -250 && e < 250)
}
