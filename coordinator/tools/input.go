package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// inputSchema checks the input of one tool.
type inputSchema struct{ schema *jsonschema.Schema }

func compileInput(d Description) (*inputSchema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.Input))
	if err != nil {
		return nil, fmt.Errorf("the input schema of the tool %s: %w", d.Name, err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // no scheme: nothing outside of the schema is read
	if err := c.AddResource("mem:input", doc); err != nil {
		return nil, fmt.Errorf("the input schema of the tool %s: %w", d.Name, err)
	}
	schema, err := c.Compile("mem:input")
	if err != nil {
		return nil, fmt.Errorf("the input schema of the tool %s: %w", d.Name, err)
	}
	return &inputSchema{schema}, nil
}

// check says what is wrong with the input of call, by tool and field; nil when nothing is.
func (s *inputSchema) check(call Call) *Failure {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(call.Input))
	if err != nil {
		return failed(InvalidInput, "%s: the input is not JSON: %v", call.Tool, err)
	}
	err = s.schema.Validate(v)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return failed(InvalidInput, "%s: %s", call.Tool, strings.Join(faults(invalid), "; ")).next("repair the `tool` call in the script")
	}
	if err != nil {
		return failed(InvalidInput, "%s: %v", call.Tool, err)
	}
	return nil
}

// faults lists the leaves of a validation error, each with its field.
func faults(e *jsonschema.ValidationError) []string {
	var out []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if _, group := e.ErrorKind.(*kind.Group); len(e.Causes) == 0 && !group {
			text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
			if len(e.InstanceLocation) > 0 {
				text = "input." + strings.Join(e.InstanceLocation, ".") + ": " + text
			}
			out = append(out, text)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(e)
	sort.Strings(out)
	return out
}

// decode reads an input that its schema has accepted.
func decode[T any](call Call) (T, error) {
	var in T
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return in, failed(InvalidInput, "%s: the input does not fit: %v", call.Tool, err)
	}
	return in, nil
}

// encode is json.Marshal without HTML escaping; it is given what always has a JSON form.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a type of this package that JSON cannot hold
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
