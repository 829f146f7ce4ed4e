package plan

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The rules of a plan (judgement §6.1). Each reason begins with one of them.
const (
	RuleNumbers        = "numbers"          // steps are 1 to n without gaps, and after names such
	RuleUnknownWorker  = "unknown_worker"   // every worker is one that the task has
	RulePartUncovered  = "part_uncovered"   // every part is in a step, no step is without part
	RuleUnknownRead    = "unknown_read"     // what is read is an input or is written
	RuleTwoWriters     = "two_writers"      // one writer per name, inside the run's own area
	RuleCycle          = "cycle"            // no step waits for itself
	RuleIrreversible   = "irreversible"     // a person is asked before what cannot be undone
	RuleTooLarge       = "too_large"        // not more steps than allowed, which bounds the depth, too
	RuleDuplicateStep  = "duplicate_step"   // no work is planned twice
	RuleReadsUnnamed   = "reads_unnamed"    // an instruction names what it reads
	RuleDoneWhenCopied = "done_when_copied" // done_when says how to see it, not what to do
	RuleLiteralDropped = "literal_dropped"  // what the goal names occurs in an instruction
	RuleOutcome        = "outcome"          // outcome, questions and steps fit together
	RuleFanOut         = "fan_out"          // the same work over a list is one step
)

// check is a draft under the rules.
type check struct {
	task  Task
	draft draft
	edges [][]edge
}

// rules are tried in this order: what makes the others meaningless comes first.
var rules = []struct {
	name string
	find func(check) []string // messages; none: the rule holds
}{
	{RuleNumbers, check.numbers},
	{RuleUnknownWorker, check.unknownWorker},
	{RulePartUncovered, check.partUncovered},
	{RuleUnknownRead, check.unknownRead},
	{RuleTwoWriters, check.twoWriters},
	{RuleCycle, check.cycle},
	{RuleIrreversible, check.irreversible},
	{RuleTooLarge, check.tooLarge},
	{RuleDuplicateStep, check.duplicateStep},
	{RuleReadsUnnamed, check.readsUnnamed},
	{RuleDoneWhenCopied, check.doneWhenCopied},
	{RuleLiteralDropped, check.literalDropped},
	{RuleFanOut, check.fanOut},
}

// reasons applies the rules; those about steps only where steps are what was answered.
func (c check) reasons() []string {
	var out []string
	add := func(name string, messages []string) {
		for _, m := range messages {
			out = append(out, name+": "+m)
		}
	}
	add(RuleOutcome, c.outcome())
	if c.draft.Outcome != Planned || len(c.draft.Steps) == 0 {
		return out
	}
	for _, r := range rules {
		add(r.name, r.find(c))
	}
	return out
}

func (c check) outcome() []string {
	steps, questions := len(c.draft.Steps), len(c.draft.Questions)
	switch c.draft.Outcome {
	case Planned:
		if steps == 0 {
			return []string{"the outcome is plan, but there is no step"}
		}
	case NeedInfo:
		if steps > 0 || questions == 0 {
			return []string{fmt.Sprintf("the outcome is need_info, so there has to be a question and no step; there are %d questions and %d steps", questions, steps)}
		}
	case Impossible:
		if steps > 0 {
			return []string{fmt.Sprintf("the outcome is impossible, so there is no step; there are %d", steps)}
		}
	default:
		return []string{fmt.Sprintf("%q is none of plan, need_info and impossible", c.draft.Outcome)}
	}
	return nil
}

func (c check) numbers() (out []string) {
	var have []string
	gaps := false
	for i, s := range c.draft.Steps {
		have = append(have, strconv.Itoa(s.N))
		gaps = gaps || s.N != i+1
	}
	if gaps {
		out = append(out, fmt.Sprintf("the steps are numbered %s; they have to be 1 to %d in order", strings.Join(have, ", "), len(have)))
	}
	for i, s := range c.draft.Steps {
		for _, n := range s.After {
			if !slices.ContainsFunc(c.draft.Steps, func(o draftStep) bool { return o.N == n }) {
				out = append(out, fmt.Sprintf("step %d comes after step %d, which is not there", i+1, n))
			}
		}
	}
	return out
}

func (c check) worker(name string) (Worker, bool) {
	i := slices.IndexFunc(c.task.Workers, func(w Worker) bool { return w.Name == name })
	if i < 0 {
		return Worker{}, false
	}
	return c.task.Workers[i], true
}

