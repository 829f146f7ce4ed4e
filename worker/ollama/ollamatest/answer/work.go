package answer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// work is what a step of a plan says besides its goal, where the schema asks who does it, what it reads and what it writes.
type work struct {
	parts         []string
	worker        string
	reads, writes []string
	each          string
}

// shape is what the schema of such a step allows.
type shape struct {
	parts, workers, lists []string // that there are
	mostParts, mostReads  int
	longest               int // characters of an instruction
	reads                 json.RawMessage
	writes                bool
}

// working finds out whether a step says who does it and what it reads; ok is false for plans of another kind.
func (b *builder) working(item *schema) (f shape, ok bool) {
	f.longest = 300
	var worker, reads bool
	for p := item.Properties.Oldest(); p != nil; p = p.Next() {
		s, err := b.parse(p.Value, 0)
		if err != nil {
			return f, false
		}
		switch name := normalise(p.Key); {
		case hasAny(name, "worker"):
			worker, f.workers = true, texts(s.Enum)
		case hasAny(name, "parts"):
			f.parts, f.mostParts = b.itemTexts(s), number(s.MaxItems, 1<<20)
		case hasAny(name, "reads"):
			reads, f.reads, f.mostReads = true, s.Items, number(s.MaxItems, 1<<20)
		case hasAny(name, "writes"):
			f.writes = number(s.MaxItems, 1) > 0
		case hasAny(name, "each"):
			f.lists = slices.DeleteFunc(texts(s.Enum), func(l string) bool { return l == "" })
		case isGoal(name):
			f.longest = number(s.MaxLength, 300)
		}
	}
	return f, worker && reads && len(f.workers) > 0
}

func texts(values []json.RawMessage) []string {
	var out []string
	for _, v := range values {
		var s string
		if json.Unmarshal(v, &s) == nil {
			out = append(out, s)
		}
	}
	return out
}

func (b *builder) itemTexts(s *schema) []string {
	items, err := b.parse(s.Items, 0)
	if err != nil {
		return nil
	}
	return texts(items.Enum)
}

// workPlan makes a plan that a careful planner could have made: its steps serve every part, read what is there or what
// others write, and say word for word what the goal says.
func (b *builder) workPlan(f shape, most int) []step {
	limit := max(1, most-1) // schemas allow one step more than a plan may have, so that one that is too long shows
	names, workers := b.readable(f), b.harmless(f.workers)
	var steps []step
	if len(f.parts) > 1 {
		steps = b.partSteps(f, limit)
	} else {
		n := min(5, limit)
		for i, g := range stepGoals("", n) {
			steps = append(steps, step{index: i, goal: g, after: predecessors(i, n), work: &work{parts: f.parts}})
		}
		b.spread(steps, f.longest)
	}
	ids := make([]json.RawMessage, len(steps))
	for i := range steps {
		s := &steps[i]
		s.ids, s.work.worker = &ids, workers[i%len(workers)]
		if f.writes {
			s.work.writes = []string{written(i, names)}
		}
		if len(f.lists) > 0 && i == min(1, len(steps)-1) {
			s.work.each = f.lists[0]
		}
		switch {
		case len(s.after) == 0:
			s.work.reads = names
		case f.writes:
			for _, k := range s.after {
				s.work.reads = append(s.work.reads, written(k, names))
			}
		}
		s.work.reads = s.work.reads[:min(len(s.work.reads), f.mostReads)]
		if len(s.work.reads) > 0 {
			s.goal = clip("From "+strings.Join(s.work.reads[:min(3, len(s.work.reads))], ", ")+": "+s.goal, f.longest)
		}
	}
	return steps
}

