package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/dop251/goja"
)

// border takes values from the interpreter to canonical JSON and back. It is not the library's doing, because all that a
// script asks for and is given goes through it, again in each replay.
type border struct {
	js     *goja.Runtime
	plain  *goja.Object  // Object.prototype
	kindOf goja.Callable // Object.prototype.toString
	isList goja.Callable // Array.isArray
}

// newBorder is called before any code runs that could replace what it holds on to.
func newBorder(js *goja.Runtime) border {
	plain := js.NewObject().Prototype()
	kindOf, _ := goja.AssertFunction(plain.Get("toString"))
	isList, _ := goja.AssertFunction(js.GlobalObject().Get("Array").(*goja.Object).Get("isArray"))
	return border{js, plain, kindOf, isList}
}

// refusal is why a value is no JSON, and where in the whole it is.
type refusal struct{ trail, why string }

// maxDepth is how deep values may be in each other: encoding/json reads no values that are deeper than 10,000.
const maxDepth = 4000

// canonical returns a value as canonical JSON: sorted keys, no white space. what names the value in the TypeError that is
// thrown at the script where it is none.
func (b border) canonical(value goja.Value, what string) []byte {
	w := writer{border: b}
	if r := w.write(value); r != nil {
		panic(b.js.NewTypeError("%s", fmt.Sprintf("%s%s %s; only JSON values can leave a workflow", what, r.trail, r.why)))
	}
	return w.out
}

type writer struct {
	border
	out  []byte
	open []*goja.Object // that are being written, to find one inside itself
	deep int            // these, and what toJSON was called of
}

func refuse(format string, args ...any) *refusal { return &refusal{why: fmt.Sprintf(format, args...)} }

func (w *writer) write(value goja.Value) *refusal {
	switch v := value.(type) {
	case nil:
		return refuse("is undefined")
	case *goja.Object:
		return w.object(v)
	case goja.String:
		return w.text(v)
	case *goja.Symbol:
		return refuse("is a symbol")
	}
	if goja.IsUndefined(value) {
		return refuse("is undefined")
	}
	if f, ok := value.Export().(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return refuse("is %s, which JSON cannot say", value)
	}
	w.out = append(w.out, value.String()...) // null, a boolean, a number or a BigInt
	return nil
}

// text writes a string. Cutting a text in the middle of an emoji leaves half of a pair of code units, which no text can hold;
// the interpreter makes U+FFFD of it.
func (w *writer) text(s goja.String) *refusal {
	text := s.String()
	if strings.ContainsRune(text, '\uFFFD') && halved(s) {
		return refuse("has half of a character (a lone surrogate), as slice leaves it in the middle of an emoji")
	}
	w.out = appendString(w.out, text)
	return nil
}

func halved(s goja.String) bool {
	for i := 0; i < s.Length(); i++ {
		unit := rune(s.CharAt(i))
		switch {
		case !utf16.IsSurrogate(unit):
		case i+1 < s.Length() && utf16.DecodeRune(unit, rune(s.CharAt(i+1))) != '\uFFFD':
			i++
		default:
			return true
		}
	}
	return false
}

func (w *writer) object(o *goja.Object) *refusal {
	if slices.Contains(w.open, o) {
		return refuse("contains itself")
	}
	if w.deep == maxDepth {
		return refuse("is nested deeper than %d values", maxDepth)
	}
	w.deep++
	defer func() { w.deep-- }()
	if _, callable := goja.AssertFunction(o); callable {
		return refuse("is a function")
	}
	list := o.ClassName() == "Array"
	if !list && (o.Prototype() != w.plain || o.Get("toJSON") != nil) {
		if list = w.call(w.isList, goja.Undefined(), o).ToBoolean(); !list {
			if convert, ok := goja.AssertFunction(o.Get("toJSON")); ok {
				return w.write(w.call(convert, o, goja.Undefined()))
			}
			if r := w.other(o); r != nil {
				return r
			}
		}
	}
	w.open = append(w.open, o)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	if list {
		return w.elements(o)
	}
	return w.properties(o)
}

