package relay

import (
	"fmt"
	"slices"
	"strings"
)

// Step of a plan, as the plan primitive gives it.
type Step struct {
	ID          string   `json:"id"`
	Instruction string   `json:"instruction"`
	Worker      string   `json:"worker"`
	Reads       []string `json:"reads"`
	Writes      []string `json:"writes"`
	DependsOn   []string `json:"depends_on"`
}

// Named is the worker of a step whose instruction says who is asked, such as by a condition; it is known when the step is done.
const Named = "named"

// Gold is the plan that is right, walls and all: what is lost with it is not the planner's fault.
func (t Task) Gold() []Step {
	var steps []Step
	at := map[string]int{} // step by worker
	for i, r := range t.Required {
		s := Step{ID: fmt.Sprintf("s%d", i+1), Worker: r.Worker, Reads: []string{}, Writes: []string{written(i, r)}, DependsOn: []string{}}
		for _, from := range r.From {
			s.Reads = append(s.Reads, steps[at[from]].Writes...)
			s.DependsOn = append(s.DependsOn, steps[at[from]].ID)
		}
		if r.Choice != nil {
			s.Worker = Named
		}
		s.Instruction = instruction(r, s.Reads)
		at[r.Worker] = i
		steps = append(steps, s)
	}
	return steps
}

// written is the name of a step's number: of a ledger the account, and which of its states it is.
func written(i int, r Required) string {
	if r.Account != "" {
		return fmt.Sprintf("%s.%d", r.Account, i+1)
	}
	return fmt.Sprintf("n%d", i+1)
}

func instruction(r Required, reads []string) string {
	switch {
	case r.Choice != nil:
		return fmt.Sprintf("If %s is even ask %s, else ask %s. The argument is %s.", reads[0], r.Choice[0], r.Choice[1], reads[0])
	case len(reads) == 2:
		return fmt.Sprintf("Ask %s. The argument is %s, a plus sign and %s.", r.Worker, reads[0], reads[1])
	case len(reads) == 1:
		return fmt.Sprintf("Ask %s. The argument is %s.", r.Worker, reads[0])
	}
	return fmt.Sprintf("Ask %s with the argument %q.", r.Worker, Start)
}

// written out for a loop that a model keeps.
func inWords(steps []Step) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%d. %s Call the number %s.\n", i+1, s.Instruction, s.Writes[0])
	}
	return b.String()
}

// accounts that a report is made of; nil where it is made of workers.
func (t Task) accounts() []string {
	if t.Family != Ledger {
		return nil
	}
	var out []string
	for _, r := range t.Required {
		if !slices.Contains(out, r.Account) {
			out = append(out, r.Account)
		}
	}
	return out
}
