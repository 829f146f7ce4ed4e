package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// progressInterval is how often a running call reports how far it is, when that has changed.
const progressInterval = 250 * time.Millisecond

// Generate implements the service.
func (s *Server) Generate(r *workerv1.GenerateRequest, stream workerv1.WorkerService_GenerateServer) error {
	a, err := s.generate(r)
	if err != nil {
		return apierr.ToStatus(err)
	}
	defer s.calls.leave(r.GetCall().GetKey(), a)
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	var told *workerv1.Progress
	for {
		select {
		case <-a.done:
			return stream.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Outcome{Outcome: a.response.(*workerv1.Outcome)}})
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-tick.C:
			p := s.calls.latest(a)
			if p == told {
				continue
			}
			told = p
			if err := stream.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Progress{Progress: p}}); err != nil {
				return err
			}
		}
	}
}

// generate joins or begins the attempt.
func (s *Server) generate(r *workerv1.GenerateRequest) (*attempt, error) {
	shared, err := s.bodies.texts(r.GetContext()...)
	if err != nil {
		return nil, err
	}
	item, err := s.one(r.GetItem())
	if err != nil {
		return nil, err
	}
	seen, err := s.bodies.texts(r.GetImages()...)
	if err != nil {
		return nil, err
	}
	var images [][]byte
	for _, body := range seen {
		images = append(images, []byte(body))
	}
	common, err := s.common(r.GetCall(), r.GetModel(), r.GetSampling(), r.GetSystem(), shared)
	if err != nil {
		return nil, err
	}
	return s.start(r, r.GetCall(), r.GetModel(), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		common.Progress = s.counter(progress)
		return s.outcome(calls.Generate(ctx, s.o.Ollama, calls.GenerateRequest{Common: common, Prompt: r.GetPrompt(), Item: item, Images: images,
			Schema: r.GetSchemaJson(), Feedback: r.GetFeedback()}))
	})
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
func (s *Server) start(r proto.Message, c *workerv1.Call, m *workerv1.ModelSpec, run runFunc) (*attempt, error) {
	switch {
	case c.GetKey() == "":
		return nil, apierr.New(apierr.InvalidArgument, "the call has no key")
	case m.GetName() == "":
		return nil, apierr.New(apierr.InvalidArgument, "the call %s names no model", c.GetKey())
	}
	if err := checkNumbers(r); err != nil {
		return nil, err
	}
	run = contained(s.o.Log, c.GetKey(), run, failedResponse(r))
	return s.calls.join(c.GetKey(), fingerprint(r), func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message {
		if d := c.GetDeadlineSeconds(); d > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, min(time.Duration(d), maxDeadline)*time.Second)
			defer cancel()
		}
		defer func() {
			if !s.holds(m.GetName()) { // the call has loaded its model, and that may have evicted others
				s.monitor.refresh()
			}
		}()
		return run(ctx, progress)
	})
}

// maxDeadline in seconds keeps a duration from overflowing: a year.
const maxDeadline = 365 * 24 * 3600

// await waits for the end of an attempt, or for its caller to go.
func await[T proto.Message](ctx context.Context, s *Server, c *workerv1.Call, a *attempt, err error) (response T, _ error) {
	if err != nil {
		return response, apierr.ToStatus(err)
	}
	defer s.calls.leave(c.GetKey(), a)
	select {
	case <-a.done:
		return a.response.(T), nil
	case <-ctx.Done():
		return response, ctx.Err()
	}
}

// fingerprint identifies a request whatever it sends by value and what by hash, and whatever its sender has learned of the
// model by then.
func fingerprint(r proto.Message) string {
	r = proto.Clone(r)
	if m, ok := r.(interface{ GetModel() *workerv1.ModelSpec }); ok && m.GetModel() != nil {
		m.GetModel().Mode = nil
	}
	bodies := bodiesOf(r)
	if c, ok := r.(interface{ GetCall() *workerv1.Call }); ok {
		bodies = append(bodies, c.GetCall().GetPrompts()...)
	}
	for _, b := range bodies {
		if b != nil {
			b.Text, b.Data = nil, nil
		}
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil { // cannot be: it came off the wire
		return ""
	}
	// Two kinds of calls can look alike on the wire.
	sum := sha256.Sum256(append(raw, r.ProtoReflect().Descriptor().FullName()...))
	return hex.EncodeToString(sum[:])
}

func bodiesOf(r proto.Message) []*workerv1.Body {
	switch r := r.(type) {
	case *workerv1.GenerateRequest:
		return append(append(r.GetContext(), r.GetItem()), r.GetImages()...)
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
