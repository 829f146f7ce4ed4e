package api

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

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// SchemaFormat marks a parameter that holds a JSON Schema.
const SchemaFormat = "json-schema"

// checkInput validates the input of a run against the workflow's parameter schema, and the schemas within it as schemas.
func checkInput(params, input json.RawMessage) error {
	if params == nil {
		return nil
	}
	sch, err := compile("params", params)
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "the workflow's own `params` is no JSON Schema: %v", err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "the input is not JSON: %v", err)
	}
	var invalid *jsonschema.ValidationError
	if err := sch.Validate(v); errors.As(err, &invalid) {
		return apierr.New(apierr.InvalidArgument, "the input does not match the workflow's parameters: %s", strings.Join(faults(invalid), "; ")).
			WithNext("loopkeeper run WORKFLOW --params shows what it takes")
	} else if err != nil {
		return apierr.Wrap(err, apierr.Internal, "check the input")
	}
	return checkSchemas(params, v)
}

// checkSchemas compiles what was given for each top-level parameter that takes a JSON Schema.
func checkSchemas(params json.RawMessage, input any) error {
	var declared struct {
		Properties map[string]struct {
			Format string `json:"format"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(params, &declared); err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "read the workflow's parameters")
	}
	object, _ := input.(map[string]any)
	for name, p := range declared.Properties {
		given, ok := object[name]
		if !ok || p.Format != SchemaFormat {
			continue
		}
		raw, err := json.Marshal(given)
		if err == nil {
			_, err = compile(name, raw)
		}
		if err != nil {
			return apierr.New(apierr.InvalidArgument, "parameter %s is not a valid JSON Schema: %v", name, err).
				WithNext("see https://json-schema.org/learn for the format")
		}
	}
	return nil
}

func compile(name string, raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // no scheme: a schema that refers to the network is refused
	if err := c.AddResource("mem:"+name, doc); err != nil {
		return nil, err
	}
	sch, err := c.Compile("mem:" + name)
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var inner *jsonschema.ValidationError
		if errors.As(invalid.Err, &inner) {
			return nil, errors.New(strings.Join(faults(inner), "; "))
		}
	}
	return sch, err
}

// faults lists the leaves of a validation error, "/files/0: want object, got string", at most five of them.
func faults(e *jsonschema.ValidationError) []string {
	var out []string
	printer := message.NewPrinter(language.English)
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		_, group := e.ErrorKind.(*kind.Group)
		if len(e.Causes) == 0 && !group {
			out = append(out, fmt.Sprintf("/%s: %s", strings.Join(e.InstanceLocation, "/"), e.ErrorKind.LocalizedString(printer)))
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(e)
	sort.Strings(out)
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more", len(out)-5))
	}
	return out
}
