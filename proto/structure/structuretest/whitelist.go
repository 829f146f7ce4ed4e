package structuretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Whitelisted says what in a format goes beyond what Ollama 0.17.4 was measured to enforce without harm (the table of what
// is enforced in the research on it), or falls into what its converter was read to get wrong; nil when nothing does.
func Whitelisted(format json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(format))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return fmt.Errorf("no object: %w", err)
	}
	c := checker{defs: map[string]any{}}
	if defs, ok := root["$defs"]; ok {
		c.defs, _ = defs.(map[string]any)
		delete(root, "$defs")
	}
	if err := c.schema(root, 0); err != nil {
		return err
	}
	for name, def := range c.defs {
		if !regexp.MustCompile(`^[a-z0-9]+$`).MatchString(name) {
			return fmt.Errorf("a definition named %q: names that differ in punctuation become one rule", name)
		}
		if err := c.schema(def, 0); err != nil {
			return fmt.Errorf("$defs %s: %w", name, err)
		}
		if c.leadsBack(name, def, 0) {
			return fmt.Errorf("$defs %s leads back to itself with nothing in between", name)
		}
	}
	return nil
}

type checker struct{ defs map[string]any }

// most is how deep a format may be; 60 levels were tried.
const most = 70

func (c checker) schema(v any, depth int) error {
	s, ok := v.(map[string]any)
	if !ok || len(s) == 0 || depth > most {
		return fmt.Errorf("%v: no schema object, or too deep", v)
	}
	kind, hasType := s["type"]
	var err error
	switch {
	case s["$ref"] != nil:
		err = c.reference(s)
	case has(s, "const"):
		err = first(only(s, "const"), plain(s["const"]))
	case has(s, "enum"):
		values, _ := s["enum"].([]any)
		err = first(only(s, "enum"), within(len(values), 1, 1000, "values"), plain(values))
	case has(s, "anyOf"):
		err = first(only(s, "anyOf"), c.all(s["anyOf"], depth))
	case !hasType:
		err = fmt.Errorf("no type: %v", s)
	default:
		err = c.typed(s, kind, depth)
	}
	return err
}

func (c checker) typed(s map[string]any, kind any, depth int) error {
	switch kind {
	case "object":
		return first(only(s, "type", "properties", "required", "additionalProperties"), c.object(s, depth))
	case "array":
		return first(only(s, "type", "items", "prefixItems", "minItems", "maxItems"), c.array(s, depth))
	case "string":
		return first(only(s, "type", "pattern", "format", "minLength", "maxLength"), text(s))
	case "integer":
		return first(only(s, "type", "minimum", "maximum"), whole(s))
	case "number", "boolean", "null":
		return only(s, "type")
	}
	names, ok := kind.([]any)
	if !ok || len(names) == 0 {
		return fmt.Errorf("type %v", kind)
	}
	for i, name := range names {
		known := slices.Contains([]any{"object", "array", "string", "integer", "number", "boolean", "null"}, name)
		if !known || slices.Contains(names[:i], name) {
			return fmt.Errorf("type %v", kind)
		}
	}
	return only(s, "type")
}

func (c checker) reference(s map[string]any) error {
	ref, _ := s["$ref"].(string)
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok || !has(c.defs, name) {
		return fmt.Errorf("$ref %q", ref)
	}
	return only(s, "$ref")
}

func (c checker) leadsBack(name string, v any, depth int) bool {
	s, _ := v.(map[string]any)
	ref, _ := s["$ref"].(string)
	if to := strings.TrimPrefix(ref, "#/$defs/"); ref != "" {
		return to == name || depth < 100 && c.leadsBack(name, c.defs[to], depth+1)
	}
	alternatives, _ := s["anyOf"].([]any)
	return slices.ContainsFunc(alternatives, func(one any) bool { return depth < 100 && c.leadsBack(name, one, depth+1) })
}

