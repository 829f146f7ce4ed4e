package serve

// What this file answers goes with the fields that worker.proto marks as old, once no coordinator sends them.

import (
	"context"
	"fmt"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// isOldPlan says whether a request asks for a plan of the old shape: it says nothing that only the new one has.
func isOldPlan(r *workerv1.PlanRequest) bool {
	return len(r.GetParts())+len(r.GetWorkers())+len(r.GetInputs())+len(r.GetLists())+len(r.GetFacts())+len(r.GetLeads())+len(r.GetRejectedJson()) == 0
}

func isOldEvaluation(r *workerv1.EvaluateRequest) bool { return len(r.GetQuestions()) == 0 }

func (s *Server) oldPlan(ctx context.Context, r *workerv1.PlanRequest, common calls.Common) *workerv1.PlanResponse {
	return s.oldPlanResponse(calls.OldPlan(ctx, s.o.Ollama, calls.OldPlanRequest{Common: common, Goal: r.GetGoal(), Models: r.GetModels(),
		MaxSteps: int(r.GetMaxSteps()), Findings: r.GetFeedback()}))
}

func (s *Server) oldEvaluate(ctx context.Context, r *workerv1.EvaluateRequest, common calls.Common, texts []string) *workerv1.EvaluateResponse {
	last := len(texts) - 1
	return s.oldEvaluation(r, calls.OldEvaluate(ctx, s.o.Ollama, calls.OldEvaluateRequest{Common: common, Criteria: r.GetCriteria(),
		Subject: texts[last], Sources: texts[:last]}))
}

func (s *Server) oldPlanResponse(p calls.OldPlanResult) *workerv1.PlanResponse {
	out := &workerv1.PlanResponse{Outcome: s.outcome(p.Outcome)}
	if p.Kind != calls.OK {
		return out
	}
	byID := map[string]calls.PlanStep{}
	for _, step := range p.Steps {
		byID[step.ID] = step
	}
	ordered := make([]calls.PlanStep, 0, len(p.Order))
	for _, id := range p.Order {
		step := byID[id]
		ordered = append(ordered, step)
		out.Steps = append(out.Steps, &workerv1.PlanStep{Id: step.ID, Goal: step.Goal, DependsOn: step.DependsOn, Model: step.Model, Writes: step.Writes, External: step.External})
	}
	setValue(out.Outcome, struct {
		Steps []calls.PlanStep `json:"steps"`
		Order []string         `json:"order"`
	}{ordered, p.Order})
	return out
}

// judged is an evaluation as the ledger and scripts see it, see docs/requests.md.
type judged struct {
	Verdict  string   `json:"verdict"`
	Rule     string   `json:"rule"`
	Reasons  []string `json:"reasons"`
	Facts    []fact   `json:"facts"`
	Opinions []string `json:"opinions"`
}

type fact struct {
	Quote string `json:"quote"`
	In    string `json:"in"`
	Line  int    `json:"line"`
}

func (s *Server) oldEvaluation(r *workerv1.EvaluateRequest, e calls.OldEvaluation) *workerv1.EvaluateResponse {
	out := &workerv1.EvaluateResponse{Outcome: s.outcome(e.Outcome), Verdict: string(e.Verdict), Reasons: e.Reasons}
	if e.Kind != calls.OK {
		return out
	}
	in := names(r.GetSources())
	v := judged{Verdict: string(e.Verdict), Rule: e.Rule, Reasons: append([]string{}, e.Reasons...), Facts: []fact{}, Opinions: append([]string{}, e.Opinions...)}
	for _, q := range e.Facts {
		v.Facts = append(v.Facts, fact{q.Text, in(q.In), q.Line})
	}
	for _, a := range e.Answers {
		for _, q := range a.Quotes {
			out.Quotes = append(out.Quotes, &workerv1.Quote{Text: q.Text, Verified: q.Verified, Source: in(q.In)})
		}
	}
	setValue(out.Outcome, v)
	return out
}

// names says by which name people know what calls name "subject" or "source 1".
func names(sources []*workerv1.Body) func(string) string {
	known := map[string]string{}
	for i, b := range sources {
		if b.GetName() != "" {
			known[fmt.Sprintf("source %d", i+1)] = b.GetName()
		}
	}
	return func(in string) string {
		if name, ok := known[in]; ok {
			return name
		}
		return in
	}
}
