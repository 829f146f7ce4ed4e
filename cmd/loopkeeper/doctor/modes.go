package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode is how a model was found to give values.
type Mode struct {
	Model   string
	Way     string // in words, such as "generate"
	Version string // of the Ollama that was asked
	Probed  time.Time
	None    bool // no way was found on which a format is applied
}

// modes says how values are asked for, and of which models it was found that none of the ways works. What nobody has asked for
// yet is not known, and nothing to be said about.
func modes(all []Mode) (found []Finding) {
	var words []string
	for _, m := range slices.SortedFunc(slices.Values(all), func(a, b Mode) int { return strings.Compare(a.Model, b.Model) }) {
		when := m.Probed.Local().Format("2006-01-02 15:04")
		if !m.None {
			words = append(words, fmt.Sprintf("%s by %s (Ollama %s, probed %s)", m.Model, m.Way, m.Version, when))
			continue
		}
		found = append(found, Finding{Warning, "formats", fmt.Sprintf("Ollama %s applies no format with %s, as was probed %s: values are taken out of its text, and many are none", m.Version, m.Model, when),
			"update Ollama, or give another model the steps that plan, judge or have a schema"})
	}
	if len(words) > 0 {
		found = append([]Finding{{OK, "formats", strings.Join(words, "; "), ""}}, found...)
	}
	return found
}
