package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// call is a step's request, see docs/requests.md, as far as workers need it.
type call struct {
	Prompt      string            `json:"prompt"`
	System      string            `json:"system"`
	Context     []json.RawMessage `json:"context"`
	Schema      json.RawMessage   `json:"schema"`
	Options     json.RawMessage   `json:"options"`
	Think       json.RawMessage   `json:"think"`
	MaxTokens   int32             `json:"max_tokens"`
	Temperature *float64          `json:"temperature"`
	Goal        string            `json:"goal"`
	MaxSteps    int32             `json:"max_steps"`
	Models      []string          `json:"models"`
	Criteria    []string          `json:"criteria"`
	Sources     []json.RawMessage `json:"sources"`
	Inputs      []json.RawMessage `json:"inputs"`
}

func parseCall(a engine.Attempt) (*call, error) {
	c := &call{}
	if err := json.Unmarshal(a.Request, c); err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "read the request of step %d", a.Step)
	}
	return c, nil
}

// call makes one worker call and waits for its end. An error is about sending; what the model did is in the result.
func (d *Dispatcher) call(ctx context.Context, client workerv1.WorkerServiceClient, a engine.Attempt, c *call, byValue bool) (engine.Result, error) {
	var raws []json.RawMessage // what many calls share
	switch a.Kind {
	case engine.CallGenerate, engine.CallPlan:
		raws = c.Context
	case engine.CallEvaluate:
		raws = c.Sources
	case engine.CallEmbed:
		raws = c.Inputs
	default:
		return engine.Result{}, apierr.New(apierr.Internal, "no worker call is named %q", a.Kind)
	}
	about := a.Body
	if a.Line != nil {
		line, err := d.line(ctx, *a.Line)
		if err != nil {
			return engine.Result{}, err
		}
		if a.Kind == engine.CallEvaluate { // of a judge it is one more source
			raws = append(slices.Clip(raws), line)
		} else {
			about = line
		}
	}
	shared, err := d.bodies(ctx, raws)
	if err != nil {
		return engine.Result{}, err
	}
	item, err := d.body(ctx, about)
	if err != nil {
		return engine.Result{}, err
	}
	if err := within(c.size(a), append(shared, item)...); err != nil {
		return engine.Result{}, err
	}
	if !byValue && a.Kind != engine.CallEmbed { // nothing embeds the same text twice
		d.sent.byHash(a.Node, shared)
	}
	o, err := d.outcome(ctx, client, a, c, shared, item)
	if err != nil {
		return engine.Result{}, broken(err)
	}
	return result(o), nil
}

// size is how much text a call has beside its bodies, bytes.
func (c *call) size(a engine.Attempt) int64 {
	n := len(c.Prompt) + len(c.System) + len(c.Goal) + len(c.Schema) + len(c.Options)
	for _, texts := range [][]string{c.Criteria, a.Feedback} {
		for _, t := range texts {
			n += len(t)
		}
	}
	return int64(n)
}

// outcome asks the worker. Its errors are those of gRPC.
func (d *Dispatcher) outcome(ctx context.Context, client workerv1.WorkerServiceClient, a engine.Attempt, c *call, shared []*workerv1.Body, item *workerv1.Body) (*workerv1.Outcome, error) {
	switch a.Kind {
	case engine.CallPlan:
		r, err := client.Plan(ctx, &workerv1.PlanRequest{Call: header(a), Model: d.model(a), Sampling: c.sampling(a), System: c.System, Goal: c.Goal,
			Context: shared, MaxSteps: c.MaxSteps, Models: c.Models, Feedback: a.Feedback})
		return r.GetOutcome(), err
	case engine.CallEvaluate:
		r, err := client.Evaluate(ctx, &workerv1.EvaluateRequest{Call: header(a), Model: d.model(a), Sampling: c.sampling(a), System: c.System,
			Criteria: c.Criteria, Subject: item, Sources: shared, Goal: c.Goal})
		return r.GetOutcome(), err
	case engine.CallEmbed:
		r, err := client.Embed(ctx, &workerv1.EmbedRequest{Call: header(a), Model: d.model(a), Inputs: shared})
		return r.GetOutcome(), err
	default:
		return d.generate(ctx, client, a, c, shared, item)
	}
}

