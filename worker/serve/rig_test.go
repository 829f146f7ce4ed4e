package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a worker's server over a stand-in Ollama, reached by real gRPC over memory. It works under fake time.
type rig struct {
	ollama *ollamatest.Server
	line   *line // to the stand-in
	server *Server
	client workerv1.WorkerServiceClient
	dial   func() (workerv1.WorkerServiceClient, *grpc.ClientConn)
}

// line is the connection to Ollama, which a test can break.
type line struct {
	rt   http.RoundTripper
	down atomic.Bool  // refuses at once
	hung atomic.Bool  // never answers
	fake atomic.Bool  // hides that the server is a stand-in
	slow atomic.Int64 // seconds that /api/show takes
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.down.Load() {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	if l.hung.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if r.URL.Path == "/api/show" {
		late := time.NewTimer(time.Duration(l.slow.Load()) * time.Second)
		defer late.Stop()
		select {
		case <-late.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	resp, err := l.rt.RoundTrip(r)
	if err == nil && l.fake.Load() {
		resp.Header.Del("Server")
	}
	return resp, err
}

func newRig(t *testing.T, cfg ollamatest.Config, change ...func(*Options, *line)) *rig {
	t.Helper()
	if cfg.Models == nil { // with a small vocabulary: reading it is most of a test's time
		cfg.Models = ollamatest.SmallPresets()
		for i := range cfg.Models {
			cfg.Models[i].Vocab = 1000
		}
	}
	r := &rig{ollama: ollamatest.New(cfg)}
	url, web := r.ollama.StartPipe(t)
	r.line = &line{rt: web.Transport}
	client, err := ollama.New(ollama.Options{BaseURL: url, Transport: r.line})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{NodeID: "den", Name: "Den", Version: "0.1.0", Fleet: "home", Ollama: client, Slots: 1, Heartbeat: 3 * time.Second,
		Prober: prober(&card{}, hwprobe.Overrides{}), Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o, r.line)
	}
	r.server = New(t.Context(), o)
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(g, r.server)
	served := make(chan struct{})
	go func() { defer close(served); g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served; r.server.Stop(); r.server.Stop() })
	r.dial = func() (workerv1.WorkerServiceClient, *grpc.ClientConn) {
		conn, err := grpc.NewClient("passthrough:///worker", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return workerv1.NewWorkerServiceClient(conn), conn
	}
	r.client, _ = r.dial()
	return r
}

func body(text string) *workerv1.Body {
	return &workerv1.Body{Sha256: sha(text), Bytes: uint64(len(text)), Text: &text}
}

func byHash(text string) *workerv1.Body {
	return &workerv1.Body{Sha256: sha(text), Bytes: uint64(len(text))}
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func request(key string) *workerv1.GenerateRequest {
	return &workerv1.GenerateRequest{Call: &workerv1.Call{RunId: "r", StepId: "1", Attempt: 1, Key: key},
		Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}, Sampling: &workerv1.Sampling{MaxTokens: 200, Seed: 7},
		Prompt: "Summarise {{item}}", Item: body("The pump ran for twelve hours. It failed at night because a seal was worn.")}
}

// generate follows a call to its end.
func (r *rig) generate(ctx context.Context, g *workerv1.GenerateRequest) (*workerv1.Outcome, []*workerv1.Progress, error) {
	stream, err := r.client.Generate(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	return follow(stream)
}

func follow(stream workerv1.WorkerService_GenerateClient) (out *workerv1.Outcome, told []*workerv1.Progress, _ error) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) && out != nil {
			return out, told, nil
		}
		if err != nil {
			return nil, told, err
		}
		if p := m.GetProgress(); p != nil {
			told = append(told, p)
		}
		if o := m.GetOutcome(); o != nil {
			out = o
		}
	}
}

func (r *rig) mustGenerate(t *testing.T, g *workerv1.GenerateRequest) *workerv1.Outcome {
	t.Helper()
	out, _, err := r.generate(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
