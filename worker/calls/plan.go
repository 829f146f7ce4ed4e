package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
	s, err := compileSchema(planSchema(r.Models, most))
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
	id := object(member{"type", text("string")}, member{"pattern", text("^[a-z0-9_-]{1,24}$")})
	path := object(member{"type", text("string")}, member{"pattern", text("^[a-zA-Z0-9_./-]{1,80}$")})
	hints := list(text(""))
	for _, m := range models {
		hints.items = append(hints.items, text(m))
	}
	step := closedObject(
		member{"id", id},
		member{"goal", object(member{"type", text("string")}, member{"maxLength", number(600)})},
		member{"depends_on", arrayOf(id, 8)},
		member{"model", object(member{"enum", hints})},
		member{"writes", arrayOf(path, 5)},
		member{"external", object(member{"type", text("boolean")})},
	)
	steps := object(member{"type", text("array")}, member{"minItems", number(1)}, member{"maxItems", number(most + 1)}, member{"items", step})
	return closedObject(member{"steps", steps}).encode()
}

func arrayOf(item node, most int) node {
	return object(member{"type", text("array")}, member{"maxItems", number(most)}, member{"items", item})
}

// closedObject is the schema of an object with exactly these keys, in this order.
func closedObject(properties ...member) node {
	required := list()
	for _, p := range properties {
		required.items = append(required.items, text(p.key))
	}
	return object(member{"type", text("object")}, member{"additionalProperties", node{scalar: false}},
		member{"required", required}, member{"properties", object(properties...)})
}
