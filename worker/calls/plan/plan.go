// Package plan holds what code knows about plans: the schema that a model fills in, and what becomes of its answer. The
// model names parts, workers, what is read and what is written; the edges, the order and whether the plan holds are
// computed here, without a model. Everything is a pure function of its arguments.
package plan

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// The outcomes of planning.
const (
	Planned    = "plan"       // there are steps
	NeedInfo   = "need_info"  // a person has to answer questions first
	Impossible = "impossible" // the goal cannot be reached with these workers and inputs
)

// Plan is a plan that holds.
type Plan struct {
	Outcome   string   `json:"outcome"`
	Note      string   `json:"note"` // the model's word
	Questions []string `json:"questions"`
	Steps     []Step   `json:"steps"` // in Order
	Order     []string `json:"order"` // every step after all that it depends on; of two free ones the earlier written comes first
}

// Step is one node of the graph.
type Step struct {
	ID          string            `json:"id"`    // s1 and on, as the model numbered them
	Parts       []string          `json:"parts"` // g1 and on
	Instruction string            `json:"instruction"`
	Worker      string            `json:"worker"`
	Reads       []string          `json:"reads"`
	Writes      []string          `json:"writes"`
	After       []string          `json:"after"` // what the model said has to come first
	DependsOn   []string          `json:"depends_on"`
	DoneWhen    []string          `json:"done_when"`
	Each        string            `json:"each"` // name of the list that the step is repeated over; empty: once
	Why         map[string]string `json:"why"`  // for each step in DependsOn where the edge comes from
}

// draft is a plan as the model writes it; the names keep their order even where somebody sorts them.
type draft struct {
	Note      string      `json:"a_note"`
	Outcome   string      `json:"b_outcome"`
	Questions []string    `json:"c_questions"`
	Steps     []draftStep `json:"d_steps"`
}

type draftStep struct {
	N           int      `json:"a_n"`
	Parts       []string `json:"b_parts"`
	Instruction string   `json:"c_instruction"`
	Worker      string   `json:"d_worker"`
	Reads       []string `json:"e_reads"`
	Writes      []string `json:"f_writes"`
	After       []int    `json:"g_after"`
	DoneWhen    []string `json:"h_done_when"`
	Each        string   `json:"i_each"`
}

// Read makes a plan of a value that the schema accepted, or says why it does not hold: each reason is "rule: message".
// An error means that the value is no answer to the schema at all.
func Read(t Task, value json.RawMessage) (p Plan, reasons []string, err error) {
	var d draft
	if err := json.Unmarshal(value, &d); err != nil {
		return Plan{}, nil, fmt.Errorf("read the plan: %w", err)
	}
	d.tidy()
	c := check{task: t.Filled(), draft: d}
	c.edges = edges(d.Steps)
	if reasons := c.reasons(); reasons != nil {
		return Plan{}, reasons, nil
	}
	return c.plan(), nil, nil
}

// tidy drops what says nothing: blanks around texts, repeats in lists, the "./" of a name.
func (d *draft) tidy() {
	d.Note, d.Questions = strings.TrimSpace(d.Note), tidyTexts(d.Questions)
	for i := range d.Steps {
		s := &d.Steps[i]
		s.Instruction, s.DoneWhen, s.Parts = strings.TrimSpace(s.Instruction), tidyTexts(s.DoneWhen), tidyTexts(s.Parts)
		s.Reads, s.Writes = tidyNames(s.Reads), tidyNames(s.Writes)
		slices.Sort(s.After)
		s.After = slices.Compact(s.After)
	}
}

func tidyTexts(texts []string) []string {
	out := []string{}
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func tidyNames(names []string) []string {
	var out []string
	for _, n := range names {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, path.Clean(n))
		}
	}
	return tidyTexts(out)
}

// plan builds the plan from a draft in which every rule holds.
func (c check) plan() Plan {
	p := Plan{Outcome: c.draft.Outcome, Note: c.draft.Note, Questions: []string{}, Steps: []Step{}, Order: []string{}}
	switch p.Outcome {
	case NeedInfo:
		p.Questions = c.draft.Questions
		return p
	case Impossible:
		return p
	}
	order, _ := sorted(c.edges)
	for _, i := range order {
		s := c.draft.Steps[i]
		step := Step{ID: id(i), Parts: s.Parts, Instruction: s.Instruction, Worker: s.Worker, Reads: s.Reads, Writes: s.Writes, After: []string{},
			DependsOn: []string{}, DoneWhen: s.DoneWhen, Each: s.Each, Why: map[string]string{}}
		for _, n := range s.After {
			step.After = append(step.After, id(n-1))
		}
		for _, e := range c.edges[i] {
			step.DependsOn = append(step.DependsOn, id(e.to))
			step.Why[id(e.to)] = e.why()
		}
		p.Steps, p.Order = append(p.Steps, step), append(p.Order, step.ID)
	}
	return p
}

func id(index int) string { return fmt.Sprintf("s%d", index+1) }
