package answers

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// write is a place outside that a step, or a child of it, writes.
type write struct {
	step   int
	child  string // the run that wrote, "" for this one
	target string
}

func (w write) String() string {
	if w.child != "" {
		return fmt.Sprintf("step %d (run %s)", w.step, w.child)
	}
	return fmt.Sprintf("step %d", w.step)
}

// sharedWrites asks whether branches that ran side by side wrote the same place, in this run, in children of it, or in a plan.
func (r *Record) sharedWrites(children map[string]*run.State) Check {
	c := Check{Code: SharedWrites, Question: "Did branches that ran side by side write the same place?"}
	var f found
	all := r.written(children)
	byTarget := map[string][]write{}
	var targets []string
	for _, w := range all {
		if byTarget[w.target] == nil {
			targets = append(targets, w.target)
		}
		byTarget[w.target] = append(byTarget[w.target], w)
	}
	for _, target := range targets {
		list := byTarget[target]
		for i := 1; i < len(list); i++ {
			for _, before := range list[:i] {
				if before.step != list[i].step && r.together(before.step, list[i].step) {
					f.add("%s and %s write %s, and neither waited for the other", before, list[i], target)
				}
			}
		}
	}
	plans := 0
	for _, st := range r.State.Requests {
		if st.Kind == run.KindPlan && len(st.Items) == 1 && st.Status == run.StepSucceeded {
			plans++
			sharedInPlan(&f, st)
		}
	}
	c.Findings = f.all()
	c.Answer = fmt.Sprintf("%s to %s outside.", plural(len(all), "write", "writes"), plural(len(targets), "place", "places"))
	if plans > 0 {
		c.Answer = fmt.Sprintf("%s to %s outside; %s looked at.", plural(len(all), "write", "writes"), plural(len(targets), "place", "places"), plural(plans, "plan", "plans"))
	}
	return c
}

// written lists what the steps and their children wrote, by step.
func (r *Record) written(children map[string]*run.State) []write {
	var out []write
	for _, st := range r.State.Requests {
		if target, ok := targetOf(st); ok {
			out = append(out, write{step: st.Pos, target: target})
		}
		if st.Child == nil {
			continue
		}
		child := children[st.Child.Run]
		if child == nil {
			continue
		}
		for _, deep := range child.Requests {
			if target, ok := targetOf(deep); ok {
				out = append(out, write{step: st.Pos, child: st.Child.Run, target: target})
			}
		}
	}
	return out
}

// targetOf is what a tool's step writes, with its workspace. One that failed before it wrote does not count.
func targetOf(st *run.Step) (string, bool) {
	file, ok := written(st)
	if !ok || st.Status == run.StepFailed {
		return "", false
	}
	var ask struct {
		Input struct {
			Workspace string `json:"workspace"`
		} `json:"input"`
	}
	_ = json.Unmarshal(st.Body, &ask) // written has read it
	if ask.Input.Workspace != "" {
		file = ask.Input.Workspace + ":" + file
	}
	return file, true
}

// sharedInPlan finds steps of a plan that write the same and do not wait for each other.
func sharedInPlan(f *found, st *run.Step) {
	var plan struct {
		Steps []struct {
			ID        string   `json:"id"`
			DependsOn []string `json:"depends_on"`
			Writes    []string `json:"writes"`
		} `json:"steps"`
	}
	if json.Unmarshal(st.Items[0].Result.Value, &plan) != nil {
		return
	}
	needs := map[string][]string{}
	for _, s := range plan.Steps {
		needs[s.ID] = s.DependsOn
	}
	var behind func(id, other string, depth int) bool
	behind = func(id, other string, depth int) bool {
		return depth <= len(plan.Steps) && slices.ContainsFunc(needs[id], func(d string) bool { return d == other || behind(d, other, depth+1) })
	}
	for i, a := range plan.Steps {
		for _, b := range plan.Steps[:i] {
			for _, w := range a.Writes {
				if slices.Contains(b.Writes, w) && !behind(a.ID, b.ID, 0) && !behind(b.ID, a.ID, 0) {
					f.add("step %d plans %s and %s, which both write %s and do not wait for each other", st.Pos, b.ID, a.ID, w)
				}
			}
		}
	}
}
