package serve

import (
	"context"
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/calls/plan"
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
		return s.planResponse(calls.Plan(ctx, s.o.Ollama, calls.PlanRequest{Common: common, Task: planTask(r), Facts: r.GetFacts(), Leads: r.GetLeads(),
			Rejected: r.GetRejectedJson(), Feedback: r.GetFeedback()}))
	})
}

func planTask(r *workerv1.PlanRequest) plan.Task {
	t := plan.Task{Goal: r.GetGoal(), Parts: r.GetParts(), Inputs: r.GetInputs(), MaxSteps: int(r.GetMaxSteps())}
	for _, w := range r.GetWorkers() {
		t.Workers = append(t.Workers, plan.Worker{Name: w.GetName(), About: w.GetAbout(), Irreversible: w.GetIrreversible(), Asks: w.GetAsks()})
	}
	for _, l := range r.GetLists() {
		t.Lists = append(t.Lists, plan.List{Name: l.GetName(), Count: int(l.GetCount()), About: l.GetAbout()})
	}
	return t
}

// refused is the value of a plan that does not hold: what a repair is asked for with.
type refused struct {
	Rejected json.RawMessage `json:"rejected"` // the plan as the model wrote it
	Reasons  []string        `json:"reasons"`  // each "rule: message"
}

func (s *Server) planResponse(p calls.PlanResult) *workerv1.PlanResponse {
	out := &workerv1.PlanResponse{Outcome: s.outcome(p.Outcome)}
	if p.Kind == calls.PlanInvalid && json.Valid([]byte(p.Text)) {
		setValue(out.Outcome, refused{json.RawMessage(p.Text), p.Reasons})
	}
	return out
}

// Evaluate implements the service.
func (s *Server) Evaluate(ctx context.Context, r *workerv1.EvaluateRequest) (*workerv1.EvaluateResponse, error) {
	a, err := s.evaluate(r)
	return await[*workerv1.EvaluateResponse](ctx, s, r.GetCall(), a, err)
}

func (s *Server) evaluate(r *workerv1.EvaluateRequest) (*attempt, error) {
	texts, err := s.bodies.texts(append(slices.Clone(r.GetSources()), r.GetSubject())...)
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
	q := calls.EvaluateRequest{Common: common, Subject: texts[last], Reversed: r.GetReversed()}
	for _, c := range r.GetQuestions() {
		q.Criteria = append(q.Criteria, calls.Criterion{Text: c.GetText(), Absence: c.GetAbsence()})
	}
	for i, b := range r.GetSources() {
		q.Sources = append(q.Sources, calls.Source{Name: b.GetName(), Text: texts[i]})
	}
	return s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		q.Progress = s.counter(progress)
		e := calls.Evaluate(ctx, s.o.Ollama, q)
		return &workerv1.EvaluateResponse{Outcome: s.outcome(e.Outcome)}
	})
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
