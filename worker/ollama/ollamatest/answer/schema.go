package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	orderedmap "github.com/wk8/go-ordered-map/v2"
)

// properties keep the order of the schema's text, which is the order of the answer.
type properties = orderedmap.OrderedMap[string, json.RawMessage]

// schema is the part of JSON Schema that answers are built from.
type schema struct {
	Ref         string            `json:"$ref"`
	Type        typeNames         `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AllOf       []json.RawMessage `json:"allOf"`
	Not         json.RawMessage   `json:"not"`
	Properties  *properties       `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	PatternProp *properties       `json:"patternProperties"`
	KeyNames    json.RawMessage   `json:"propertyNames"`
	MinKeys     *float64          `json:"minProperties"`
	Items       json.RawMessage   `json:"items"`
	Prefix      []json.RawMessage `json:"prefixItems"`
	Contains    json.RawMessage   `json:"contains"`
	MinItems    *float64          `json:"minItems"`
	MaxItems    *float64          `json:"maxItems"`
	Unique      bool              `json:"uniqueItems"`
	Pattern     *string           `json:"pattern"`
	Format      string            `json:"format"`
	MinLength   *float64          `json:"minLength"`
	MaxLength   *float64          `json:"maxLength"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	Above       *float64          `json:"exclusiveMinimum"`
	Below       *float64          `json:"exclusiveMaximum"`
	Multiple    *float64          `json:"multipleOf"`
}

// typeNames is one type or a list of them.
type typeNames []string

func (t *typeNames) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = typeNames{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

var errDepth = errors.New("the schema refers to itself without end")

// parse reads one schema and resolves its references and allOf into it.
func (b *builder) parse(raw json.RawMessage, hops int) (*schema, error) {
	if hops > 32 {
		return nil, errDepth
	}
	s := &schema{}
	if text := string(bytes.TrimSpace(raw)); text == "true" || text == "false" || text == "" {
		return s, nil
	}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	parts := slices.Clone(s.AllOf)
	if s.Ref != "" {
		target, err := b.resolve(s.Ref)
		if err != nil {
			return nil, err
		}
		parts = append(parts, target)
	}
	for _, p := range parts {
		other, err := b.parse(p, hops+1)
		if err != nil {
			return nil, err
		}
		s.merge(other)
	}
	if len(s.Items) > 0 && s.Items[0] == '[' { // the tuples of draft 7
		if err := json.Unmarshal(s.Items, &s.Prefix); err != nil {
			return nil, err
		}
		s.Items = nil
	}
	return s, nil
}

// resolve follows a reference within the document.
func (b *builder) resolve(ref string) (json.RawMessage, error) {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("reference %q cannot be followed", ref)
	}
	at := b.root
	for part := range strings.SplitSeq(path, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(at, &object); err != nil || object[part] == nil {
			return nil, fmt.Errorf("reference %q leads nowhere", ref)
		}
		at = object[part]
	}
	return at, nil
}

// merge adds what another schema, which also applies, asks for. Where both say something, s wins, but for properties.
func (s *schema) merge(o *schema) {
	if s.Properties == nil {
		s.Properties = o.Properties
	} else if o.Properties != nil {
		for p := o.Properties.Oldest(); p != nil; p = p.Next() {
			if _, ok := s.Properties.Get(p.Key); !ok {
				s.Properties.Set(p.Key, p.Value)
			}
		}
	}
	s.Required = append(s.Required, o.Required...)
	s.Type, s.Enum = orSlice(s.Type, o.Type), orSlice(s.Enum, o.Enum)
	s.Const, s.Items = orSlice(s.Const, o.Const), orSlice(s.Items, o.Items)
	s.Additional, s.KeyNames = orSlice(s.Additional, o.Additional), orSlice(s.KeyNames, o.KeyNames)
	s.AnyOf, s.OneOf, s.Prefix = orSlice(s.AnyOf, o.AnyOf), orSlice(s.OneOf, o.OneOf), orSlice(s.Prefix, o.Prefix)
	s.MinItems, s.MaxItems = orPointer(s.MinItems, o.MinItems), orPointer(s.MaxItems, o.MaxItems)
	s.MinLength, s.MaxLength = orPointer(s.MinLength, o.MinLength), orPointer(s.MaxLength, o.MaxLength)
	s.Minimum, s.Maximum = orPointer(s.Minimum, o.Minimum), orPointer(s.Maximum, o.Maximum)
	s.Above, s.Below = orPointer(s.Above, o.Above), orPointer(s.Below, o.Below)
	s.Multiple, s.Pattern = orPointer(s.Multiple, o.Multiple), orPointer(s.Pattern, o.Pattern)
	if s.Format == "" {
		s.Format = o.Format
	}
	s.Unique = s.Unique || o.Unique
}

func orSlice[S ~[]E, E any](a, b S) S {
	if len(a) > 0 {
		return a
	}
	return b
}

func orPointer[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// kind is the type the value will have; null only when nothing else is allowed.
func (s *schema) kind() string {
	for _, t := range s.Type {
		if t != "null" {
			return t
		}
	}
	switch {
	case len(s.Type) > 0:
		return "null"
	case s.Properties != nil, len(s.Additional) > 0, s.PatternProp != nil, len(s.Required) > 0:
		return "object"
	case len(s.Items) > 0, len(s.Prefix) > 0:
		return "array"
	}
	return ""
}

func number(p *float64, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return int(*p)
}
