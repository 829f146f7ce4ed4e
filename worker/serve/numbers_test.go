package serve

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// Each method refuses the same numbers, and nothing of it reaches Ollama.
func TestNumbersThatNoCallCanMeanAreRefused(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	hot := func(v float64) *workerv1.Sampling { return &workerv1.Sampling{Temperature: &v} }
	with := func(change func(*workerv1.Call, *workerv1.ModelSpec)) (*workerv1.Call, *workerv1.ModelSpec) {
		c, m := &workerv1.Call{Key: "k", Attempt: 1}, &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}
		change(c, m)
		return c, m
	}
	all := func(what string, c *workerv1.Call, m *workerv1.ModelSpec, s *workerv1.Sampling, loads bool) {
		t.Helper()
		_, _, generate := r.generate(t.Context(), &workerv1.GenerateRequest{Call: c, Model: m, Sampling: s, Prompt: "x"})
		_, plan := r.client.Plan(t.Context(), &workerv1.PlanRequest{Call: c, Model: m, Sampling: s, Goal: "x"})
		_, evaluate := r.client.Evaluate(t.Context(), &workerv1.EvaluateRequest{Call: c, Model: m, Sampling: s, Questions: []*workerv1.Criterion{{Text: "x"}}, Subject: body("y")})
		errs := map[string]error{"generate": generate, "plan": plan, "evaluate": evaluate}
		if s == nil {
			_, errs["embed"] = r.client.Embed(t.Context(), &workerv1.EmbedRequest{Call: c, Model: m, Inputs: []*workerv1.Body{body("x")}})
		}
		if loads {
			_, errs["load"] = r.client.Load(t.Context(), &workerv1.LoadRequest{Model: m})
		}
		for method, err := range errs {
			if e := apierr.As(apierr.FromStatus(err)); err == nil || e.Code != apierr.InvalidArgument || !strings.Contains(e.Message, what) {
				t.Errorf("%s with a bad %s: %v", method, what, err)
			}
		}
	}
	c, m := with(func(*workerv1.Call, *workerv1.ModelSpec) {})
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.1, 5.1} {
		all("temperature", c, m, hot(v), false)
	}
	for _, n := range []int32{-1, math.MinInt32, 1<<20 + 1} {
		all("max_tokens", c, m, &workerv1.Sampling{MaxTokens: n}, false)
	}
	for _, options := range []string{`{"num_ctx":-1}`, `{"num_predict":-2}`, `{"temperature":9}`, `{"top_p":-0.5}`, `{"top_k":-1}`} {
		all("options", c, m, &workerv1.Sampling{OptionsJson: []byte(options)}, false)
	}
	for _, n := range []int32{-1, 4<<20 + 1} {
		c, m := with(func(_ *workerv1.Call, m *workerv1.ModelSpec) { m.Context = n })
		all("context", c, m, nil, true)
	}
	c, m = with(func(c *workerv1.Call, _ *workerv1.ModelSpec) { c.DeadlineSeconds = -1 })
	all("deadline_seconds", c, m, nil, false)
	c, m = with(func(*workerv1.Call, *workerv1.ModelSpec) {})
	for _, n := range []int32{-1, 101} {
		if _, err := r.client.Plan(t.Context(), &workerv1.PlanRequest{Call: c, Model: m, Goal: "x", MaxSteps: n}); apierr.CodeOf(apierr.FromStatus(err)) != apierr.InvalidArgument {
			t.Errorf("%d steps: %v", n, err)
		}
	}
	if sent, loaded := r.ollama.Calls(), r.ollama.Loaded(); len(sent) != 0 || len(loaded) != 0 {
		t.Errorf("%d calls were sent, %v loaded", len(sent), loaded)
	}
	if out := r.mustGenerate(t, &workerv1.GenerateRequest{Call: c, Model: m, Sampling: hot(5), Prompt: "x"}); out.GetFailure() != nil {
		t.Errorf("the hottest that is allowed: %v", out)
	}
}

func TestPanicOfACallIsAFailureOfThatCall(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, ollamatest.Config{}, func(o *Options, _ *line) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	boom := func(context.Context, func(*workerv1.Progress)) proto.Message { panic("boom") }
	for _, q := range []proto.Message{&workerv1.GenerateRequest{}, &workerv1.PlanRequest{}, &workerv1.EvaluateRequest{}, &workerv1.EmbedRequest{}} {
		c := &workerv1.Call{Key: string(q.ProtoReflect().Descriptor().Name())}
		a, err := r.server.start(q, c, &workerv1.ModelSpec{Name: "qwen3:8b"}, boom)
		if err != nil {
			t.Fatal(err)
		}
		<-a.done
		out, ok := a.response.(*workerv1.Outcome)
		if !ok {
			out = a.response.(interface{ GetOutcome() *workerv1.Outcome }).GetOutcome()
		}
		if f := out.GetFailure(); f.GetKind() != string(calls.ServerError) || !strings.Contains(f.GetMessage(), "internal") || !strings.Contains(f.GetMessage(), "boom") {
			t.Errorf("%s: %v", c.GetKey(), a.response)
		}
		r.server.calls.leave(c.GetKey(), a)
	}
	if !strings.Contains(log.String(), "numbers_test.go") {
		t.Errorf("the log lacks the stack: %s", log.String())
	}
	out := &workerv1.Outcome{}
	if setValue(out, []float64{math.NaN()}); out.GetFailure().GetKind() != string(calls.ServerError) || out.ValueJson != nil {
		t.Errorf("a value that is no JSON: %v", out)
	}
}

func TestPanicOfAHandlerIsAnInternalError(t *testing.T) {
	s := grpc.NewServer(Recovery(slog.New(slog.DiscardHandler))...)
	workerv1.RegisterWorkerServiceServer(s, &panicking{})
	l := bufconn.Listen(1 << 16)
	served := make(chan struct{})
	go func() { defer close(served); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-served })
	conn, err := grpc.NewClient("passthrough:///worker", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := workerv1.NewWorkerServiceClient(conn)
	if _, err := c.Unload(t.Context(), &workerv1.UnloadRequest{}); apierr.CodeOf(apierr.FromStatus(err)) != apierr.Internal {
		t.Errorf("unary: %v", err)
	}
	stream, err := c.Pull(t.Context(), &workerv1.PullRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); apierr.CodeOf(apierr.FromStatus(err)) != apierr.Internal {
		t.Errorf("stream: %v", err)
	}
}

type panicking struct {
	workerv1.UnimplementedWorkerServiceServer
}

func (*panicking) Unload(context.Context, *workerv1.UnloadRequest) (*workerv1.UnloadResponse, error) {
	panic("boom")
}

func (*panicking) Pull(*workerv1.PullRequest, workerv1.WorkerService_PullServer) error { panic("boom") }
