package params

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

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
		return f.Err.Error()
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
