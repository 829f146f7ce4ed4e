package serve

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Plan implements the service.
func (s *Server) Plan(ctx context.Context, r *workerv1.PlanRequest) (*workerv1.PlanResponse, error) {
	shared, err := s.bodies.texts(r.GetContext()...)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	common, err := s.common(r.GetCall(), r.GetModel(), r.GetSampling(), r.GetSystem(), shared)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	a, err := s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		common.Progress = s.counter(progress)
		return s.planResponse(calls.Plan(ctx, s.o.Ollama, calls.PlanRequest{Common: common, Goal: r.GetGoal(), Models: r.GetModels(),
			MaxSteps: int(r.GetMaxSteps()), Findings: r.GetFeedback()}))
	})
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out, err := s.await(ctx, a)
	if err != nil {
		return nil, err
	}
	return out.(*workerv1.PlanResponse), nil
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
	out.Outcome.ValueJson = mustJSON(struct {
		Steps []calls.PlanStep `json:"steps"`
		Order []string         `json:"order"`
	}{ordered, p.Order})
	return out
}

// Evaluate implements the service.
func (s *Server) Evaluate(ctx context.Context, r *workerv1.EvaluateRequest) (*workerv1.EvaluateResponse, error) {
	sources, err := s.bodies.texts(r.GetSources()...)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	subject, err := s.item(r.GetSubject())
	if err == nil && subject == nil {
		err = apierr.New(apierr.InvalidArgument, "there is no subject to evaluate")
	}
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	var shared []string
	if r.GetGoal() != "" {
		shared = []string{"What the text was to achieve:\n" + r.GetGoal()}
	}
	common, err := s.common(r.GetCall(), r.GetModel(), r.GetSampling(), r.GetSystem(), shared)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	a, err := s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		common.Progress = s.counter(progress)
		return s.evaluation(calls.Evaluate(ctx, s.o.Ollama, calls.EvaluateRequest{Common: common, Criteria: r.GetCriteria(), Subject: *subject, Sources: sources}))
	})
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out, err := s.await(ctx, a)
	if err != nil {
		return nil, err
	}
	return out.(*workerv1.EvaluateResponse), nil
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

func (s *Server) evaluation(e calls.Evaluation) *workerv1.EvaluateResponse {
	out := &workerv1.EvaluateResponse{Outcome: s.outcome(e.Outcome), Verdict: string(e.Verdict), Reasons: e.Reasons}
	if e.Kind != calls.OK {
		return out
	}
	v := judged{Verdict: string(e.Verdict), Rule: e.Rule, Reasons: append([]string{}, e.Reasons...), Facts: []fact{}, Opinions: append([]string{}, e.Opinions...)}
	for _, q := range e.Facts {
		v.Facts = append(v.Facts, fact{q.Text, q.In, q.Line})
	}
	for _, a := range e.Answers {
		for _, q := range a.Quotes {
			out.Quotes = append(out.Quotes, &workerv1.Quote{Text: q.Text, Verified: q.Verified, Source: q.In})
		}
	}
	out.Outcome.ValueJson = mustJSON(v)
	return out
}

// Embed implements the service.
func (s *Server) Embed(ctx context.Context, r *workerv1.EmbedRequest) (*workerv1.EmbedResponse, error) {
	texts, err := s.bodies.texts(r.GetInputs()...)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	a, err := s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, _ func(*workerv1.Progress)) proto.Message {
		e := calls.Embed(ctx, s.o.Ollama, calls.EmbedRequest{Model: r.GetModel().GetName(), Digest: r.GetModel().GetDigest(), Texts: texts, NumCtx: int(r.GetModel().GetContext())})
		o := s.outcome(calls.Outcome{Kind: e.Kind, Message: e.Message, Turns: []calls.Turn{{Report: e.Report}}})
		if e.Kind == calls.OK {
			o.ValueJson = mustJSON(map[string]any{"vectors": e.Vectors})
		}
		return &workerv1.EmbedResponse{Outcome: o}
	})
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out, err := s.await(ctx, a)
	if err != nil {
		return nil, err
	}
	return out.(*workerv1.EmbedResponse), nil
}

