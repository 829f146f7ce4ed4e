package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// defaultMaxSteps is how many steps a plan may have when the request does not say.
const defaultMaxSteps = 12

// Plan asks for the steps towards a goal, as a graph. The graph is checked by code; one that does not hold is
// PlanInvalid, and its Reasons can be given to the next try as Findings. Value is {"steps":[…]} as validated.
func Plan(ctx context.Context, o Ollama, r PlanRequest) PlanResult {
	goal, err := fill(r.Goal, r.Item)
	if err != nil || strings.TrimSpace(goal) == "" {
		message := "the goal is empty"
		if err != nil {
			message = err.Error()
		}
		return PlanResult{Outcome: Outcome{Kind: BadRequest, Message: message}}
	}
	most := r.MaxSteps
	if most <= 0 {
		most = defaultMaxSteps
	}
	s, err := structure.Compile(planSchema(r.Models, most))
	if err != nil {
		return PlanResult{Outcome: Outcome{Kind: BadRequest, Message: fmt.Sprintf("models to plan with: %v", err)}}
	}
	out := PlanResult{Outcome: generateValue(ctx, o, turnRequest{common: r.Common, prompt: planPrompt(r, goal, most)}, s)}
	if out.Kind != OK {
		return out
	}
	var answer struct {
		Steps []PlanStep `json:"steps"`
	}
	if err := json.Unmarshal(out.Value, &answer); err != nil { // cannot be: the schema accepted it
		out.Kind, out.Message = SchemaViolation, err.Error()
		return out
	}
	out.Order, out.Reasons = CheckPlan(answer.Steps, most)
	if out.Reasons != nil {
		out.Kind, out.Message, out.Value = PlanInvalid, "the plan does not hold: "+out.Reasons[0], nil
		return out
	}
	out.Steps = answer.Steps
	return out
}

func planPrompt(r PlanRequest, goal string, most int) string {
	models := ""
	if len(r.Models) > 0 {
		models = "Models that a step may ask for: " + strings.Join(r.Models, ", ") + ". Leave model empty when any will do."
	}
	findings := ""
	if len(r.Findings) > 0 {
		findings = planFindings + "\n- " + strings.Join(r.Findings, "\n- ")
	}
	return sections(planRole, models, neutralised(r.Context), fmt.Sprintf("At most %d steps.", most), findings, "## Goal\n"+goal)
}

// planSchema allows one step more than the plan may have, so that a plan that is too long shows instead of being cut.
func planSchema(models []string, most int) json.RawMessage {
	hints, err := json.Marshal(append([]string{""}, models...))
	if err != nil { // cannot be: they are strings
		hints = []byte(`[""]`)
	}
	const id = `{"type":"string","pattern":"^[a-z0-9_-]{1,24}$"}`
	step := fmt.Sprintf(`{"type":"object","additionalProperties":false,
		"required":["id","goal","depends_on","model","writes","external"],"properties":{
		"id":%s,"goal":{"type":"string","maxLength":600},"depends_on":{"type":"array","maxItems":8,"items":%s},"model":{"enum":%s},
		"writes":{"type":"array","maxItems":5,"items":{"type":"string","pattern":"^[a-zA-Z0-9_./-]{1,80}$"}},
		"external":{"type":"boolean"}}}`, id, id, hints)
	return fmt.Appendf(nil, `{"type":"object","additionalProperties":false,"required":["steps"],"properties":{
		"steps":{"type":"array","minItems":1,"maxItems":%d,"items":%s}}}`, most+1, step)
}

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
