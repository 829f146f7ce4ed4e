package structure

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// typeSet is a set of JSON types.
type typeSet uint8

const (
	nulls typeSet = 1 << iota
	booleans
	numbers
	strs
	arrays
	objects
	everything = nulls | booleans | numbers | strs | arrays | objects
)

var typeNamed = map[string]typeSet{"null": nulls, "boolean": booleans, "number": numbers, "integer": numbers, "string": strs, "array": arrays, "object": objects}

// satisfiability finds schemas that no value satisfies, however a model tries. It claims that only where it is certain:
// what it does not look at (patterns, formats, if, dependencies) counts as satisfiable, and what contradiction finds is gone
// before. Values are finite, so a schema
// that demands itself within itself has none: possible starts empty and grows until nothing changes.
type satisfiability struct {
	possible map[*jsonschema.Schema]typeSet // types of which some value may satisfy the schema
	why      map[*jsonschema.Schema]*Error  // why a schema has none
	seen     map[*jsonschema.Schema]bool    // in this pass
	changed  bool
}

// impossible says why no value satisfies the schema; nil when one may.
func impossible(root *jsonschema.Schema) error {
	s := satisfiability{possible: map[*jsonschema.Schema]typeSet{}}
	for s.changed = true; s.changed; {
		s.changed, s.seen, s.why = false, map[*jsonschema.Schema]bool{}, map[*jsonschema.Schema]*Error{}
		s.of(root)
	}
	if s.possible[root] != 0 {
		return nil
	}
	return s.why[root]
}

// typeOf returns the type of a value.
func typeOf(v node) typeSet {
	switch v.scalar.(type) {
	case string:
		return strs
	case json.Number:
		return numbers
	case bool:
		return booleans
	}
	switch v.kind {
	case '{':
		return objects
	case '[':
		return arrays
	}
	return nulls
}

// of returns what is possible as far as this pass knows.
func (s *satisfiability) of(n *jsonschema.Schema) typeSet {
	if s.seen[n] {
		return s.possible[n]
	}
	s.seen[n] = true
	s.why[n] = s.because(n, "make what leads back optional, or put it into an array", "no value can satisfy it, because it demands itself")
	was := s.possible[n]
	now := s.judge(n)
	if now == was {
		return now
	}
	s.possible[n], s.changed = now, true
	return now
}

func (s *satisfiability) because(n *jsonschema.Schema, instead, format string, args ...any) *Error {
	_, pointer, _ := strings.Cut(n.Location, "#")
	return &Error{pointer, fmt.Sprintf(format, args...), instead}
}

// judge applies one keyword after the other. The first that takes the last types away is the reason.
func (s *satisfiability) judge(n *jsonschema.Schema) typeSet {
	left := everything
	narrow := func(to typeSet, why *Error) {
		if left &= to; left == 0 && why != nil {
			s.why[n] = why
		}
	}
	for _, rule := range []func(*jsonschema.Schema) (typeSet, *Error){s.typed, s.values, s.combined, s.arrays, s.objects} {
		if left != 0 {
			narrow(rule(n))
		}
	}
	return left
}

func (s *satisfiability) typed(n *jsonschema.Schema) (typeSet, *Error) {
	if n.Bool != nil && !*n.Bool || n.Not != nil && n.Not.Bool != nil && *n.Not.Bool {
		return 0, s.because(n, "leave it out of required, or say what it may be", "false: no value can satisfy it")
	}
	if n.Types == nil || n.Types.IsEmpty() {
		return everything, nil
	}
	var of typeSet
	for _, name := range n.Types.ToStrings() {
		of |= typeNamed[name]
	}
	return of, s.because(n, "ask for one type", "no value is of all the types that are asked for")
}

// values asks the schema itself about each value that enum and const name.
func (s *satisfiability) values(n *jsonschema.Schema) (typeSet, *Error) {
	var named []any
	switch {
	case n.Const != nil:
		named = []any{*n.Const}
	case n.Enum != nil:
		named = n.Enum.Values
	default:
		return everything, nil
	}
	for _, v := range named {
		if n.Validate(v) == nil {
			return everything, nil
		}
	}
	return 0, s.because(n, "make the values fit the type and the bounds beside them", "no value of its enum or const satisfies the rest of it")
}

// combined follows references and combinations.
func (s *satisfiability) combined(n *jsonschema.Schema) (typeSet, *Error) {
	left := everything
	var why *Error
	and := func(part *jsonschema.Schema) {
		if may := s.of(part); may == 0 && why == nil {
			why = s.why[part]
			left = 0
		} else {
			left &= may
		}
	}
	if n.Ref != nil {
		and(n.Ref)
	}
	for _, part := range n.AllOf {
		and(part)
	}
	for _, parts := range [][]*jsonschema.Schema{n.AnyOf, n.OneOf} {
		var any typeSet
		for _, part := range parts {
			any |= s.of(part)
		}
		if len(parts) > 0 {
			left &= any
		}
	}
	if why == nil {
		why = s.because(n, "use anyOf where one of them is enough", "no value can satisfy all of its parts")
	}
	return left, why
}

func (s *satisfiability) arrays(n *jsonschema.Schema) (typeSet, *Error) {
	none := everything &^ arrays
	first, rest := n.PrefixItems, n.Items2020
	switch items := n.Items.(type) { // before draft 2020-12
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		first = items
		rest, _ = n.AdditionalItems.(*jsonschema.Schema)
	}
	least := 0
	if n.MinItems != nil {
		least = *n.MinItems
	}
	for _, item := range first[:min(least, len(first))] {
		if s.of(item) == 0 {
			return none, s.why[item]
		}
	}
	if least > len(first) && rest != nil && s.of(rest) == 0 {
		return none, s.why[rest]
	}
	if c := n.Contains; c != nil && (n.MinContains == nil || *n.MinContains > 0) && s.of(c) == 0 {
		return none, s.why[c]
	}
	return everything, nil
}

func (s *satisfiability) objects(n *jsonschema.Schema) (typeSet, *Error) {
	none := everything &^ objects
	required := len(n.Required)
	if n.MaxProperties != nil && required > *n.MaxProperties {
		return none, s.because(n, "raise maxProperties", "%d properties are required and maxProperties is %d", required, *n.MaxProperties)
	}
	for _, name := range n.Required {
		if p, ok := n.Properties[name]; ok {
			if s.of(p) == 0 {
				return none, s.why[p]
			}
			continue
		}
		if len(n.PatternProperties) > 0 {
			continue
		}
		switch other := n.AdditionalProperties.(type) {
		case bool:
			if !other {
				return none, s.because(n, "add it to properties, or take it out of required", "%q is required and not allowed", name)
			}
		case *jsonschema.Schema:
			if s.of(other) == 0 {
				return none, s.why[other]
			}
		}
	}
	return everything, nil
}
