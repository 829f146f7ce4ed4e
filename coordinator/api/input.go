package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// The formats of a parameter that mean more to us than JSON Schema says.
const (
	// SchemaFormat marks a parameter that holds a JSON Schema.
	SchemaFormat = "json-schema"
	// FileFormat marks a parameter that holds the reference to an uploaded text.
	FileFormat = "file"
)

// checkInput validates the input of a run against the workflow's parameter schema, formats included: a schema within the
// input must be one, and a reference must name a body. A workflow without params takes any input.
func checkInput(params, input json.RawMessage) error {
	if params == nil {
		return nil
	}
	sch, doc, err := compileParams(params)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "the input is not JSON: %v", err).WithNext("loopkeeper run WORKFLOW --params shows what it takes")
	}
	var invalid *jsonschema.ValidationError
	if err := sch.Validate(v); errors.As(err, &invalid) {
		return apierr.New(apierr.InvalidArgument, "the input does not match the workflow's parameters: %s", strings.Join(faults(invalid, fileHint(doc)), "; ")).
			WithNext("loopkeeper run WORKFLOW --params shows what it takes")
	} else if err != nil {
		return apierr.Wrap(err, apierr.Internal, "check the input")
	}
	return nil
}

// compileParams compiles what a workflow says that it takes.
func compileParams(params json.RawMessage) (sch *jsonschema.Schema, doc any, err error) {
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
	c.RegisterFormat(&jsonschema.Format{Name: SchemaFormat, Validate: func(v any) error { _, err := compileValue(v); return err }})
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

// isRef accepts {"ref": sha256, …} and what is no object, which the type says something about.
func isRef(v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if sha, _ := object["ref"].(string); !isDigest(sha) {
		return errors.New("`ref` must be the SHA-256 of an uploaded text")
	}
	return nil
}

func isDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// mostFaults is how many faults of an input are told at once.
const mostFaults = 5

// faults lists the leaves of a validation error as "JSON pointer: what is wrong", each with what hint adds.
func faults(e *jsonschema.ValidationError, hint func(*jsonschema.ValidationError) string) []string {
	var out []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if _, group := e.ErrorKind.(*kind.Group); len(e.Causes) == 0 && !group {
			out = append(out, pointer(e.InstanceLocation)+": "+fault(e.ErrorKind)+hint(e))
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(e)
	sort.Strings(out)
	if more := len(out) - mostFaults; more > 0 {
		out = append(out[:mostFaults], fmt.Sprintf("and %d more", more))
	}
	return out
}

func fault(k jsonschema.ErrorKind) string {
	if f, ok := k.(*kind.Format); ok && f.Want == SchemaFormat {
		return fmt.Sprintf("not a valid JSON Schema: %v", f.Err)
	} else if ok && f.Want == FileFormat {
		return f.Err.Error()
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func noHint(*jsonschema.ValidationError) string { return "" }

// fileHint returns what says how files are given, where something else stands in place of one or of several.
func fileHint(params any) func(*jsonschema.ValidationError) string {
	return func(e *jsonschema.ValidationError) string {
		_, at, _ := strings.Cut(e.SchemaURL, "#")
		part, _ := partAt(params, at).(map[string]any)
		items, _ := part["items"].(map[string]any)
		if _, wrongType := e.ErrorKind.(*kind.Type); !wrongType || part["format"] != FileFormat && items["format"] != FileFormat {
			return ""
		}
		return ` (files are given as "@path")`
	}
}

// partAt is the part of a decoded document at a JSON pointer, nil when there is none.
func partAt(doc any, pointer string) any {
	for _, p := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[unescapes.Replace(p)]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

// escapes of RFC 6901.
var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// pointer is the JSON pointer of a place in a document, "/" for the document itself: an empty one would not be seen.
func pointer(path []string) string {
	if len(path) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, p := range path {
		b.WriteString("/" + escapes.Replace(p))
	}
	return b.String()
}

// namedRef is a reference to a body within an input.
type namedRef struct {
	at, sha, name string
	bytes         float64 // as the reference says, -1 when it does not
}

// refs lists every reference to a body in a decoded document, in the order of its JSON pointers.
func refs(v any) []namedRef {
	var out []namedRef
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			if sha, ok := v["ref"].(string); ok && isDigest(sha) {
				name, _ := v["name"].(string)
				bytes, known := v["bytes"].(float64)
				if !known {
					bytes = -1
				}
				out = append(out, namedRef{pointer(path), sha, name, bytes})
				return
			}
			for key, x := range v {
				walk(x, append(path[:len(path):len(path)], key))
			}
		case []any:
			for i, x := range v {
				walk(x, append(path[:len(path):len(path)], fmt.Sprint(i)))
			}
		}
	}
	walk(v, nil)
	sort.Slice(out, func(a, b int) bool { return out[a].at < out[b].at })
	return out
}