func (c check) unknownWorker() (out []string) {
	for i, s := range c.draft.Steps {
		if _, ok := c.worker(s.Worker); !ok {
			var names []string
			for _, w := range c.task.Workers {
				names = append(names, w.Name)
			}
			out = append(out, fmt.Sprintf("step %d has the worker %q; there are %s", i+1, s.Worker, strings.Join(names, ", ")))
		}
	}
	return out
}

func (c check) partUncovered() (out []string) {
	covered := map[string]bool{}
	for i, s := range c.draft.Steps {
		for _, p := range s.Parts {
			n, err := strconv.Atoi(strings.TrimPrefix(p, "g"))
			if err != nil || n < 1 || n > len(c.task.Parts) || p != part(n-1) {
				out = append(out, fmt.Sprintf("step %d serves part %s, which the goal does not have", i+1, p))
				continue
			}
			covered[p] = true
		}
		if len(s.Parts) == 0 {
			out = append(out, fmt.Sprintf("step %d serves no part of the goal", i+1))
		}
	}
	for i, text := range c.task.Parts {
		if !covered[part(i)] {
			out = append(out, fmt.Sprintf("no step serves part %s: %s", part(i), clip(text, 80)))
		}
	}
	return out
}

func (c check) unknownRead() (out []string) {
	for i, s := range c.draft.Steps {
		for _, name := range s.Reads {
			if !c.isInput(name) && !slices.ContainsFunc(c.draft.Steps, func(o draftStep) bool { return slices.Contains(o.Writes, name) }) {
				out = append(out, fmt.Sprintf("step %d reads %s, which is no input, and no step writes it", i+1, name))
			}
		}
	}
	return out
}

func (c check) isInput(name string) bool {
	return slices.ContainsFunc(c.task.Inputs, func(in string) bool { return in == name || path.Clean(in) == name })
}

func (c check) twoWriters() (out []string) {
	first := map[string]int{}
	for i, s := range c.draft.Steps {
		for _, name := range s.Writes {
			switch at, taken := first[name]; {
			case taken:
				out = append(out, fmt.Sprintf("steps %d and %d both write %s; let one of them write another name", at+1, i+1, name))
			case c.isInput(name):
				out = append(out, fmt.Sprintf("step %d writes %s, which is an input; let it write another name", i+1, name))
			case !isInside(name):
				out = append(out, fmt.Sprintf("step %d writes %s; a name is a short path without / in front and without ..", i+1, name))
			default:
				first[name] = i
			}
		}
	}
	return out
}

// isInside says whether a name stays inside the run's own area.
func isInside(name string) bool {
	return !path.IsAbs(name) && name != "." && !slices.Contains(strings.Split(name, "/"), "..")
}

func (c check) cycle() []string {
	_, stuck := sorted(c.edges)
	var on []string
	for _, i := range stuck {
		if before(c.edges, i)[i] {
			on = append(on, strconv.Itoa(i+1))
		}
	}
	switch len(on) {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("step %s waits for itself: it reads what it writes, or comes after itself", on[0])}
	}
	return []string{fmt.Sprintf("steps %s wait for each other by what they read or come after", strings.Join(on, ", "))}
}

func (c check) irreversible() (out []string) {
	asks := ""
	for _, w := range c.task.Workers {
		if w.Asks {
			asks = w.Name
		}
	}
	for i, s := range c.draft.Steps {
		w, _ := c.worker(s.Worker)
		if !w.Irreversible || w.Asks {
			continue
		}
		asked := false
		for k, is := range before(c.edges, i) {
			other, _ := c.worker(c.draft.Steps[k].Worker)
			asked = asked || is && other.Asks
		}
		switch {
		case asked:
		case asks == "":
			out = append(out, fmt.Sprintf("step %d uses %s, which cannot be undone, and no worker here asks a person; do without it", i+1, s.Worker))
		default:
			out = append(out, fmt.Sprintf("step %d uses %s, which cannot be undone; put a step of %s before it", i+1, s.Worker, asks))
		}
	}
	return out
}

func (c check) tooLarge() []string {
	if n := len(c.draft.Steps); n > c.task.MaxSteps {
		return []string{fmt.Sprintf("%d steps are more than the %d allowed", n, c.task.MaxSteps)}
	}
	return nil
}
