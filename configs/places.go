package configs

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// places calls do with where each part of a setting's value stands in the file: "nodes.den.hours[0]", line and column.
func places(n ast.Node, key string, do func(key string, line, column int)) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			part := key + "." + v.Key.GetToken().Value
			at := v.Key.GetToken().Position
			do(part, at.Line, at.Column)
			places(v.Value, part, do)
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			if m, ok := v.(*ast.MappingNode); ok && len(m.Values) > 0 {
				at := m.Values[0].Key.GetToken().Position
				do(fmt.Sprintf("%s[%d]", key, i), at.Line, at.Column)
			}
			places(v, fmt.Sprintf("%s[%d]", key, i), do)
		}
	default:
		if at := n.GetToken().Position; at != nil {
			do(key, at.Line, at.Column)
		}
	}
}
