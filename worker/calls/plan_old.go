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

// OldPlan asks for the steps towards a goal, as a graph of the old shape; it goes when no coordinator asks for that any more. The graph is checked by code; one that does not hold is
// PlanInvalid, and its Reasons can be given to the next try as Findings. Value is {"steps":[…]} as validated.
func OldPlan(ctx context.Context, o Ollama, r OldPlanRequest) OldPlanResult {
	goal, err := fill(r.Goal, r.Item)
	if err != nil || strings.TrimSpace(goal) == "" {
		message := "the goal is empty"
		if err != nil {
			message = err.Error()
		}
		return OldPlanResult{Outcome: Outcome{Kind: BadRequest, Message: message}}
	}
	most := r.MaxSteps
	if most <= 0 {
		most = defaultMaxSteps
	}
	s, err := structure.Compile(oldPlanSchema(r.Models, most))
	if err != nil {
		return OldPlanResult{Outcome: Outcome{Kind: BadRequest, Message: fmt.Sprintf("models to plan with: %v", err)}}
	}
	out := OldPlanResult{Outcome: generateValue(ctx, o, turnRequest{common: r.Common, prompt: oldPlanPrompt(r, goal, most)}, s)}
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

func oldPlanPrompt(r OldPlanRequest, goal string, most int) string {
	models := ""
	if len(r.Models) > 0 {
		models = "Models that a step may ask for: " + strings.Join(r.Models, ", ") + ". Leave model empty when any will do."
	}
	findings := ""
	if len(r.Findings) > 0 {
		findings = oldPlanFindings + "\n- " + strings.Join(r.Findings, "\n- ")
	}
	return sections(oldPlanRole, models, neutralised(r.Context), fmt.Sprintf("At most %d steps.", most), findings, "## Goal\n"+goal)
}

// oldPlanSchema allows one step more than the plan may have, so that a plan that is too long shows instead of being cut.
func oldPlanSchema(models []string, most int) json.RawMessage {
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

// OldPlanRequest asks for the steps towards a goal.
type OldPlanRequest struct {
	Common
	Goal     string
	Item     *string  // the text that {{item}} in the goal stands for
	Models   []string // that steps may ask for; the model hint is one of these or empty
	MaxSteps int      // steps allowed; 0: defaultMaxSteps
	Findings []string // why earlier plans were refused, for another try
}

// OldPlanResult is a plan, or why there is none.
type OldPlanResult struct {
	Outcome
	Steps []PlanStep
	Order []string // ids, every step after all that it depends on; of two free ones the earlier written comes first
}

// PlanStep is one node of the graph.
type PlanStep struct {
	ID        string   `json:"id"`
	Goal      string   `json:"goal"`
	DependsOn []string `json:"depends_on"`
	Model     string   `json:"model"`    // hint; empty: any
	Writes    []string `json:"writes"`   // namespaces that the step changes
	External  bool     `json:"external"` // has an effect outside that somebody else can see
}

// oldPlanRole opens every plan.
const oldPlanRole = `You plan work for a program. The program carries out the steps, not you: each step is given to a model that sees only
the goal of that step and the results of the steps it depends on. Rules of a plan:
- Every part of the task is covered by a step. Name numbers, file names and quoted words of the task in the goals.
- A goal is one instruction that can be carried out and checked by itself.
- depends_on lists the ids of the steps whose results a step needs, and no others: steps that do not depend on each other run
  at the same time. No step may depend on itself, directly or through others.
- writes lists what a step changes, as short paths; empty when it only produces a text.
- external is true only if the step has an effect that somebody outside can see.
- Use as few steps as the task needs.`

// oldPlanFindings opens the list of what was wrong with earlier plans.
const oldPlanFindings = "An earlier plan for this task was refused by the program. Avoid these faults:"
