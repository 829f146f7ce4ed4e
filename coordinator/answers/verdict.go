package answers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// verdict is what a judge concluded, see docs/requests.md. Facts are quotes that code found in the sources; opinions are the
// model's own words, and stay apart.
type verdict struct {
	Verdict  string            `json:"verdict"`
	Reasons  []string          `json:"reasons"`
	Facts    []json.RawMessage `json:"facts"`
	Opinions []json.RawMessage `json:"opinions"`
}

func readVerdict(raw json.RawMessage) (v verdict, ok bool) {
	return v, json.Unmarshal(raw, &v) == nil && v.Verdict != ""
}

// facts are the quotes for people, each with where it stands.
func (v verdict) facts() []string {
	var out []string // a quote may stand behind several criteria
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, raw := range v.Facts {
		var f struct {
			Quote string `json:"quote"`
			In    string `json:"in"`
			Line  int    `json:"line"`
		}
		switch {
		case json.Unmarshal(raw, &f) != nil || f.Quote == "":
			add(plain(raw))
		case f.Line > 0:
			add(fmt.Sprintf("%q in %s, line %d", f.Quote, f.In, f.Line))
		default:
			add(fmt.Sprintf("%q in %s", f.Quote, f.In))
		}
	}
	return out
}

func (v verdict) opinions() []string {
	var out []string
	for _, raw := range v.Opinions {
		out = append(out, plain(raw))
	}
	return out
}

// plain is a JSON text without its quotes, anything else as it is.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	return string(raw)
}
