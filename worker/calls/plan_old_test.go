package calls

import (
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
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

func TestOldPlan(t *testing.T) {
	_, c := server(t, ollamatest.Config{})
	out := OldPlan(t.Context(), c, OldPlanRequest{Common: common(), Goal: "Write release notes from the commits.", Models: []string{"qwen3:8b"}})
	if out.Kind != OK || len(out.Steps) < 2 || len(out.Order) != len(out.Steps) {
		t.Fatalf("%s %v: %d steps, order %v, raw %s", out.Kind, out.Reasons, len(out.Steps), out.Order, out.Turns[0].Raw)
	}
	if _, reasons := CheckPlan(out.Steps, defaultMaxSteps); reasons != nil {
		t.Error(reasons)
	}
}

func TestOldPlanThatDoesNotHold(t *testing.T) {
	step := func(id, after string) string {
		return `{"id":"` + id + `","goal":"g","depends_on":[` + after + `],"model":"","writes":[],"external":false}`
	}
	for name, c := range map[string]struct {
		steps string
		kind  Kind
		rule  string
	}{
		"a circle":               {step("a", `"b"`) + "," + step("b", `"a"`), PlanInvalid, RuleCycle},
		"unknown":                {step("a", `"zz"`), PlanInvalid, RuleUnknownDependency},
		"duplicate":              {step("a", "") + "," + step("a", ""), PlanInvalid, RuleDuplicateID},
		"too many, but not cut":  {step("a", "") + "," + step("b", "") + "," + step("c", ""), PlanInvalid, RuleTooManySteps},
		"a model nobody offered": {strings.Replace(step("a", ""), `"model":""`, `"model":"gpt-9"`, 1), SchemaViolation, "/steps/0/model"},
		"no step":                {"", SchemaViolation, "/steps"},
	} {
		out := OldPlan(t.Context(), &scripted{answers: []string{`{"steps":[` + c.steps + `]}`}}, OldPlanRequest{Common: common(), Goal: "x", MaxSteps: 2})
		if out.Kind != c.kind || len(out.Reasons) == 0 || !strings.Contains(out.Reasons[0], c.rule) || out.Steps != nil || out.Value != nil {
			t.Errorf("%s: %s %q, want %s about %s", name, out.Kind, out.Reasons, c.kind, c.rule)
		}
	}
}

func TestOldEvaluate(t *testing.T) {
	said := func(result, quote string) string {
		return `{"a_quotes":["` + quote + `"],"b_against":"","c_reason":"so it seems","d_result":"` + result + `"}`
	}
	o := &scripted{answers: []string{said(Met, "twelve hours"), said(NotMet, "a seal was worn")}}
	out := OldEvaluate(t.Context(), o, OldEvaluateRequest{Common: common(), Criteria: []string{"says how long", "no defect"}, Subject: document})
	if out.Kind != OK || out.Verdict != SentBack || len(out.Turns) != 2 || len(out.Facts) != 2 || out.Report().Counts.PromptTokens != 20 {
		t.Errorf("%+v", out)
	}
	if slices.ContainsFunc(out.Reasons, func(r string) bool { return strings.Contains(r, "so it seems") }) {
		t.Errorf("a model's opinion among the reasons of code: %q", out.Reasons)
	}
	o = &scripted{answers: []string{said(Met, "fourteen hours")}}
	if out := OldEvaluate(t.Context(), o, OldEvaluateRequest{Common: common(), Criteria: []string{"c"}, Subject: document}); out.Verdict != NeedsHuman || len(out.Facts) != 0 || out.Answers[0].Quotes[0].Verified {
		t.Errorf("an invented quote carried a verdict: %+v", out)
	}
	o = &scripted{}
	if out := OldEvaluate(t.Context(), o, OldEvaluateRequest{Common: common(), Criteria: []string{"c"}, Subject: " \n"}); out.Verdict != SentBack || out.Rule != RuleEmptySubject {
		t.Errorf("an empty subject: %+v", out)
	}
	o = &scripted{answers: []string{said(Met, "twelve hours"), "no idea"}}
	if out := OldEvaluate(t.Context(), o, OldEvaluateRequest{Common: common(), Criteria: []string{"one", "two"}, Subject: document}); out.Kind != TextInsteadOfStructure || out.Verdict != "" || len(out.Turns) != 2 || !strings.Contains(out.Message, "two") {
		t.Errorf("a failed question: %+v", out)
	}
	if out := OldEvaluate(t.Context(), o, OldEvaluateRequest{Common: common(), Subject: document}); out.Kind != BadRequest {
		t.Errorf("without criteria: %s", out.Kind)
	}
}

func TestOldEvaluateOnTheStandIn(t *testing.T) {
	_, c := server(t, ollamatest.Config{})
	out := OldEvaluate(t.Context(), c, OldEvaluateRequest{Common: common(), Criteria: []string{"It says what failed."}, Subject: document})
	if out.Kind != OK || out.Verdict != Passed {
		t.Errorf("%s %s by %s: %q, raw %s", out.Kind, out.Verdict, out.Rule, out.Reasons, out.Turns[0].Raw)
	}
}
