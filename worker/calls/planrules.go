package calls

import (
	"fmt"
	"slices"
	"strings"
)

// Rules of a plan. Each reason that CheckPlan gives begins with one of them.
const (
	RuleNoSteps           = "no_steps"
	RuleTooManySteps      = "too_many_steps"
	RuleDuplicateID       = "duplicate_id"
	RuleEmptyGoal         = "empty_goal"
	RuleUnknownDependency = "unknown_dependency"
	RuleCycle             = "cycle"
)

// CheckPlan checks a graph by rule, without a model. It returns an order in which every step comes after all that it
// depends on, and among free steps the one written earlier first; or the reasons why the plan does not hold.
func CheckPlan(steps []PlanStep, most int) (order, reasons []string) {
	fault := func(rule, format string, args ...any) {
		reasons = append(reasons, rule+": "+fmt.Sprintf(format, args...))
	}
	if len(steps) == 0 {
		fault(RuleNoSteps, "the plan has no step")
	}
	if len(steps) > most {
		fault(RuleTooManySteps, "more than the %d allowed", most)
	}
	known := map[string]bool{}
	for i, s := range steps {
		switch {
		case s.ID == "":
			fault(RuleDuplicateID, "step number %d has no id", i+1)
		case known[s.ID]:
			fault(RuleDuplicateID, "two steps are called %s", s.ID)
		}
		known[s.ID] = true
		if strings.TrimSpace(s.Goal) == "" {
			fault(RuleEmptyGoal, "step %s has no goal", s.ID)
		}
	}
	for _, s := range steps {
		for _, d := range s.DependsOn {
			if !known[d] {
				fault(RuleUnknownDependency, "step %s depends on %s, which is no step", s.ID, d)
			}
		}
	}
	if reasons != nil {
		return nil, reasons
	}
	order, stuck := sortSteps(steps)
	if stuck != nil {
		fault(RuleCycle, "these steps wait for each other: %s", strings.Join(stuck, ", "))
		return nil, reasons
	}
	return order, nil
}

// sortSteps orders the steps, or returns those that lie on a cycle or behind one.
func sortSteps(steps []PlanStep) (order, stuck []string) {
	done := map[string]bool{}
	for len(order) < len(steps) {
		next := slices.IndexFunc(steps, func(s PlanStep) bool {
			return !done[s.ID] && !slices.ContainsFunc(s.DependsOn, func(d string) bool { return !done[d] })
		})
		if next < 0 {
			for _, s := range steps {
				if !done[s.ID] {
					stuck = append(stuck, s.ID)
				}
			}
			return nil, stuck
		}
		done[steps[next].ID] = true
		order = append(order, steps[next].ID)
	}
	return order, nil
}