// partSteps gives each part, or a few of them, a step, and joins them in a last one.
func (b *builder) partSteps(f shape, limit int) []step {
	n := min(limit, len(f.parts)+1)
	groups := max(1, n-1)
	steps := make([]step, n)
	for i, p := range f.parts {
		s := &steps[i*groups/len(f.parts)]
		if s.work == nil {
			s.work = &work{}
		}
		s.work.parts = append(s.work.parts, p)
		s.goal = strings.TrimSpace(s.goal + " " + b.partText(p))
	}
	for i := range steps[:groups] {
		steps[i].index = i
		steps[i].goal = partVerbs[i%len(partVerbs)] + steps[i].goal
	}
	if n > 1 {
		last := &steps[n-1]
		last.index, last.work = n-1, &work{parts: f.parts[:min(len(f.parts), f.mostParts)]}
		last.goal = "Put the results together: " + clip(b.goal, f.longest-120)
		for k := range groups {
			last.after = append(last.after, k)
		}
	}
	return steps
}

// partVerbs differ in more than a word, so that steps for parts that are alike are no fan-out in disguise.
var partVerbs = []string{"Do this part of the work and write down what comes out: ", "Find this out, with care, one thing after the other: ", "Take this next: "}

// spread puts the goal into the instructions: all of it into each where there is room, otherwise sentence by sentence, so
// that nothing that it names is lost.
func (b *builder) spread(steps []step, longest int) {
	room := longest - 120 // the beginning of an instruction and what it reads
	if utf8.RuneCountInString(b.goal) <= room {
		for i := range steps {
			steps[i].goal += strings.TrimRight(b.goal, ".!? ")
		}
		return
	}
	said := make([]string, len(steps))
	at := 0
	for rest := b.goal; rest != "" && at < len(steps); {
		piece := clip(rest[:sentenceEnd(rest)], room)
		if said[at] != "" && utf8.RuneCountInString(said[at]+" "+piece) > room {
			at++
			continue
		}
		said[at] = strings.TrimSpace(said[at] + " " + piece)
		rest = strings.TrimSpace(rest[len(piece):])
	}
	for i := range steps {
		if said[i] == "" {
			said[i] = clip(b.goal, room)
		}
		steps[i].goal += said[i]
	}
}

func written(i int, inputs []string) string {
	name := fmt.Sprintf("step-%d.md", i+1)
	if slices.Contains(inputs, name) {
		name = fmt.Sprintf("step-%d-new.md", i+1)
	}
	return name
}

// readable are the inputs that the prompt lists and the schema allows.
func (b *builder) readable(f shape) []string {
	var out []string
	for line := range strings.Lines(section(b.req.Prompt, []string{"inputs"})) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if ok && b.allows(f.reads, name) {
			out = append(out, name)
		}
	}
	return out
}

// allows says whether a schema of strings takes one.
func (b *builder) allows(raw json.RawMessage, text string) bool {
	s, err := b.parse(raw, 0)
	if err != nil {
		return false
	}
	for _, branch := range orSlice(s.AnyOf, s.OneOf) {
		if b.allows(branch, text) {
			return true
		}
	}
	if s.Pattern != nil {
		re, err := regexp.Compile(*s.Pattern)
		return err == nil && re.MatchString(text)
	}
	return slices.Contains(texts(s.Enum), text)
}

// harmless are the workers whose work the prompt does not call final, and who do not ask a person; all where there is none.
func (b *builder) harmless(workers []string) []string {
	out := slices.Clone(workers)
	for line := range strings.Lines(b.req.Prompt) {
		name, about, ok := strings.Cut(strings.TrimPrefix(line, "- "), ": ")
		if ok && (strings.Contains(about, "cannot be undone") || strings.Contains(about, "asks a person")) {
			out = slices.DeleteFunc(out, func(w string) bool { return w == name })
		}
	}
	if len(out) == 0 {
		return workers
	}
	return out
}

// partText is what the prompt says about a part.
func (b *builder) partText(id string) string {
	for line := range strings.Lines(b.req.Prompt) {
		if text, ok := strings.CutPrefix(line, id+": "); ok {
			return strings.TrimSpace(text)
		}
	}
	return b.goal
}

// list is what a field of a step holds that is a list of texts; ok is false for other fields.
func (w *work) list(name string) (list []string, ok bool) {
	switch {
	case w == nil:
		return nil, false
	case hasAny(name, "parts"):
		return w.parts, len(w.parts) > 0
	case hasAny(name, "reads"):
		return w.reads, true
	case hasAny(name, "writes"):
		return w.writes, true
	}
	return nil, false
}
