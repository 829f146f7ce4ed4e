package script

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// CheckInput says whether input is valid against the params schema. Its error is an *apierr.Error of code
// InvalidArgument that names every wrong place. A program without params takes any input.
func (i Interface) CheckInput(input []byte) error {
	if i.ParamsSchema == nil {
		return nil
	}
	schema, err := compileSchema(i.ParamsSchema)
	if err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "the script's params are no valid JSON Schema")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "the input is not JSON")
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &invalid) {
		return apierr.New(apierr.InvalidArgument, "the input does not match the workflow's params: %s", strings.Join(places(invalid), "; "))
	} else if err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "check the input")
	}
	return nil
}

func compileSchema(text []byte) (*jsonschema.Schema, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // a schema never makes us read a file or a URL
	if err := c.AddResource("params", value); err != nil {
		return nil, err
	}
	return c.Compile("params")
}

// places lists the innermost errors as "path: what is wrong".
func places(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		path := strings.Join(e.InstanceLocation, ".")
		if path == "" {
			path = "input"
		}
		return []string{fmt.Sprintf("%s: %s", path, e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, places(cause)...)
	}
	return all
}
