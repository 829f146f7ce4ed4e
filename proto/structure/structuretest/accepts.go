package structuretest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Accepts returns what says why an answer does not keep to a format as Ollama means it, where an object with properties has
// no others unless it says so. It reads the format with nothing of ours.
func Accepts(format json.RawMessage) (func(answer string) error, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(format))
	if err != nil {
		return nil, err
	}
	closed(doc)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:format", doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile("mem:format")
	if err != nil {
		return nil, fmt.Errorf("the format %s: %w", format, err)
	}
	return func(answer string) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(answer)))
		if err != nil {
			return fmt.Errorf("no JSON: %w", err)
		}
		return schema.Validate(v)
	}, nil
}

// closed adds to each schema with properties that there are no others. A tuple has its length, too.
func closed(v any) {
	switch s := v.(type) {
	case []any:
		for _, one := range s {
			closed(one)
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		if _, ok := s["properties"]; ok && !has(s, "additionalProperties") && s["type"] == "object" {
			s["additionalProperties"] = false
		}
		if tuple, ok := s["prefixItems"].([]any); ok && s["type"] == "array" {
			s["items"], s["minItems"] = false, json.Number(fmt.Sprint(len(tuple)))
		}
		for _, p := range properties {
			closed(p)
		}
		defs, _ := s["$defs"].(map[string]any)
		for _, d := range defs {
			closed(d)
		}
		for _, key := range []string{"anyOf", "prefixItems", "items", "additionalProperties"} {
			closed(s[key])
		}
	}
}
