package serve

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// Plan implements the service.
func (s *Server) Plan(ctx context.Context, r *workerv1.PlanRequest) (*workerv1.PlanResponse, error) {
	a, err := s.plan(r)
	return await[*workerv1.PlanResponse](ctx, s, r.GetCall(), a, err)
}

func (s *Server) plan(r *workerv1.PlanRequest) (*attempt, error) {
	shared, err := s.bodies.texts(r.GetContext()...)
	if err != nil {
		return nil, err
	}
	common, err := s.common(r.GetCall(), r.GetModel(), r.GetSampling(), r.GetSystem(), shared)
	if err != nil {
		return nil, err
	}
	return s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		common.Progress = s.counter(progress)
		return s.planResponse(calls.Plan(ctx, s.o.Ollama, calls.PlanRequest{Common: common, Goal: r.GetGoal(), Models: r.GetModels(),
			MaxSteps: int(r.GetMaxSteps()), Findings: r.GetFeedback()}))
	})
}

func (s *Server) planResponse(p calls.PlanResult) *workerv1.PlanResponse {
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

// Evaluate implements the service.
func (s *Server) Evaluate(ctx context.Context, r *workerv1.EvaluateRequest) (*workerv1.EvaluateResponse, error) {
	a, err := s.evaluate(r)
	return await[*workerv1.EvaluateResponse](ctx, s, r.GetCall(), a, err)
}

func (s *Server) evaluate(r *workerv1.EvaluateRequest) (*attempt, error) {
	texts, err := s.bodies.texts(append(r.GetSources(), r.GetSubject())...)
	if err == nil && r.GetSubject() == nil {
		err = apierr.New(apierr.InvalidArgument, "there is no subject to evaluate")
	}
	if err != nil {
		return nil, err
	}
	last := len(texts) - 1
	var shared []string
	if r.GetGoal() != "" {
		shared = []string{"What the text was to achieve:\n" + r.GetGoal()}
	}
	common, err := s.common(r.GetCall(), r.GetModel(), r.GetSampling(), r.GetSystem(), shared)
	if err != nil {
		return nil, err
	}
	return s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		common.Progress = s.counter(progress)
		return s.evaluation(r, calls.Evaluate(ctx, s.o.Ollama, calls.EvaluateRequest{Common: common, Criteria: r.GetCriteria(),
			Subject: texts[last], Sources: texts[:last]}))
	})
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

func (s *Server) evaluation(r *workerv1.EvaluateRequest, e calls.Evaluation) *workerv1.EvaluateResponse {
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

// Embed implements the service.
func (s *Server) Embed(ctx context.Context, r *workerv1.EmbedRequest) (*workerv1.EmbedResponse, error) {
	a, err := s.embed(r)
	return await[*workerv1.EmbedResponse](ctx, s, r.GetCall(), a, err)
}

func (s *Server) embed(r *workerv1.EmbedRequest) (*attempt, error) {
	texts, err := s.bodies.texts(r.GetInputs()...)
	if err != nil {
		return nil, err
	}
	return s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, _ func(*workerv1.Progress)) proto.Message {
		m := r.GetModel()
		e := calls.Embed(ctx, s.o.Ollama, calls.EmbedRequest{Model: m.GetName(), Digest: m.GetDigest(), Texts: texts, NumCtx: int(m.GetContext()), Pace: s.pace(m)})
		o := s.outcome(calls.Outcome{Kind: e.Kind, Message: e.Message, Turns: []calls.Turn{{Report: e.Report}}})
		if e.Kind == calls.OK {
			setValue(o, map[string]any{"vectors": e.Vectors})
		}
		return &workerv1.EmbedResponse{Outcome: o}
	})
}