// call calls what a script may have written; what it throws, the script is thrown.
func (w *writer) call(f goja.Callable, this, argument goja.Value) goja.Value {
	value, err := f(this, argument)
	if err != nil {
		panic(err)
	}
	return value
}

// other refuses objects that have their content elsewhere than in properties, such as a RegExp, an Error or a typed array:
// they would be empty.
func (w *writer) other(o *goja.Object) *refusal {
	kind := w.call(w.kindOf, o, goja.Undefined()).String()
	switch kind = strings.TrimSuffix(strings.TrimPrefix(kind, "[object "), "]"); kind {
	case "Object":
		return nil
	case "Promise":
		return refuse("is a promise; await it first")
	case "Map", "Set":
		return refuse("is a Map or Set; make it an object or array first")
	default:
		return refuse("is of the type %s; make it an object, array or text first", kind)
	}
}

func (w *writer) elements(o *goja.Object) *refusal {
	w.out = append(w.out, '[')
	for i := range o.Get("length").ToInteger() {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		place := strconv.FormatInt(i, 10)
		if r := w.write(o.Get(place)); r != nil {
			r.trail = "[" + place + "]" + r.trail
			return r
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *writer) properties(o *goja.Object) *refusal {
	keys := o.Keys()
	slices.SortFunc(keys, compareUTF16)
	w.out = append(w.out, '{')
	first := true
	for _, key := range keys {
		property := o.Get(key)
		if property == nil && strings.ContainsRune(key, '\uFFFD') {
			return refuse("has half of a character (a lone surrogate) in a key, as slice leaves it in the middle of an emoji")
		}
		if property == nil || goja.IsUndefined(property) {
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(appendString(w.out, key), ':')
		if r := w.write(property); r != nil {
			r.trail = "." + key + r.trail
			return r
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// read makes a value of JSON, and returns with it every object in it. Keys are in the one order in which a script sees them,
// whoever wrote them down in between: a script that makes a text of an object makes the same text in a replay. Integers that
// a number cannot hold become BigInt.
func (b border) read(text json.RawMessage) (goja.Value, []any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errMore
	}
	r := reader{border: b}
	return r.value(value), r.objects, nil
}

type reader struct {
	border
	objects []any
}

func (r *reader) value(value any) goja.Value {
	switch v := value.(type) {
	case json.Number:
		return r.number(string(v))
	case []any:
		for i, element := range v {
			v[i] = r.value(element)
		}
		return r.noted(r.js.NewArray(v...))
	case map[string]any:
		object := r.js.NewObject()
		for _, key := range slices.SortedFunc(maps.Keys(v), compareUTF16) {
			define(object, key, r.value(v[key]))
		}
		return r.noted(object)
	default:
		return r.js.ToValue(value)
	}
}

func (r *reader) noted(o *goja.Object) *goja.Object {
	r.objects = append(r.objects, o)
	return o
}

// object makes an object of names and values in turns.
func (b border) object(pairs ...any) *goja.Object {
	o := b.js.NewObject()
	for i := 0; i < len(pairs); i += 2 {
		define(o, pairs[i].(string), b.js.ToValue(pairs[i+1]))
	}
	return o
}

// define makes a property, whatever a script has made of Object.prototype.
func define(o *goja.Object, key string, value goja.Value) {
	_ = o.DefineDataProperty(key, value, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE) // a new object takes any
}

// largestSafe is JavaScript's Number.MAX_SAFE_INTEGER.
const largestSafe = 1<<53 - 1

func (r *reader) number(text string) goja.Value {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err != nil || i > largestSafe || i < -largestSafe {
			n, _ := new(big.Int).SetString(text, 10) // an integer in JSON is one here
			return r.js.ToValue(n)
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // beyond its range it is infinite, as in JavaScript
	return r.js.ToValue(f)
}
