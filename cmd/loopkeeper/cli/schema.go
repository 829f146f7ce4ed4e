package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// readSchema reads a file that holds a JSON Schema, and checks that it is one before anything is uploaded.
func readSchema(path string) (json.RawMessage, error) {
	raw, err := readJSON(path)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "%s: not JSON: %v", path, err)
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, apierr.New(apierr.InvalidArgument, "%s: a JSON Schema is an object", path)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // a schema that refers to other places is refused: a worker could not read them
	if err := c.AddResource("mem:schema", doc); err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "%s is not a valid JSON Schema: %v", path, err)
	}
	if _, err := c.Compile("mem:schema"); err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "%s is not a valid JSON Schema: %s", path, schemaFault(err)).
			WithNext("see https://json-schema.org/learn for the format")
	}
	return raw, nil
}

// schemaFault is the first place where a schema is none.
func schemaFault(err error) string {
	var schema *jsonschema.SchemaValidationError
	var fault *jsonschema.ValidationError
	if !errors.As(err, &schema) || !errors.As(schema.Err, &fault) {
		return err.Error()
	}
	for len(fault.Causes) > 0 {
		fault = fault.Causes[0]
	}
	return fmt.Sprintf("/%s: %s", strings.Join(fault.InstanceLocation, "/"), fault.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}
