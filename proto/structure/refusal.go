package structure

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
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

// contradiction finds the first place where a schema cannot mean what it says, wherever it stands: a minimum above its
// maximum, an enum without values, a reference to nothing. Some of them make a server hang; none of them is ever meant.
func contradiction(root node) *Error {
	var found *Error
	subschemas(root, func(at string, s node) {
		if found == nil {
			found = contradicts(root, s)
			if found != nil {
				found.Pointer = at + found.Pointer
			}
		}
	})
	return found
}

func contradicts(root, s node) *Error {
	if values, ok := s.get("enum"); ok && values.kind == '[' && len(values.items) == 0 {
		return &Error{"/enum", "an empty enum allows no value", "list at least one value, or leave enum out"}
	}
	for _, key := range counts {
		if n, ok := rational(s, key); ok && n.Cmp(mostCounted) > 0 {
			return &Error{"/" + key, fmt.Sprintf("%s is above %s, more than any answer has", key, mostCounted.RatString()), "write a smaller number, or leave it out"}
		}
	}
	for _, pair := range pairs {
		if err := crossed(s, pair.low, pair.high, pair.strict); err != nil {
			return err
		}
	}
	return misreference(root, s)
}

// counts are the keywords that count something. The validator keeps them in machine words, where larger ones wrap around.
var (
	counts      = []string{"minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties"}
	mostCounted = big.NewRat(1<<30, 1)
)

// pairs are the keywords of which the first must not be above the second, strict ones not even equal to it.
var pairs = []struct {
	low, high string
	strict    bool
}{
	{"minimum", "maximum", false}, {"minimum", "exclusiveMaximum", true}, {"exclusiveMinimum", "maximum", true},
	{"exclusiveMinimum", "exclusiveMaximum", true}, {"minLength", "maxLength", false}, {"minItems", "maxItems", false},
	{"minContains", "maxContains", false}, {"minProperties", "maxProperties", false},
}

func crossed(s node, low, high string, strict bool) *Error {
	least, ok := rational(s, low)
	most, okToo := rational(s, high)
	if !ok || !okToo || least.Cmp(most) < 0 || least.Cmp(most) == 0 && !strict {
		return nil
	}
	relation := "is above"
	if least.Cmp(most) == 0 {
		relation = "leaves nothing below"
	}
	return &Error{"/" + low, fmt.Sprintf("%s %s %s %s %s", low, least.RatString(), relation, high, most.RatString()),
		fmt.Sprintf("lower %s or raise %s", low, high)}
}

func rational(s node, key string) (*big.Rat, bool) {
	v, _ := s.get(key)
	return rationalOf(v)
}

func rationalOf(v node) (*big.Rat, bool) {
	number, ok := v.scalar.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(number))
}

// misreference finds a $ref that leads out of the schema or to nothing. What an anchor means, or an $id, the validator knows.
func misreference(root, s node) *Error {
	ref, _ := s.get("$ref")
	target, ok := ref.scalar.(string)
	if !ok || hasID(root) || strings.Contains(target, "%") {
		return nil
	}
	if !strings.HasPrefix(target, "#") {
		return &Error{"/$ref", fmt.Sprintf("%q lies outside of the schema, and nothing outside is read", target), insteadOfRef}
	}
	if _, found := at(root, target); !found && strings.HasPrefix(target, "#/") {
		return &Error{"/$ref", fmt.Sprintf("there is nothing at %q", target), insteadOfRef}
	}
	return nil
}

const insteadOfRef = `put what it means into $defs and refer to "#/$defs/NAME"`

// hasID says whether a schema, or one within it, names itself, so that a reference may mean something else than it says.
func hasID(root node) bool {
	found := false
	subschemas(root, func(_ string, s node) { found = found || has(s, "$id") })
	return found
}
