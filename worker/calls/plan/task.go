package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// DefaultMaxSteps is how many steps one call plans; what needs more is split first (judgement §4).
const DefaultMaxSteps = 8

// What one call may be asked for. More than this no small model holds together, and the grammar gets slow (judgement §1.4).
const (
	mostSteps   = 40
	mostParts   = 40
	mostWorkers = 40
	mostLists   = 40
	mostInputs  = 200
)

// DefaultWorker is the name of the worker where a task names none; it writes texts.
const DefaultWorker = "write"

// Task is what a plan is made for.
type Task struct {
	Goal     string
	Parts    []string // texts of g1 and on; none: the goal is one part
	Workers  []Worker // none: one that writes texts
	Inputs   []string // names that are there before the first step
	Lists    []List   // that a template step may go over
	MaxSteps int      // 0: DefaultMaxSteps
}

// Worker is somebody whom a step can be given to.
type Worker struct {
	Name         string // [a-z0-9_-]{1,24}
	About        string // what it can do
	Irreversible bool   // what it does cannot be undone: a person is asked before
	Asks         bool   // it asks a person
}

// List is something that the same work can be done for each element of.
type List struct {
	Name  string // [a-z0-9_-]{1,24}
	Count int    // elements
	About string
}

// Filled returns the task with what is left open put in.
func (t Task) Filled() Task {
	if t.MaxSteps <= 0 {
		t.MaxSteps = DefaultMaxSteps
	}
	if len(t.Parts) == 0 {
		t.Parts = []string{t.Goal}
	}
	if len(t.Workers) == 0 {
		t.Workers = []Worker{{Name: DefaultWorker, About: "writes a text: reads, works out, compares, sums up, drafts and checks"}}
	}
	return t
}

var word = regexp.MustCompile(`^[a-z0-9_-]{1,24}$`)

// Check says why nothing can be planned for the task; nil when it can.
func (t Task) Check() error {
	if strings.TrimSpace(t.Goal) == "" {
		return fmt.Errorf("the goal is empty")
	}
	for _, bound := range []struct {
		what       string
		have, most int
	}{{"max_steps", t.MaxSteps, mostSteps}, {"parts", len(t.Parts), mostParts}, {"workers", len(t.Workers), mostWorkers},
		{"lists", len(t.Lists), mostLists}, {"inputs", len(t.Inputs), mostInputs}} {
		if bound.have > bound.most {
			return fmt.Errorf("%s: %d are more than one plan can hold (%d); split the goal", bound.what, bound.have, bound.most)
		}
	}
	var workers, lists []string
	for _, w := range t.Workers {
		workers = append(workers, w.Name)
	}
	for _, l := range t.Lists {
		lists = append(lists, l.Name)
	}
	if err := checkNames("worker", workers); err != nil {
		return err
	}
	return checkNames("list", lists)
}

func checkNames(what string, names []string) error {
	for i, n := range names {
		if !word.MatchString(n) {
			return fmt.Errorf("%s %q: a name has up to 24 of a-z, 0-9, _ and -", what, n)
		}
		if slices.Contains(names[:i], n) {
			return fmt.Errorf("two %ss are called %s", what, n)
		}
	}
	return nil
}

// part is the id of the part with that index.
func part(index int) string { return fmt.Sprintf("g%d", index+1) }

// namePattern is what names of reads and writes look like; an input may be called otherwise.
const namePattern = `^[a-zA-Z0-9_./-]{1,48}$`

var plainName = regexp.MustCompile(namePattern)

// Schema returns what the model fills in: lists as enums, one step and one number more than allowed, so that a plan that
// is too long shows instead of being cut.
func (t Task) Schema() json.RawMessage {
	t = t.Filled()
	var parts, workers []string
	for i := range t.Parts {
		parts = append(parts, part(i))
	}
	for _, w := range t.Workers {
		workers = append(workers, w.Name)
	}
	lists := []string{""}
	for _, l := range t.Lists {
		lists = append(lists, l.Name)
	}
	required, each := `"a_n","b_parts","c_instruction","d_worker","e_reads","f_writes","g_after","h_done_when"`, ""
	if len(t.Lists) > 0 {
		required, each = required+`,"i_each"`, `,"i_each":{"enum":`+list(lists)+`}`
	}
	step := fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":[%s],"properties":{`+
		`"a_n":{"type":"integer","minimum":1,"maximum":%[2]d},`+
		`"b_parts":{"type":"array","minItems":1,"maxItems":%d,"items":{"enum":%s}},`+
		`"c_instruction":{"type":"string","minLength":15,"maxLength":400},`+
		`"d_worker":{"enum":%s},`+
		`"e_reads":{"type":"array","maxItems":8,"items":%s},`+
		`"f_writes":{"type":"array","maxItems":3,"items":{"type":"string","pattern":%q}},`+
		`"g_after":{"type":"array","maxItems":8,"items":{"type":"integer","minimum":1,"maximum":%[2]d}},`+
		`"h_done_when":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","minLength":10,"maxLength":140}}%[8]s}}`,
		required, t.MaxSteps+1, min(len(parts), 8), list(parts), list(workers), t.readable(), namePattern, each)
	return fmt.Appendf(nil, `{"type":"object","additionalProperties":false,"required":["a_note","b_outcome","c_questions","d_steps"],"properties":{`+
		`"a_note":{"type":"string","minLength":10,"maxLength":240},`+
		`"b_outcome":{"enum":["plan","need_info","impossible"]},`+
		`"c_questions":{"type":"array","maxItems":3,"items":{"type":"string","minLength":8,"maxLength":160}},`+
		`"d_steps":{"type":"array","maxItems":%d,"items":%s}}}`, t.MaxSteps+1, step)
}

// readable is the schema of one name that is read. Inputs carry the names that people gave them.
func (t Task) readable() string {
	plain := fmt.Sprintf(`{"type":"string","pattern":%q}`, namePattern)
	var odd []string
	for _, in := range t.Inputs {
		if !plainName.MatchString(in) && !slices.Contains(odd, in) {
			odd = append(odd, in)
		}
	}
	if odd == nil {
		return plain
	}
	return fmt.Sprintf(`{"anyOf":[%s,{"enum":%s}]}`, plain, list(odd))
}

func list(texts []string) string {
	raw, err := json.Marshal(texts)
	if err != nil { // cannot be: they are strings
		return "[]"
	}
	return string(raw)
}
