package calls

import (
	"fmt"
	"regexp"
	"strings"
)

var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// fill puts the item into a template. Only the template is looked at: braces in a body stay as they are. An item that
// the template does not name is appended, so that it is never lost; a name that nobody knows is an error.
func fill(template string, item *string) (string, error) {
	var problem error
	used := false
	out := placeholder.ReplaceAllStringFunc(template, func(found string) string {
		name := strings.TrimSpace(strings.Trim(found, "{}"))
		switch {
		case name != "item":
			problem = fmt.Errorf("unknown placeholder %s: only {{item}} is known", found)
		case item == nil:
			problem = fmt.Errorf("the prompt says {{item}} but there is no item")
		default:
			used = true
			return neutralise(*item)
		}
		return found
	})
	if problem == nil && item != nil && !used {
		out += "\n\n" + neutralise(*item)
	}
	return out, problem
}

// sections joins the parts of a prompt, empty ones left out. The order is the caller's: most shared first, so that
// Ollama finds the prefix in its cache.
func sections(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if strings.TrimSpace(p) != "" {
			kept = append(kept, strings.TrimRight(p, "\n"))
		}
	}
	return strings.Join(kept, "\n\n")
}

func neutralised(bodies []string) string {
	var out []string
	for _, b := range bodies {
		out = append(out, neutralise(b))
	}
	return sections(out...)
}
