package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// call makes one worker call and waits for its end. An error is about sending; what the model did is in the result.
func (d *Dispatcher) call(ctx context.Context, client workerv1.WorkerServiceClient, a engine.Attempt, c *call, byValue bool) (engine.Result, error) {
	req, err := d.filled(ctx, a, c, byValue)
	if err != nil {
		return engine.Result{}, err
	}
	o, err := d.outcome(ctx, client, req)
	if err != nil {
		return engine.Result{}, broken(err)
	}
	r := result(o)
	r.Kind = a.Kind
	return r, nil
}

// filled is a call with its bodies, those by hash that the node should have.
func (d *Dispatcher) filled(ctx context.Context, a engine.Attempt, c *call, byValue bool) (r request, err error) {
	raws, about, err := d.parts(ctx, a, c)
	if err != nil {
		return r, err
	}
	r = request{Attempt: a, call: c}
	if r.shared, err = d.bodies(ctx, a.Kind, raws); err != nil {
		return r, err
	}
	if r.images, err = d.images(ctx, c.Images); err != nil {
		return r, err
	}
	var shown *workerv1.Body
	if r.item, shown, err = d.about(ctx, a.Kind, about); err != nil {
		return r, err
	}
	if r.texts, err = d.prompts(ctx, a, byValue); err != nil {
		return r, err
	}
	if err := within(c.size(a)+textBytes(r.texts), append(slices.Concat(r.shared, r.images), r.item, shown)...); err != nil {
		return r, err
	}
	if !byValue {
		d.sent.byHash(a.Node, r.texts)
		d.sent.byHash(a.Node, r.images)
		if a.Kind != engine.CallEmbed { // nothing embeds the same text twice
			d.sent.byHash(a.Node, r.shared)
		}
	}
	if shown != nil {
		r.images = append(r.images, shown)
	}
	return r, nil
}

// parts are what many calls share, and what this one is about.
func (d *Dispatcher) parts(ctx context.Context, a engine.Attempt, c *call) (shared []json.RawMessage, about json.RawMessage, err error) {
	switch a.Kind {
	case engine.CallGenerate, engine.CallPlan:
		shared = c.Context
	case engine.CallEvaluate:
		shared = c.Sources
	case engine.CallEmbed:
		shared = c.Inputs
	default:
		return nil, nil, apierr.New(apierr.Internal, "no worker call is named %q", a.Kind)
	}
	if a.Line == nil {
		return shared, a.Body, nil
	}
	line, err := d.line(ctx, *a.Line)
	if err != nil {
		return nil, nil, err
	}
	if a.Kind == engine.CallEvaluate { // of a judge it is one more source
		return append(slices.Clip(shared), line), a.Body, nil
	}
	return shared, line, nil
}

func (d *Dispatcher) bodies(ctx context.Context, kind engine.CallKind, raws []json.RawMessage) ([]*workerv1.Body, error) {
	var out []*workerv1.Body
	for _, raw := range raws {
		b, err := d.body(ctx, raw)
		if err == nil {
			b, err = asText(kind, b)
		}
		if err != nil {
			return nil, err
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out, nil
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
