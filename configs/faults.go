package configs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// yamlFault turns the library's error into "line:column: key: message", without the excerpt it appends. file is nil when
// the text could not even be parsed.
func yamlFault(file *ast.File, err error) string {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return valueFault(file, err)
	}
	p, msg := at.GetToken().Position, at.GetMessage()
	var typ *yaml.TypeError
	if errors.As(err, &typ) {
		msg = fmt.Sprintf("want %s, got %q", wanted(typ.DstType), at.GetToken().Value)
		if key := keyAt(file, p); key != "" {
			msg = key + ": " + msg
		}
	}
	return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, msg)
}

// valueFault finds the place of an error that came without one: the library tells none for a text that is no duration.
func valueFault(file *ast.File, err error) string {
	fault := ""
	each(file, func(key string, v *ast.MappingValueNode) {
		var c Config
		t, p := v.Value.GetToken(), v.Value.GetToken().Position
		if _, ok := settingOf(key).get(&c).(time.Duration); !ok || fault != "" {
			return
		}
		if _, err := time.ParseDuration(t.Value); err != nil {
			fault = fmt.Sprintf("%d:%d: %s: want %s, got %q", p.Line, p.Column, key, wanted(reflect.TypeFor[time.Duration]()), t.Value)
		}
	})
	if fault != "" {
		return fault
	}
	return " " + strings.SplitN(err.Error(), "\n", 2)[0]
}

// wanted says what a Go type looks like in the file.
func wanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 15s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Map || t.Kind() == reflect.Struct:
		return "keys and values"
	default:
		return "a whole number"
	}
}

// keyAt is the setting whose value stands at p, or "".
func keyAt(file *ast.File, p *token.Position) string {
	found := ""
	each(file, func(key string, v *ast.MappingValueNode) {
		if at := v.Value.GetToken().Position; at.Line == p.Line && at.Column == p.Column {
			found = key
		}
	})
	return found
}

// each calls do with every setting that the file holds.
func each(file *ast.File, do func(key string, v *ast.MappingValueNode)) {
	if file == nil {
		return
	}
	for _, doc := range file.Docs {
		eachBelow(doc.Body, "", do)
	}
}

func eachBelow(n ast.Node, prefix string, do func(string, *ast.MappingValueNode)) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return
	}
	for _, v := range m.Values {
		key := prefix + v.Key.String()
		if settingOf(key).key != "" {
			do(key, v)
			continue
		}
		eachBelow(v.Value, key+".", do)
	}
}

// settingOf is the row of a key; the zero row when there is none.
func settingOf(key string) setting {
	for _, row := range settings {
		if row.key == key {
			return row
		}
	}
	return setting{}
}
