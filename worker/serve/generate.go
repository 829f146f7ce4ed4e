package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// progressInterval is how often a running call reports how far it is.
const progressInterval = 250 * time.Millisecond

// Generate implements the service.
func (s *Server) Generate(r *workerv1.GenerateRequest, stream workerv1.WorkerService_GenerateServer) error {
	shared, err := s.bodies.texts(r.GetContext()...)
	if err != nil {
		return apierr.ToStatus(err)
	}
	item, err := s.item(r.GetItem())
	if err != nil {
		return apierr.ToStatus(err)
	}
	common, err := s.common(r.GetCall(), r.GetModel(), r.GetSampling(), r.GetSystem(), shared)
	if err != nil {
		return apierr.ToStatus(err)
	}
	a, err := s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		common.Progress = s.counter(progress)
		return s.outcome(calls.Generate(ctx, s.o.Ollama, calls.GenerateRequest{Common: common, Prompt: r.GetPrompt(), Item: item,
			Schema: r.GetSchemaJson(), Feedback: r.GetFeedback()}))
	})
	if err != nil {
		return apierr.ToStatus(err)
	}
	defer s.calls.leave(a)
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-a.done:
			return stream.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Outcome{Outcome: a.response.(*workerv1.Outcome)}})
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-tick.C:
			if p := s.calls.latest(a); p != nil {
				if err := stream.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Progress{Progress: p}}); err != nil {
					return err
				}
			}
		}
	}
}

// counter turns pieces received into progress with a rate since the first one.
func (s *Server) counter(report func(*workerv1.Progress)) func(int) {
	var first time.Time
	report(&workerv1.Progress{Phase: "prompt"})
	return func(tokens int) {
		if first.IsZero() {
			first = time.Now()
		}
		p := &workerv1.Progress{Tokens: int64(tokens), Phase: "writing"}
		if took := time.Since(first).Seconds(); took > 0 && tokens > 1 {
			p.TokensPerSecond = float64(tokens-1) / took
		}
		report(p)
	}
}

// start joins the attempt of the call's key, or begins it under the call's deadline.
func (s *Server) start(r proto.Message, c *workerv1.Call, m *workerv1.ModelSpec, run func(context.Context, func(*workerv1.Progress)) proto.Message) (*attempt, error) {
	switch {
	case c.GetKey() == "":
		return nil, apierr.New(apierr.InvalidArgument, "the call has no key")
	case m.GetName() == "":
		return nil, apierr.New(apierr.InvalidArgument, "the call %s names no model", c.GetKey())
	}
	return s.calls.join(c.GetKey(), fingerprint(r), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		if d := c.GetDeadlineSeconds(); d > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(d)*time.Second)
			defer cancel()
		}
		defer s.monitor.refresh() // the call may have loaded or evicted a model
		return run(ctx, progress)
	}), nil
}

// await waits for the attempt's end, or for the caller to go.
func (s *Server) await(ctx context.Context, a *attempt) (proto.Message, error) {
	defer s.calls.leave(a)
	select {
	case <-a.done:
		return a.response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fingerprint identifies a request whatever it sends by value and what by hash.
func fingerprint(r proto.Message) string {
	r = proto.Clone(r)
	for _, b := range bodiesOf(r) {
		if b != nil {
			b.Text = nil
		}
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil { // cannot be: it came off the wire
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func bodiesOf(r proto.Message) []*workerv1.Body {
	switch r := r.(type) {
	case *workerv1.GenerateRequest:
		return append(r.GetContext(), r.GetItem())
	case *workerv1.PlanRequest:
		return r.GetContext()
	case *workerv1.EvaluateRequest:
		return append(r.GetSources(), r.GetSubject())
	case *workerv1.EmbedRequest:
		return r.GetInputs()
	default:
		return nil
	}
}

// item resolves the item of a call; nil when there is none.
func (s *Server) item(b *workerv1.Body) (*string, error) {
	texts, err := s.bodies.texts(b)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	return &texts[0], nil
}

// sampling is what may stand in a call's further options.
type sampling struct {
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        *int     `json:"top_k"`
	NumPredict  *int     `json:"num_predict"`
}

// common maps what every generating call carries.
func (s *Server) common(c *workerv1.Call, m *workerv1.ModelSpec, p *workerv1.Sampling, system string, shared []string) (calls.Common, error) {
	var more sampling
	if raw := p.GetOptionsJson(); len(raw) > 0 {
		if err := strictJSON(raw, &more); err != nil {
			return calls.Common{}, apierr.New(apierr.InvalidArgument, "options: %v", err).
				WithNext("options may hold temperature, top_p, top_k and num_predict")
		}
	}
	o := calls.Options{NumCtx: int(m.GetContext()), NumPredict: int(p.GetMaxTokens()), Seed: p.GetSeed(), Temperature: p.Temperature,
		TopP: more.TopP, TopK: more.TopK}
	if more.Temperature != nil && o.Temperature == nil {
		o.Temperature = more.Temperature
	}
	if more.NumPredict != nil && o.NumPredict == 0 {
		o.NumPredict = *more.NumPredict
	}
	var err error
	if o.Think, err = think(p.GetThink()); err != nil {
		return calls.Common{}, err
	}
	return calls.Common{Model: m.GetName(), Digest: m.GetDigest(), Attempt: int(c.GetAttempt()), System: system, Context: shared, Options: o}, nil
}

func strictJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
