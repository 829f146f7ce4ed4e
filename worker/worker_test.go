package worker

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T, url string) Options {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return Options{NodeID: "den", Name: "Den", Fleet: "home", Version: "0.1.0", Ollama: url, Slots: 1, Heartbeat: time.Second, Listener: l, Log: slog.New(slog.DiscardHandler)}
}

func dial(t *testing.T, w *Worker) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+w.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestWorkerServesUntilItIsStopped(t *testing.T) {
	o := ollamatest.New(ollamatest.Config{DecodeRate: 0.01, Models: []ollamatest.Model{{Name: "qwen3:8b", Preset: "qwen3:8b", Vocab: 1000}}})
	w, err := Start(t.Context(), options(t, o.Start(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	conn := dial(t, w)
	d, err := workerv1.NewWorkerServiceClient(conn).Describe(t.Context(), &workerv1.DescribeRequest{Fleet: "home"})
	if err != nil || d.GetNodeId() != "den" || len(d.GetReport().GetModels()) != 1 || len(w.Report().GetModels()) != 1 {
		t.Fatalf("%v %v", d, err)
	}
	h, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: workerv1.WorkerService_ServiceDesc.ServiceName})
	if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("%v %v", h, err)
	}
	stream, err := workerv1.NewWorkerServiceClient(conn).Generate(t.Context(), &workerv1.GenerateRequest{Call: &workerv1.Call{Key: "k"},
		Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}, Prompt: "Write a long story"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // it runs
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Wait(context.Background()) }()
	w.Stop()
	w.Stop()
	if err := <-ended; err != nil {
		t.Errorf("wait: %v", err)
	}
	if m, err := stream.Recv(); err == nil && m.GetOutcome() != nil {
		t.Errorf("a call that was cut off by the worker's end has an outcome: %v", m)
	}
}

func TestWorkerStartsWithoutOllama(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	w, err := Start(t.Context(), options(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if o := w.Report().GetOllama(); o.GetReachable() || o.GetError() == "" || o.GetUrl() != url {
		t.Errorf("%v", o)
	}
	if len(w.Report().GetPools()) == 0 {
		t.Error("the machine itself is unknown, too")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Wait(ctx); err != nil {
		t.Errorf("wait: %v", err)
	}
}

func TestWorkerThatCouldNotBeSeenDoesNotStart(t *testing.T) {
	o := options(t, "http://127.0.0.1:1")
	o.NodeID, o.Announce = "Living Room", true
	if w, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Living Room") {
		t.Errorf("%v %v", w, err)
	}
	if _, err := Start(t.Context(), options(t, "nonsense")); err == nil {
		t.Error("an address that is none was accepted")
	}
}
