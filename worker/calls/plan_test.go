package calls

import (
	"slices"
	"strings"
	"testing"
)

func graph(edges ...string) []PlanStep {
	var steps []PlanStep
	for _, e := range edges {
		id, after, _ := strings.Cut(e, "<")
		s := PlanStep{ID: id, Goal: "do " + id}
		if after != "" {
			s.DependsOn = strings.Split(after, ",")
		}
		steps = append(steps, s)
	}
	return steps
}

func TestCheckPlan(t *testing.T) {
	for name, c := range map[string]struct {
		steps []PlanStep
		most  int
		order []string
		rules []string
	}{
		"one step":                          {graph("a"), 5, []string{"a"}, nil},
		"written order among free steps":    {graph("c", "b", "a"), 5, []string{"c", "b", "a"}, nil},
		"a dependency that is written late": {graph("a<b", "b"), 5, []string{"b", "a"}, nil},
		"a diamond":                         {graph("d<b,c", "b<a", "c<a", "a"), 5, []string{"a", "b", "c", "d"}, nil},
		"no step":                           {nil, 5, nil, []string{RuleNoSteps}},
		"as many as allowed":                {graph("a", "b"), 2, []string{"a", "b"}, nil},
		"too many":                          {graph("a", "b", "c"), 2, nil, []string{RuleTooManySteps}},
		"unknown":                           {graph("a<x"), 5, nil, []string{RuleUnknownDependency}},
		"duplicate":                         {graph("a", "a"), 5, nil, []string{RuleDuplicateID}},
		"on itself":                         {graph("a<a"), 5, nil, []string{RuleCycle}},
		"a circle of three":                 {graph("a<c", "b<a", "c<b", "d"), 5, nil, []string{RuleCycle}},
		"no id":                             {[]PlanStep{{Goal: "x"}}, 5, nil, []string{RuleDuplicateID}},
		"white space is no goal":            {[]PlanStep{{ID: "a", Goal: " \n"}}, 5, nil, []string{RuleEmptyGoal}},
		"everything at once":                {append(graph("a<x", "a"), PlanStep{ID: "b"}), 2, nil, []string{RuleTooManySteps, RuleDuplicateID, RuleEmptyGoal, RuleUnknownDependency}},
	} {
		order, reasons := CheckPlan(c.steps, c.most)
		var rules []string
		for _, r := range reasons {
			rule, _, _ := strings.Cut(r, ":")
			rules = append(rules, rule)
		}
		if !slices.Equal(order, c.order) || !slices.Equal(rules, c.rules) {
			t.Errorf("%s: order %v, reasons %q; want %v and %v", name, order, reasons, c.order, c.rules)
		}
	}
}
