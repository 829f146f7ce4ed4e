package structure

import (
	"strconv"
	"strings"
)

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
