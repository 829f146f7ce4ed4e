package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is a JSON value that remembers the order of keys and the exact text of numbers. Go maps lose the first, and the
// order of a schema's properties is the order in which a model is made to answer.
type node struct {
	scalar  any // string, json.Number, bool or nil, unless one of the others is set
	members []member
	items   []node
	kind    byte // '{', '[' or 0 for a scalar
}

type member struct {
	key   string
	value node
}

// maxDepth bounds nesting, so that recursion over what a model wrote stays shallow.
const maxDepth = 500

// maxNumber bounds the text of a number and maxExponent its exponent: exact arithmetic on 1e999999999 would eat the
// memory. float64 ends at 1e308.
const (
	maxNumber   = 400
	maxExponent = 400
)

var (
	errConflict = errors.New("the same key twice with different values")
	errDepth    = fmt.Errorf("nested deeper than %d", maxDepth)
	errNumber   = errors.New("a number too large to handle")
)

// parseNode reads exactly one JSON value, strictly. Equal values under one key count once; different ones are errConflict,
// unless lastWins, which is how a schema is read by everybody else.
func parseNode(text []byte, lastWins bool) (node, error) {
	if !json.Valid(text) {
		var any any
		return node{}, json.Unmarshal(text, &any)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	p := nodeParser{dec: dec, lastWins: lastWins}
	return p.value(0)
}

type nodeParser struct {
	dec      *json.Decoder
	lastWins bool
}

func (p nodeParser) value(depth int) (node, error) {
	if depth > maxDepth {
		return node{}, errDepth
	}
	token, err := p.dec.Token()
	if err != nil {
		return node{}, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case json.Number:
		return node{scalar: t}, checkNumber(string(t))
	default:
		return node{scalar: t}, nil
	}
}

func (p nodeParser) object(depth int) (node, error) {
	n := node{kind: '{'}
	seen := map[string]int{}
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return n, err
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		name := key.(string) // a Token in key position is a string
		at, twice := seen[name]
		switch {
		case !twice:
			seen[name] = len(n.members)
			n.members = append(n.members, member{name, value})
		case p.lastWins:
			n.members[at].value = value
		case !bytes.Equal(n.members[at].value.encode(), value.encode()):
			return n, fmt.Errorf("%w: %q", errConflict, name)
		}
	}
	_, err := p.dec.Token()
	return n, err
}

func (p nodeParser) array(depth int) (node, error) {
	n := node{kind: '['}
	for p.dec.More() {
		value, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, value)
	}
	_, err := p.dec.Token()
	return n, err
}

func checkNumber(text string) error {
	exponent := ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		exponent = strings.TrimLeft(strings.TrimLeft(text[at+1:], "+-"), "0")
	}
	var e int
	if len(text) > maxNumber || len(exponent) > 3 {
		return errNumber
	}
	if exponent != "" {
		if _, err := fmt.Sscan(exponent, &e); err != nil || e > maxExponent {
			return errNumber
		}
	}
	return nil
}

// get returns the member of that name.
func (n node) get(key string) (node, bool) {
	for _, m := range n.members {
		if m.key == key {
			return m.value, true
		}
	}
	return node{}, false
}

// str returns the string in the member of that name, "" when there is none.
func (n node) str(key string) string {
	v, _ := n.get(key)
	s, _ := v.scalar.(string)
	return s
}

// plain is the value as the validator wants it.
func (n node) plain() any {
	switch n.kind {
	case '{':
		m := make(map[string]any, len(n.members))
		for _, e := range n.members {
			m[e.key] = e.value.plain()
		}
		return m
	case '[':
		list := make([]any, len(n.items))
		for i, e := range n.items {
			list[i] = e.plain()
		}
		return list
	default:
		return n.scalar
	}
}

// encode writes the value compactly, keys in order, numbers as they were written.
func (n node) encode() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n node) write(b *bytes.Buffer) {
	switch n.kind {
	case '{':
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeScalar(b, m.key)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for i, e := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			e.write(b)
		}
		b.WriteByte(']')
	default:
		writeScalar(b, n.scalar)
	}
}

func writeScalar(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err == nil {
		b.Truncate(b.Len() - 1) // Encode ends with a line feed; a string, number, bool or nil cannot fail
	}
}

// object builds a node from keys and values in order.
func object(members ...member) node { return node{kind: '{', members: members} }

func list(items ...node) node { return node{kind: '[', items: items} }

func text(s string) node { return node{scalar: s} }

func number(i int) node { return node{scalar: json.Number(fmt.Sprint(i))} }

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

// Where a schema has other schemas in it.
var (
	holdsOne  = []string{"additionalProperties", "additionalItems", "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"}
	holdsList = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	holdsMap  = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)

// subschemas visits a schema and all within it, in their order, each with its JSON pointer.
func subschemas(root node, visit func(at string, s node)) {
	var walk func(at string, s node)
	walk = func(at string, s node) {
		if s.kind != '{' {
			return
		}
		visit(at, s)
		for _, key := range holdsOne {
			if v, ok := s.get(key); ok {
				walk(at+"/"+key, v)
			}
		}
		for _, key := range holdsList {
			v, _ := s.get(key)
			for i, one := range v.items {
				walk(at+"/"+key+"/"+strconv.Itoa(i), one)
			}
		}
		for _, key := range holdsMap {
			v, _ := s.get(key)
			for _, m := range v.members {
				walk(at+"/"+key+"/"+escaped.Replace(m.key), m.value)
			}
		}
	}
	walk("", root)
}

// escaped and unescaped are those of RFC 6901.
var (
	escaped   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaped = strings.NewReplacer("~1", "/", "~0", "~")
)

// at finds what a reference within the schema points to. It knows JSON pointers, not anchors nor percent signs.
func at(root node, ref string) (node, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' || strings.Contains(path, "%") {
		return node{}, false
	}
	if path == "" {
		return root, true
	}
	n := root
	for _, part := range strings.Split(path[1:], "/") {
		if n.kind == '[' {
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n.items) {
				return node{}, false
			}
			n = n.items[i]
			continue
		}
		if n, ok = n.get(unescaped.Replace(part)); !ok {
			return node{}, false
		}
	}
	return n, true
}