// outcome maps how a call ended; of several turns the report adds up, and prompt and raw reply are joined in order.
func (s *Server) outcome(o calls.Outcome) *workerv1.Outcome {
	out := &workerv1.Outcome{Text: o.Text, ValueJson: o.Value, Report: s.report(o)}
	if o.Value != nil {
		out.Text = ""
	}
	var prompts, raws, thoughts []string
	for _, t := range o.Turns {
		prompts, raws = append(prompts, t.Prompt), append(raws, t.Raw)
		if t.Thinking != "" {
			thoughts = append(thoughts, t.Thinking)
		}
	}
	out.Prompt, out.Raw, out.Thinking = strings.Join(prompts, turnRule), strings.Join(raws, turnRule), strings.Join(thoughts, turnRule)
	if o.Kind != calls.OK {
		message := o.Message
		if len(o.Reasons) > 0 && !strings.Contains(message, o.Reasons[0]) {
			message += ": " + strings.Join(o.Reasons, "; ")
		}
		out.Failure = &workerv1.Failure{Kind: string(o.Kind), Message: message, Advice: advice(o.Kind.Advice()), Next: next(o.Kind, out.Report.GetModel())}
	}
	return out
}

// turnRule separates the turns of one call in its stored prompt and reply.
const turnRule = "\n\n-----\n\n"

func (s *Server) report(o calls.Outcome) *workerv1.Report {
	machine, r := s.Report(), o.Report()
	out := &workerv1.Report{OllamaVersion: machine.GetOllama().GetVersion(), Simulated: machine.GetSimulated(), Model: r.Model, Digest: r.Digest,
		Endpoint: r.Endpoint, DoneReason: r.DoneReason, PromptTokens: int64(r.Counts.PromptTokens), OutputTokens: int64(r.Counts.OutputTokens),
		LoadNanos: int64(r.Counts.LoadDuration), PromptNanos: int64(r.Counts.PromptDuration), OutputNanos: int64(r.Counts.EvalDuration),
		TotalNanos: int64(r.Counts.TotalDuration), OptionsJson: options(r)}
	out.Repaired = slices.Contains(o.Notes, "repaired")
	return out
}

// options are the settings as sent, for the ledger.
func options(r calls.Report) []byte {
	return mustJSON(struct {
		NumCtx        int      `json:"num_ctx,omitempty"`
		NumPredict    int      `json:"num_predict,omitempty"`
		Seed          int64    `json:"seed"`
		Temperature   *float64 `json:"temperature,omitempty"`
		TopP          *float64 `json:"top_p,omitempty"`
		TopK          *int     `json:"top_k,omitempty"`
		RepeatPenalty *float64 `json:"repeat_penalty,omitempty"`
		Think         string   `json:"think,omitempty"`
		Format        bool     `json:"format,omitempty"`
	}{r.Sampling.NumCtx, r.Sampling.NumPredict, r.Sampling.Seed, r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.TopK, r.Sampling.RepeatPenalty,
		string(r.Think), r.Structured})
}

func advice(a calls.Advice) workerv1.Advice {
	switch a {
	case calls.Again:
		return workerv1.Advice_ADVICE_AGAIN
	case calls.OtherNode:
		return workerv1.Advice_ADVICE_OTHER_NODE
	case calls.Changed:
		return workerv1.Advice_ADVICE_CHANGED
	default:
		return workerv1.Advice_ADVICE_NEVER
	}
}

// next says what a person can do after a failure that no further attempt cured.
func next(k calls.Kind, model string) []string {
	switch k {
	case calls.Truncated:
		return []string{"allow more tokens (max_tokens), or ask for a shorter answer"}
	case calls.InputTooLong:
		return []string{"split the document, or give the model a larger context (models.contexts)"}
	case calls.ModelMissing:
		return []string{"ollama pull " + model}
	case calls.OutOfMemory:
		return []string{"loopkeeper explain " + model}
	case calls.OllamaUnreachable:
		return []string{"start Ollama on that machine"}
	case calls.SchemaViolation, calls.TextInsteadOfStructure:
		return []string{"simplify the schema, or use a larger model"}
	default:
		return nil
	}
}

func think(s string) (ollama.Think, error) {
	switch s {
	case "":
		return ollama.ThinkDefault, nil
	case "false":
		return ollama.ThinkOff, nil
	case "true":
		return ollama.ThinkOn, nil
	case "low", "medium", "high":
		return ollama.Think(s), nil
	default:
		return "", apierr.New(apierr.InvalidArgument, "think: want true, false, low, medium or high, got %q", s)
	}
}

// mustJSON marshals values that cannot fail: structs of strings and numbers.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("serve: " + err.Error())
	}
	return raw
}