func (c checker) all(v any, depth int) error {
	schemas, ok := v.([]any)
	if !ok || len(schemas) == 0 {
		return fmt.Errorf("an empty list of schemas")
	}
	for i, s := range schemas {
		if err := c.schema(s, depth+1); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}

func (c checker) object(s map[string]any, depth int) error {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range required {
		if n, ok := name.(string); !ok || !has(properties, n) {
			return fmt.Errorf("required %v is no property", name)
		}
	}
	additional, open := s["additionalProperties"]
	open = open && additional != false
	for name, p := range properties {
		if name == "" || name == "*" || name == "$ref" || len(name) > 210 {
			return fmt.Errorf("a property named %.20q", name)
		}
		if open && !regexp.MustCompile(`^[A-Za-z0-9_]+$`).MatchString(name) {
			return fmt.Errorf("other keys beside %q, which is not escaped then", name)
		}
		if err := c.schema(p, depth+1); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	if _, isBool := additional.(bool); additional == nil || isBool {
		return nil
	}
	return c.schema(additional, depth+1)
}

func (c checker) array(s map[string]any, depth int) error {
	if has(s, "prefixItems") {
		return first(only(s, "type", "prefixItems"), c.all(s["prefixItems"], depth))
	}
	if !has(s, "items") {
		return only(s, "type")
	}
	return first(bounds(s, "minItems", "maxItems", 2001), c.schema(s["items"], depth+1))
}

func text(s map[string]any) error {
	switch {
	case has(s, "pattern"):
		return first(only(s, "type", "pattern"), pattern(s["pattern"]))
	case has(s, "format"):
		if !slices.Contains([]any{"date", "time", "date-time", "uuid"}, s["format"]) {
			return fmt.Errorf("format %v", s["format"])
		}
		return only(s, "type", "format")
	}
	return bounds(s, "minLength", "maxLength", 2000)
}

// pattern: anchored, ASCII, positive classes, no escapes, and no loop over what may be nothing.
func pattern(v any) error {
	p, _ := v.(string)
	bad := fmt.Errorf("pattern %q", p)
	if len(p) < 3 || p[0] != '^' || p[len(p)-1] != '$' || strings.ContainsAny(p, `\"`) || strings.Contains(p, "(?") || strings.Contains(p, "[^") {
		return bad
	}
	if strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r > '~' }) || regexp.MustCompile(`\.`).MatchString(classes.ReplaceAllString(p, "")) {
		return bad
	}
	parsed, err := syntax.Parse(p[1:len(p)-1], syntax.Perl)
	if err != nil || loops(parsed) {
		return bad
	}
	return nil
}

var classes = regexp.MustCompile(`\[[^\]]*\]`)

func loops(p *syntax.Regexp) bool {
	repeats := p.Op == syntax.OpStar || p.Op == syntax.OpPlus || p.Op == syntax.OpQuest || p.Op == syntax.OpRepeat
	if repeats && empty(p.Sub[0]) {
		return true
	}
	return slices.ContainsFunc(p.Sub, loops)
}

// empty says whether a pattern matches nothing.
func empty(p *syntax.Regexp) bool {
	matched, err := regexp.MatchString("^(?:"+p.String()+")$", "")
	return err != nil || matched
}

// whole: small numbers were tried. One bound alone the converter was read to get wrong where a minimum has a zero within, and
// where a maximum is below 0.
func whole(s map[string]any) error {
	low, hasLow := s["minimum"]
	high, hasHigh := s["maximum"]
	least, errLow := strconv.ParseInt(fmt.Sprint(low), 10, 64)
	greatest, errHigh := strconv.ParseInt(fmt.Sprint(high), 10, 64)
	switch {
	case hasLow && (errLow != nil || least < -1e15 || least > 1e15), hasHigh && (errHigh != nil || greatest < -1e15 || greatest > 1e15):
	case hasLow && hasHigh && least > greatest:
	case hasLow && !hasHigh && regexp.MustCompile(`^[1-9][0-9]*0[0-9]+$`).MatchString(fmt.Sprint(low)):
	case hasHigh && !hasLow && greatest < 0:
	default:
		return nil
	}
	return fmt.Errorf("minimum %v, maximum %v", low, high)
}

func bounds(s map[string]any, low, high string, limit int) error {
	least, greatest := 0, limit
	var err error
	if v, ok := s[low]; ok {
		if least, err = strconv.Atoi(fmt.Sprint(v)); err != nil {
			return err
		}
	}
	if v, ok := s[high]; ok {
		if greatest, err = strconv.Atoi(fmt.Sprint(v)); err != nil {
			return err
		}
	}
	if least < 0 || least > greatest || greatest > limit {
		return fmt.Errorf("%s %d, %s %d", low, least, high, greatest)
	}
	return nil
}

// plain values come out of the converter as they went in: numbers within float64, and no "$ref", which it looks for everywhere.
func plain(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "$ref" {
				return fmt.Errorf("a value with a $ref")
			}
			if err := plain(v[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := plain(one); err != nil {
				return err
			}
		}
	case json.Number:
		f, err := v.Float64()
		meant, ok := new(big.Rat).SetString(v.String())
		_, whole := v.Int64()
		if read, okToo := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64)); whole != nil && (err != nil || !ok || !okToo || read.Cmp(meant) != 0) {
			return fmt.Errorf("the number %s", v)
		}
	}
	return nil
}

func only(s map[string]any, keys ...string) error {
	for key := range s {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("the keyword %s in %v", key, slices.Sorted(maps.Keys(s)))
		}
	}
	return nil
}

func within(n, least, most int, what string) error {
	if n < least || n > most {
		return fmt.Errorf("%d %s", n, what)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func has(m map[string]any, key string) bool { _, ok := m[key]; return ok }
