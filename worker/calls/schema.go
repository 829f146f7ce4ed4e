package calls

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

// schema is a JSON Schema ready for use: to validate with in full, and to send out as far as Ollama handles it safely.
type schema struct {
	tree   node
	full   *jsonschema.Schema
	format json.RawMessage
}

// schemaURL names the schema inside the validator; nothing is ever loaded from anywhere.
const schemaURL = "mem:///schema.json"

// SchemaError says what is wrong in a schema, and where.
type SchemaError struct {
	Pointer string // JSON pointer into the schema; "" is the whole
	Problem string
}

// Error names place and problem.
func (e *SchemaError) Error() string {
	if e.Pointer == "" {
		return "schema: " + e.Problem
	}
	return fmt.Sprintf("schema at %s: %s", e.Pointer, e.Problem)
}

// CheckSchema says whether raw is a JSON Schema that calls can be made with. The error is a *SchemaError. Patterns are
// RE2: look-around and back-references are refused, because they make no bounded time. References stay inside the schema.
func CheckSchema(raw json.RawMessage) error {
	_, err := compileSchema(raw)
	return err
}

func compileSchema(raw json.RawMessage) (*schema, error) {
	tree, err := parseNode(raw, true)
	if err != nil {
		return nil, &SchemaError{Problem: fmt.Sprintf("not a JSON value: %v", err)}
	}
	_, isBool := tree.scalar.(bool)
	if tree.kind != '{' && !isBool {
		return nil, &SchemaError{Problem: "must be an object"}
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
	return &schema{tree: tree, full: full, format: formatFor(tree)}, nil
}

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
				return &SchemaError{Pointer: problems[0].pointer, Problem: problems[0].problem}
			}
		}
	case errors.As(err, &regex):
		_, pointer, _ := strings.Cut(regex.URL, "#")
		return &SchemaError{Pointer: pointer, Problem: fmt.Sprintf("pattern %q: %v", regex.Regex, regex.Err)}
	case errors.As(err, &load):
		return &SchemaError{Problem: fmt.Sprintf("$ref to %s: references must stay inside the schema", load.URL)}
	}
	return &SchemaError{Problem: strings.ReplaceAll(err.Error(), schemaURL, "")}
}

// validate returns every violation as "at /pointer: problem", nil when the value is valid.
func (s *schema) validate(v node) []string {
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
