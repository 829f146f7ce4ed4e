package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/proto/structure"
	"github.com/loopkeeper/loopkeeper/worker/calls/plan"
)

// PlanRequest asks for the steps towards a goal.
type PlanRequest struct {
	Common
	plan.Task
	Facts    []string        // of a new plan: what was verified, and what is done already
	Leads    []string        // of a new plan: what models said, unverified
	Rejected json.RawMessage // a plan that was refused; nil: plan anew, without its history
	Feedback []string        // why an earlier plan was refused
}

// PlanResult is a plan, or why there is none. Its Text is what the model wrote, which a repair can be asked for.
type PlanResult struct {
	Outcome
	Plan plan.Plan // zero unless the outcome is OK
}

// What an answer may take, in tokens: the free thoughts, and in the fields each step and the rest (judgement §6).
const (
	planThoughts = 1500
	planStep     = 420
	planRest     = 350
)

// maxRepairs is how many faults a repair is asked for at once; more than a few confuse small models (judgement §5).
const maxRepairs = 5

// Plan asks for the steps towards a goal. The model names parts, workers, and what is read and written; code derives the
// graph and checks it. A plan that does not hold is PlanInvalid with its Reasons. Value is the plan.Plan as JSON.
func Plan(ctx context.Context, o Ollama, r PlanRequest) PlanResult {
	if err := r.Task.Check(); err != nil {
		return PlanResult{Outcome: Outcome{Kind: BadRequest, Message: err.Error()}}
	}
	task := r.Task.Filled()
	s, err := structure.Compile(task.Schema())
	if err != nil {
		return PlanResult{Outcome: Outcome{Kind: BadRequest, Message: fmt.Sprintf("what to plan with: %v", err)}}
	}
	q := planQuestion(r, task)
	q.schema = s
	out := PlanResult{Outcome: q.ask(ctx, o, r.Common, merges(ctx, o, r.Common))}
	if out.Kind != OK {
		return out
	}
	p, reasons, err := plan.Read(task, out.Value)
	if err == nil && reasons == nil {
		out.Plan = p
		out.Value, err = json.Marshal(p)
	}
	switch {
	case err != nil: // cannot be: the schema accepted it
		out.Kind, out.Message, out.Value = SchemaViolation, err.Error(), nil
	case reasons != nil:
		out.Kind, out.Message, out.Reasons, out.Value = PlanInvalid, "the plan does not hold: "+reasons[0], reasons, nil
	}
	return out
}

// planQuestion words the task, most shared first: the role, what all plans of a run are made with, and then this goal.
func planQuestion(r PlanRequest, task plan.Task) question {
	texts := r.Prompts
	most := map[string]string{"max_steps": strconv.Itoa(task.MaxSteps)}
	fields := texts.Fill(prompts.PlanFields, most)
	if len(task.Lists) > 0 {
		fields += "\n" + texts.Text(prompts.PlanEach)
	}
	shared := sections(texts.Text(prompts.PlanRole), neutralised(r.Context), describe(task), known(texts, r), goal(task), repair(texts, r))
	return question{shared: shared, think: texts.Fill(prompts.PlanThink, most), fields: fields, free: planThoughts, filled: planRest + planStep*task.MaxSteps}
}

func describe(task plan.Task) string {
	var workers, lists []string
	for _, w := range task.Workers {
		about := w.Name + ": " + w.About
		if w.Asks {
			about += " (asks a person)"
		}
		if w.Irreversible {
			about += " (cannot be undone: a step that asks a person has to come before)"
		}
		workers = append(workers, about)
	}
	for _, l := range task.Lists {
		lists = append(lists, fmt.Sprintf("%s: %d elements. %s", l.Name, l.Count, l.About))
	}
	return sections(bullets("## Workers", workers), bullets("## Inputs", task.Inputs), bullets("## Lists", lists))
}

// known keeps apart what is verified and what was only said.
func known(texts prompts.Set, r PlanRequest) string {
	return sections(bullets("## Facts\n"+texts.Text(prompts.PlanFacts), r.Facts), bullets("## Leads\n"+texts.Text(prompts.PlanLeads), r.Leads))
}

func goal(task plan.Task) string {
	out := "## Goal\n" + neutralise(strings.TrimSpace(task.Goal)) + "\n\n## Parts of the goal"
	for i, p := range task.Parts {
		out += fmt.Sprintf("\ng%d: %s", i+1, neutralise(strings.Join(strings.Fields(p), " ")))
	}
	return out
}

// repair shows a refused plan as data with the first of its faults, and nothing else of its history: a model that reads
// its own failed tries repeats them.
func repair(texts prompts.Set, r PlanRequest) string {
	faults := r.Feedback[:min(maxRepairs, len(r.Feedback))]
	list := strings.TrimPrefix(bullets("", faults), "\n")
	switch {
	case list == "":
		return ""
	case len(r.Rejected) == 0:
		return texts.Fill(prompts.GenerateFeedback, map[string]string{"reasons": list})
	}
	return texts.Fill(prompts.PlanRepair, map[string]string{"plan": neutralise(string(r.Rejected)), "violations": list})
}
