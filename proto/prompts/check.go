package prompts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxText bounds one text, in bytes: it is sent with every call.
const maxText = 16 << 10

// rule is what a text must have to do its work.
type rule struct {
	placeholders []string // that it is filled with: each has to occur, and no other may
	words        []string // that have to occur: names of fields, answers
	free         bool     // it asks for free thoughts: to ask for a format there makes small models worse (judgement §3)
}

var rules = map[string]rule{
	PlanRole:  {free: true},
	PlanThink: {placeholders: []string{"max_steps"}, free: true},
	PlanFields: {placeholders: []string{"max_steps"}, words: []string{"a_note", "b_outcome", "c_questions", "d_steps", "a_n", "b_parts",
		"c_instruction", "d_worker", "e_reads", "f_writes", "g_after", "h_done_when", "need_info", "impossible"}},
	PlanEach:         {words: []string{"i_each"}},
	PlanFacts:        {free: true},
	PlanLeads:        {free: true},
	PlanRepair:       {placeholders: []string{"plan", "violations"}, free: true},
	CheckRole:        {free: true},
	CheckAbsence:     {free: true},
	CheckThink:       {placeholders: []string{"answers"}, free: true},
	CheckFields:      {placeholders: []string{"answers"}, words: []string{"a_evidence", "a_line", "b_words", "b_against", "c_reason", "d_result"}},
	CheckAgain:       {placeholders: []string{"words"}, free: true},
	GenerateFeedback: {placeholders: []string{"reasons"}, free: true},
	SchemaNote:       {placeholders: []string{"schema"}},
}

// Error says which text cannot be used, and why.
type Error struct {
	File   string // NAME.txt
	Reason string
}

// Error names file and reason.
func (e *Error) Error() string { return fmt.Sprintf("prompt %s: %s", e.File, e.Reason) }

// Check says whether a text can stand under that name; its error is an *Error.
func Check(name, text string) error {
	refuse := func(format string, args ...any) error {
		return &Error{File: name + extension, Reason: fmt.Sprintf(format, args...)}
	}
	r, ok := rules[name]
	switch {
	case !ok:
		return refuse("there is no prompt of that name; there are %s", strings.Join(Names(), ", "))
	case !utf8.ValidString(text):
		return refuse("it is not UTF-8")
	case strings.TrimSpace(text) == "":
		return refuse("it is empty")
	case len(text) > maxText:
		return refuse("it has %d bytes, and at most %d are allowed", len(text), maxText)
	case r.free && strings.Contains(strings.ToUpper(text), "JSON"):
		return refuse("it speaks of JSON; models think better when they are not asked for a format yet")
	}
	named := placeholders(text)
	for _, p := range r.placeholders {
		if !slices.Contains(named, p) {
			return refuse("it lacks {{%s}}", p)
		}
	}
	for _, p := range named {
		if !slices.Contains(r.placeholders, p) {
			return refuse("nothing is known to put in the place of {{%s}}", p)
		}
	}
	for _, w := range r.words {
		if !strings.Contains(text, w) {
			return refuse("it does not name %s", w)
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

func placeholders(text string) []string {
	var out []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// Fill returns the text of that name with each placeholder replaced by its value. Braces inside a value are left alone.
func (s Set) Fill(name string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(s.Text(name), func(found string) string {
		if value, ok := values[placeholder.FindStringSubmatch(found)[1]]; ok {
			return value
		}
		return found
	})
}

// With returns the set with these texts in the place of its own. Its error joins one *Error for each text that cannot be used.
func (s Set) With(texts map[string]string) (Set, error) {
	out := maps.Clone(s)
	if out == nil {
		out = Set{}
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := trim(texts[name])
		if err := Check(name, text); err != nil {
			problems = append(problems, err)
			continue
		}
		out[name] = text
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	return out, nil
}

// extension ends the name of every file of texts.
const extension = ".txt"

// Load reads the files NAME.txt of a folder as texts that stand in the place of the defaults. Other files are left alone;
// a .txt that is no prompt's is an error, because it is most likely a slip in the name.
func Load(folder fs.FS) (Set, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("read the folder of prompts: %w", err)
	}
	texts := map[string]string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), extension)
		if !ok || e.IsDir() {
			continue
		}
		raw, err := fs.ReadFile(folder, e.Name())
		if err != nil {
			return nil, fmt.Errorf("read a prompt: %w", err)
		}
		texts[name] = string(raw)
	}
	return Set(nil).With(texts)
}
