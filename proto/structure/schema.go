// Package structure gets a JSON value of a given shape out of what a language model writes. A JSON Schema is split in
// two: the part that Ollama's grammar was measured to enforce without harm goes out as its format, and the whole of it
// decides about what comes back. The answer is parsed strictly first and repaired only when that fails; time is linear in
// its length, and no value is ever returned that the schema refuses. The package is pure: no I/O, no clock, no models.
package structure

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// printer words the validator's problems.
var printer = message.NewPrinter(language.English)

// Schema is a JSON Schema ready for use: to validate with in full, and to send out as far as Ollama handles it safely.
type Schema struct {
	tree   node
	full   *jsonschema.Schema
	format json.RawMessage
}

// schemaURL names the schema inside the validator; nothing is ever loaded from anywhere.
const schemaURL = "mem:///schema.json"

// maxSchema bounds a schema, in bytes. It is shown to the model with every call, and takes about a token for 4 bytes.
const maxSchema = 256 << 10

// Compile makes a schema ready. Its error is an *Error. Patterns are RE2: look-around and back-references are refused,
// because they have no bounded time. References stay inside the schema. Formats such as date are checked, too. Refused are as
// well: what contradicts itself wherever it stands, what no value satisfies as far as that is certain, and what is too large
// or nested too deep to ask a model for.
func Compile(raw json.RawMessage) (*Schema, error) {
	tree, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	if err := contradiction(tree); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, tree.plain()); err != nil {
		return nil, explainSchema(err)
	}
	full, err := c.Compile(schemaURL)
	if err != nil {
		return nil, explainSchema(err)
	}
	if err := impossible(full); err != nil {
		return nil, err
	}
	if tooDeep(tree) {
		return nil, &Error{"", fmt.Sprintf("nested deeper than %d levels, which no format can ask for", maxFormatDepth), insteadOfDepth}
	}
	return &Schema{tree: tree, full: full, format: formatFor(tree).encode()}, nil
}

func parseSchema(raw json.RawMessage) (node, error) {
	if len(raw) > maxSchema {
		return node{}, &Error{"", fmt.Sprintf("it has %d bytes, at most %d can be shown to a model", len(raw), maxSchema), insteadOfSize}
	}
	tree, err := parseNode(raw, true)
	switch {
	case errors.Is(err, errDepth):
		return tree, &Error{"", err.Error(), insteadOfDepth}
	case err != nil:
		return tree, &Error{"", fmt.Sprintf("not a JSON value: %v", err), `write an object such as {"type": "object", "properties": {…}}`}
	}
	if _, isBool := tree.scalar.(bool); tree.kind != '{' && !isBool {
		return tree, &Error{"", "a schema must be an object", `write an object such as {"type": "object", "properties": {…}}`}
	}
	return tree, nil
}

// Format returns what to send as Ollama's format: all of the schema that it enforces without harm.
func (s *Schema) Format() json.RawMessage { return s.format }

// Text returns the whole schema in compact form, keys in the order in which they were written.
func (s *Schema) Text() string { return string(s.tree.encode()) }

// validate returns every violation as "at /pointer: problem", nil when the value is valid.
func (s *Schema) validate(v node) []string {
	err := s.full.Validate(v.plain())
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{err.Error()}
	}
	var out []string
	for _, p := range violations(invalid) {
		if len(out) == maxViolations {
			return append(out, "and more")
		}
		out = append(out, fmt.Sprintf("at %s: %s", firstNonEmpty(p.pointer, "the top"), p.problem))
	}
	return out
}

// maxViolations bounds a list that a person or a repairing model reads.
const maxViolations = 10

type violation struct{ pointer, problem string }

// violations collects the leaves: the inner nodes only say that something below them failed.
func violations(e *jsonschema.ValidationError) []violation {
	if len(e.Causes) == 0 {
		return []violation{{pointerOf(e.InstanceLocation), e.ErrorKind.LocalizedString(printer)}}
	}
	var out []violation
	for _, c := range e.Causes {
		out = append(out, violations(c)...)
	}
	return out
}

func pointerOf(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
