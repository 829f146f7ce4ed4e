// Package prompts holds the texts that models are given, as versioned artifacts: a run pins the versions that it uses, so
// that the same run asks the same words, and people can read them and put their own in their place. The package knows no
// model and no run; what a text is filled with comes from its callers.
//
// A text is the same bytes in every call. Nothing in it may vary with time, id or count, because the most shared text
// comes first and Ollama finds it in its cache only while it is the same.
package prompts

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// The names of the texts.
const (
	PlanRole         = "plan_role"         // opens every plan
	PlanThink        = "plan_think"        // asks for the free thoughts about a plan
	PlanFields       = "plan_fields"       // asks for the plan's fields
	PlanEach         = "plan_each"         // the field for template steps, where there are lists
	PlanFacts        = "plan_facts"        // stands over what is verified
	PlanLeads        = "plan_leads"        // stands over what was only said
	PlanRepair       = "plan_repair"       // shows a refused plan and what was wrong with it
	CheckRole        = "check_role"        // opens every question about a text
	CheckAbsence     = "check_absence"     // follows a criterion about what must not be there
	CheckThink       = "check_think"       // asks for the free answer
	CheckFields      = "check_fields"      // asks for the answer's fields
	CheckAgain       = "check_again"       // asks once more, after words that stand nowhere
	GenerateFeedback = "generate_feedback" // says why an earlier answer was sent back
	SchemaNote       = "schema_note"       // shows the schema of a value
)

//go:embed texts/*.txt
var files embed.FS

var defaults = func() map[string]string {
	out := map[string]string{}
	for name := range rules {
		raw, err := files.ReadFile("texts/" + name + ".txt")
		if err != nil { // cannot be: a test reads every one
			continue
		}
		out[name] = trim(string(raw))
	}
	return out
}()

// Set is texts by name that stand in the place of the defaults; a name that it lacks has the default. The zero value is
// all defaults.
type Set map[string]string

// Default returns every text under its name.
func Default() Set { return maps.Clone(defaults) }

// Names returns the names of all texts, sorted.
func Names() []string { return slices.Sorted(maps.Keys(defaults)) }

// Text returns the text of that name, empty where there is none.
func (s Set) Text(name string) string {
	if text, ok := s[name]; ok {
		return text
	}
	return defaults[name]
}

// Prompt is one text as people see it.
type Prompt struct {
	Name    string
	Version string // of the text, see Version
	SHA256  string // of the text, hex
	Text    string
	Changed bool // it is not the default
}

// List returns all texts, sorted by name.
func (s Set) List() []Prompt {
	var out []Prompt
	for _, name := range Names() {
		text := s.Text(name)
		out = append(out, Prompt{Name: name, Version: Version(text), SHA256: sum(text), Text: text, Changed: text != defaults[name]})
	}
	return out
}

// versionLength is how many hex digits tell versions of one text apart for people.
const versionLength = 12

// Version returns the first 12 hex digits of the text's SHA-256.
func Version(text string) string { return sum(text)[:versionLength] }

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// trim drops what an editor leaves at the end of a file.
func trim(text string) string {
	return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), " \t\n")
}