// generate follows the stream: progress is passed on, the outcome ends it.
func (d *Dispatcher) generate(ctx context.Context, client workerv1.WorkerServiceClient, a engine.Attempt, c *call, shared []*workerv1.Body, item *workerv1.Body) (*workerv1.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream, whose last message is not its end
	defer cancel()
	stream, err := client.Generate(ctx, &workerv1.GenerateRequest{Call: header(a), Model: d.model(a), Sampling: c.sampling(a), System: c.System,
		Context: shared, Prompt: c.Prompt, Item: item, SchemaJson: c.Schema, Feedback: a.Feedback})
	if err != nil {
		return nil, err
	}
	for {
		msg, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if p := msg.GetProgress(); p != nil {
			d.o.Sink.Progressed(engine.Progress{Key: a.Key, Tokens: tokens(p.GetTokens()), TokensPerSecond: rate(p.GetTokensPerSecond()), Phase: brief(p.GetPhase())})
		}
		if o := msg.GetOutcome(); o != nil {
			return o, nil
		}
	}
}

func (d *Dispatcher) bodies(ctx context.Context, raws []json.RawMessage) ([]*workerv1.Body, error) {
	var out []*workerv1.Body
	for _, raw := range raws {
		b, err := d.body(ctx, raw)
		if err != nil {
			return nil, err
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out, nil
}

func header(a engine.Attempt) *workerv1.Call {
	return &workerv1.Call{RunId: a.RunID, StepId: fmt.Sprint(a.Step), Item: int32(a.Item), Attempt: int32(a.Try), Key: a.Key,
		DeadlineSeconds: int64((a.Deadline + time.Second - 1) / time.Second)}
}

func (d *Dispatcher) model(a engine.Attempt) *workerv1.ModelSpec {
	return &workerv1.ModelSpec{Name: a.Model, Digest: a.Digest, Context: int32(a.Context), Mode: d.o.Nodes.Mode(a.Node, a.Digest)}
}

func (c *call) sampling(a engine.Attempt) *workerv1.Sampling {
	s := &workerv1.Sampling{MaxTokens: c.MaxTokens, Temperature: c.Temperature, Seed: a.Seed, OptionsJson: c.Options}
	var think any
	if json.Unmarshal(c.Think, &think) == nil && think != nil {
		s.Think = fmt.Sprint(think) // true, false or a level
	}
	return s
}

// errAnswer is an answer that does not fit into a message. What a call sends always does, see within.
var errAnswer = errors.New("a message holds less")

// broken says what the end of a call without an outcome means. What gRPC itself reports is mostly the connection, not the
// model, so the call is joined again; two things stay as they are however often they are tried.
func broken(err error) error {
	e := apierr.FromStatus(err)
	if len(status.Convert(err).Details()) > 0 { // our worker's own words
		return e
	}
	switch status.Code(err) {
	case codes.ResourceExhausted:
		large := apierr.New(apierr.InvalidArgument, "the answer is larger than one message between machines may be (%v)", e)
		large.Cause = errAnswer
		return large.WithNext("lower max_tokens of the call", "ask for less in one call")
	case codes.Unimplemented:
		return apierr.New(apierr.IncompatibleVersion, "the worker does not know this call").WithNext("install the same release on both machines")
	default:
		return apierr.New(apierr.Unavailable, "the connection broke: %v", e).WithNext("loopkeeper nodes")
	}
}

// result is the outcome as the engine takes it.
func result(o *workerv1.Outcome) engine.Result {
	r := engine.Result{Value: o.GetValueJson(), Text: o.GetText(), Prompt: o.GetPrompt(), Raw: o.GetRaw(), Thinking: o.GetThinking(), Report: report(o.GetReport())}
	if f := o.GetFailure(); f != nil {
		r.Failure = &engine.Failure{Kind: brief(f.GetKind()), Message: cut(f.GetMessage(), mostMessage), Advice: advice(f.GetAdvice())}
		for _, n := range f.GetNext()[:min(len(f.GetNext()), mostNext)] {
			r.Failure.Next = append(r.Failure.Next, cut(n, mostMessage))
		}
	}
	return r
}

func advice(a workerv1.Advice) engine.Advice {
	switch a {
	case workerv1.Advice_ADVICE_AGAIN:
		return engine.Again
	case workerv1.Advice_ADVICE_OTHER_NODE:
		return engine.OtherNode
	case workerv1.Advice_ADVICE_CHANGED:
		return engine.Changed
	default:
		return engine.Never
	}
}

func report(r *workerv1.Report) engine.Report {
	return engine.Report{Model: brief(r.GetModel()), Digest: brief(r.GetDigest()), Ollama: brief(r.GetOllamaVersion()), Endpoint: brief(r.GetEndpoint()), DoneReason: brief(r.GetDoneReason()),
		PromptTokens: tokens(r.GetPromptTokens()), OutputTokens: tokens(r.GetOutputTokens()), LoadNanos: nanos(r.GetLoadNanos()), PromptNanos: nanos(r.GetPromptNanos()),
		OutputNanos: nanos(r.GetOutputNanos()), TotalNanos: nanos(r.GetTotalNanos()), Options: r.GetOptionsJson(), Simulated: r.GetSimulated(), Repaired: r.GetRepaired()}
}
