package structure

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Error says what is wrong in a schema, where, and what to write instead.
type Error struct {
	Pointer string // JSON pointer into the schema; "" is the whole
	Problem string
	Instead string // what to write instead, "" when the problem says it
}

// Error names place, problem and remedy.
func (e *Error) Error() string {
	said := "schema"
	if e.Pointer != "" {
		said += " at " + e.Pointer
	}
	said += ": " + e.Problem
	if e.Instead != "" {
		said += "; " + e.Instead
	}
	return said
}

const (
	insteadOfDepth = "move inner parts into steps of their own, or describe them with a $ref to $defs"
	insteadOfSize  = "ask for less at once, or let several values be a list of one kind"
)

// instead says, by keyword, what a keyword takes.
var instead = map[string]string{
	"type":                 "use object, array, string, integer, number, boolean or null, or a list of these",
	"enum":                 `write a list of different values, such as ["yes", "no"]`,
	"required":             `write a list of names, such as ["a", "b"]`,
	"properties":           `write an object of schemas, such as {"name": {"type": "string"}}`,
	"patternProperties":    patternInstead,
	"$defs":                "write an object of schemas, by name",
	"definitions":          "write an object of schemas, by name",
	"items":                "write one schema for all items; for a tuple use prefixItems",
	"prefixItems":          "write a list of at least one schema",
	"additionalProperties": "write true, false or a schema",
	"anyOf":                "write a list of at least one schema",
	"oneOf":                "write a list of at least one schema",
	"allOf":                "write a list of at least one schema",
	"not":                  "write a schema",
	"pattern":              patternInstead,
	"format":               `write a name such as "date" as a string`,
	"minLength":            countInstead, "maxLength": countInstead, "minItems": countInstead, "maxItems": countInstead,
	"minProperties": countInstead, "maxProperties": countInstead, "minContains": countInstead, "maxContains": countInstead,
	"minimum": numberInstead, "maximum": numberInstead, "exclusiveMinimum": numberInstead, "exclusiveMaximum": numberInstead,
	"multipleOf":  "write a number above 0",
	"uniqueItems": "write true or false",
	"$ref":        insteadOfRef,
}

const (
	countInstead  = "write a whole number of 0 or more"
	numberInstead = "write a number"

	patternInstead = "write a regular expression without look-around and back-references (RE2), or check the value in code"
)

// explainSchema finds the place of the first problem.
func explainSchema(err error) *Error {
	var invalid *jsonschema.SchemaValidationError
	var load *jsonschema.LoadURLError
	var problem *jsonschema.ValidationError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &problem):
		if problems := violations(problem); len(problems) > 0 {
			return &Error{problems[0].pointer, problems[0].problem, remedy(problems[0].pointer)}
		}
	case errors.As(err, &load):
		return &Error{"", fmt.Sprintf("$ref to %s: references must stay inside the schema", load.URL), insteadOfRef}
	}
	return &Error{"", strings.ReplaceAll(err.Error(), schemaURL, ""), ""}
}

// remedy is what the last keyword of a pointer takes.
func remedy(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i := len(parts) - 1; i > 0; i-- {
		if said, ok := instead[parts[i]]; ok {
			return said
		}
	}
	return "write an object that holds a schema"
}
