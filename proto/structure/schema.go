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

// Error says what is wrong in a schema, and where.
type Error struct {
	Pointer string // JSON pointer into the schema; "" is the whole
	Problem string
}

// Error names place and problem.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return "schema: " + e.Problem
	}
	return fmt.Sprintf("schema at %s: %s", e.Pointer, e.Problem)
}

// Compile makes a schema ready. Its error is an *Error. Patterns are RE2: look-around and back-references are refused,
// because they have no bounded time. References stay inside the schema. Formats such as date are checked, too. A schema that
// no value satisfies is refused, as far as that is certain, and so is one nested too deep to ask a model for.
func Compile(raw json.RawMessage) (*Schema, error) {
	tree, err := parseNode(raw, true)
	switch {
	case errors.Is(err, errDepth):
		return nil, &Error{Problem: err.Error()}
	case err != nil:
		return nil, &Error{Problem: fmt.Sprintf("not a JSON value: %v", err)}
	}
	_, isBool := tree.scalar.(bool)
	if tree.kind != '{' && !isBool {
		return nil, &Error{Problem: "must be an object"}
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
		return nil, &Error{Problem: fmt.Sprintf("nested deeper than %d levels, which no format can ask for", maxFormatDepth)}
	}
	return &Schema{tree: tree, full: full, format: formatFor(tree)}, nil
}

// Format returns what to send as Ollama's format: all of the schema that it enforces without harm.
func (s *Schema) Format() json.RawMessage { return s.format }

// Text returns the whole schema in compact form, keys in the order in which they were written.
func (s *Schema) Text() string { return string(s.tree.encode()) }

// explainSchema finds the place of the first problem.
func explainSchema(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var regex *jsonschema.InvalidRegexError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid):
		var v *jsonschema.ValidationError
		if errors.As(invalid.Err, &v) {
			problems := violations(v)
			if len(problems) > 0 {
				return &Error{Pointer: problems[0].pointer, Problem: problems[0].problem}
			}
		}
	case errors.As(err, &regex):
		_, pointer, _ := strings.Cut(regex.URL, "#")
		return &Error{Pointer: pointer, Problem: fmt.Sprintf("pattern %q: %v", regex.Regex, regex.Err)}
	case errors.As(err, &load):
		return &Error{Problem: fmt.Sprintf("$ref to %s: references must stay inside the schema", load.URL)}
	}
	return &Error{Problem: strings.ReplaceAll(err.Error(), schemaURL, "")}
}

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
