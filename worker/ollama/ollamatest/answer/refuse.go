package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// refused says why Ollama 0.17.4 refuses a schema with "invalid JSON schema in format" (research: judgement §1.3). It
// knows the commonest reasons, not all.
func refused(raw json.RawMessage) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	return refusedValue(v, 0)
}

var typeWords = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func refusedValue(v any, depth int) error {
	if depth > 200 {
		return errDepth
	}
	s, ok := v.(map[string]any)
	if !ok {
		return errors.New("a schema must be an object")
	}
	if err := refusedKeywords(s); err != nil {
		return err
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, sub := range list {
			if err := refusedValue(sub, depth+1); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"properties", "$defs", "definitions"} {
		subs, _ := s[key].(map[string]any)
		for name, sub := range subs {
			if err := refusedValue(sub, depth+1); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		return refusedValue(items, depth+1)
	}
	return nil
}

func refusedKeywords(s map[string]any) error {
	if t, ok := s["type"].(string); ok && !slices.Contains(typeWords, t) {
		return fmt.Errorf("type %q is unknown", t)
	}
	if p, ok := s["pattern"].(string); ok && !(strings.HasPrefix(p, "^") && strings.HasSuffix(p, "$")) {
		return fmt.Errorf("pattern %q is not anchored", p)
	}
	if r, ok := s["$ref"].(string); ok && (!strings.HasPrefix(r, "#/") || r == "#/") {
		return fmt.Errorf("reference %q", r)
	}
	described := false
	for _, key := range []string{"type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "additionalProperties", "items", "prefixItems", "pattern", "format"} {
		if _, ok := s[key]; ok {
			described = true
		}
	}
	if !described && len(s) > 0 {
		return errors.New("nothing says what kind of value it is")
	}
	return nil
}
