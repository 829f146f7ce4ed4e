// Package params checks what people and scripts hand in against the JSON Schema that a workflow or a question declares.
package params

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// The formats of a parameter that mean more to us than JSON Schema says.
const (
	// SchemaFormat marks a parameter that holds a JSON Schema.
	SchemaFormat = "json-schema"
	// FileFormat marks a parameter that holds the reference to an uploaded text.
	FileFormat = "file"
)

// Check validates the input of a run against the workflow's parameter schema, formats included: a schema within the
// input must be one, and a reference must name a body. InvalidArgument says what does not fit. A workflow without params takes any input.
func Check(params, input json.RawMessage) error {
	if params == nil {
		return nil
	}
	sch, doc, err := compile(params)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "the input is not JSON: %v", err).WithNext("loopkeeper run WORKFLOW --params  # shows what it takes")
	}
	var invalid *jsonschema.ValidationError
	if err := sch.Validate(v); errors.As(err, &invalid) {
		return apierr.New(apierr.InvalidArgument, "the input does not match the workflow's parameters: %s", strings.Join(faults(invalid, fileHint(doc)), "; ")).
			WithNext("loopkeeper run WORKFLOW --params  # shows what it takes")
	} else if err != nil {
		return apierr.Wrap(err, apierr.Internal, "check the input")
	}
	return nil
}

// Fits validates a value against a schema, formats included; what names the value, such as "the answer to step 3".
func Fits(schema, value json.RawMessage, what string) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	var sch *jsonschema.Schema
	if err == nil {
		sch, err = compileValue(doc)
	}
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "the schema of %s is none: %v", what, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "%s is not JSON: %v", what, err)
	}
	var invalid *jsonschema.ValidationError
	if err := sch.Validate(v); errors.As(err, &invalid) {
		return apierr.New(apierr.InvalidArgument, "%s does not fit: %s", what, strings.Join(faults(invalid, noHint), "; "))
	} else if err != nil {
		return apierr.Wrap(err, apierr.Internal, "check %s", what)
	}
	return nil
}

// Declared makes sure that what a workflow says that it takes is a JSON Schema.
func Declared(params json.RawMessage) error {
	_, _, err := compile(params)
	return err
}

// compile compiles what a workflow says that it takes.
func compile(params json.RawMessage) (sch *jsonschema.Schema, doc any, err error) {
	if doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(params)); err == nil {
		sch, err = compileValue(doc)
	}
	if err != nil {
		return nil, nil, apierr.New(apierr.InvalidArgument, "the workflow's own `params` is no JSON Schema: %v", err).WithNext("repair the exported `params`")
	}
	return sch, doc, nil
}

// compileValue compiles a decoded schema. Formats are asserted, and nothing outside of the schema is read.
func compileValue(doc any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // no scheme: a schema that refers to a file or the network is refused
	c.RegisterFormat(&jsonschema.Format{Name: SchemaFormat, Validate: isSchema})
	c.RegisterFormat(&jsonschema.Format{Name: FileFormat, Validate: isRef})
	c.AssertFormat()
	const name = "mem:schema"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	sch, err := c.Compile(name)
	var invalid *jsonschema.SchemaValidationError
	var inner *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &inner) {
		return nil, errors.New(strings.Join(faults(inner, noHint), "; "))
	}
	return sch, err
}

// isSchema accepts a schema that a model's answers can be held to.
func isSchema(v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		_, err = structure.Compile(raw)
	}
	return err
}
