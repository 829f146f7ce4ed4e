package ui

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// WriteJSON prints v indented, for people and tools alike.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteJSONLine prints v on one line.
func WriteJSONLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Plain turns a message into what its JSON should be for people: numbers are numbers, a bytes field named x_json is the
// JSON it holds under the name x, times are RFC 3339, and every field is there, unknown ones as null.
func Plain(m proto.Message) map[string]any {
	r := m.ProtoReflect()
	out := map[string]any{}
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.ContainingOneof() != nil && !f.HasOptionalKeyword() && !r.Has(f) {
			continue
		}
		name, raw := strings.CutSuffix(string(f.Name()), "_json")
		out[name] = plainField(r, f, raw && f.Kind() == protoreflect.BytesKind)
	}
	return out
}

func plainField(r protoreflect.Message, f protoreflect.FieldDescriptor, raw bool) any {
	v := r.Get(f)
	switch {
	case f.IsList():
		list := make([]any, 0, v.List().Len())
		for i := range v.List().Len() {
			list = append(list, plainValue(v.List().Get(i), f, raw))
		}
		return list
	case f.IsMap():
		named := map[string]any{}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			named[k.String()] = plainValue(v, f.MapValue(), raw)
			return true
		})
		return named
	case f.HasPresence() && !r.Has(f):
		return nil
	default:
		return plainValue(v, f, raw)
	}
}

func plainValue(v protoreflect.Value, f protoreflect.FieldDescriptor, raw bool) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if t, ok := v.Message().Interface().(*timestamppb.Timestamp); ok {
			return t.AsTime().Format(time.RFC3339Nano)
		}
		return Plain(v.Message().Interface())
	case protoreflect.EnumKind:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	case protoreflect.BytesKind:
		if raw {
			return Raw(v.Bytes())
		}
	}
	return v.Interface()
}

// Raw is JSON to be embedded as it is; nothing is null.
func Raw(b []byte) any {
	if len(b) == 0 || !json.Valid(b) {
		return nil
	}
	return json.RawMessage(b)
}
