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
	want := ""
	var typ *yaml.TypeError
	var kind *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &typ):
		want = wanted(typ.DstType)
	case errors.As(err, &kind) && kind.Expected == ast.SequenceType:
		want = wanted(reflect.TypeFor[[]string]())
	case errors.As(err, &kind) && kind.Expected == ast.MappingType:
		want = wanted(reflect.TypeFor[map[string]string]())
	}
	if want != "" {
		msg = fmt.Sprintf("want %s, got %q", want, at.GetToken().Value)
		if key := keyAt(file, p); key != "" {
			msg = key + ": " + msg
		}
	}
	return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, msg)
}

// valueFault finds the place of an error that came without one: the library tells none for a text that is no duration or size.
func valueFault(file *ast.File, err error) string {
	fault := ""
	eachLeaf(file, func(key string, t reflect.Type, n ast.Node) {
		text, p := n.GetToken().Value, n.GetToken().Position
		var err error
		switch t {
		case reflect.TypeFor[time.Duration]():
			_, err = time.ParseDuration(text)
		case reflect.TypeFor[Size]():
			_, err = ParseSize(text)
		}
		if err != nil && fault == "" {
			fault = fmt.Sprintf("%d:%d: %s: want %s, got %q", p.Line, p.Column, key, wanted(t), text)
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
	case t == reflect.TypeFor[Size]():
		return sizeForm
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Map || t.Kind() == reflect.Struct:
		return "keys and values"
	case t.Kind() == reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// keyAt is the setting in whose value something stands at p, or "".
func keyAt(file *ast.File, p *token.Position) string {
	found := ""
	eachLeaf(file, func(key string, _ reflect.Type, n ast.Node) {
		if at := n.GetToken().Position; at.Line == p.Line && at.Column == p.Column {
			found = key
		}
	})
	return found
}

// eachLeaf calls do with every value of every setting that the file holds, those in lists one by one, and the Go type that it is for.
func eachLeaf(file *ast.File, do func(key string, t reflect.Type, n ast.Node)) {
	each(file, func(key string, v *ast.MappingValueNode) {
		var c Config
		eachLeafOf(v.Value, reflect.TypeOf(settingOf(key).get(&c)), func(t reflect.Type, n ast.Node) { do(key, t, n) })
	})
}

func eachLeafOf(n ast.Node, t reflect.Type, do func(reflect.Type, ast.Node)) {
	list, isList := n.(*ast.SequenceNode)
	pairs, isMap := n.(*ast.MappingNode)
	switch {
	case isList && t.Kind() == reflect.Slice:
		for _, v := range list.Values {
			eachLeafOf(v, t.Elem(), do)
		}
	case isMap && t.Kind() == reflect.Map:
		for _, v := range pairs.Values {
			eachLeafOf(v.Value, t.Elem(), do)
		}
	case isMap && t.Kind() == reflect.Struct:
		for _, v := range pairs.Values {
			for i := range t.NumField() {
				if t.Field(i).Tag.Get("yaml") == v.Key.String() {
					eachLeafOf(v.Value, t.Field(i).Type, do)
				}
			}
		}
	default:
		do(t, n)
	}
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
