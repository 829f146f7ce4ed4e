package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a worker at the other end of real gRPC. It records what it is asked and answers as the test says; the
// worker itself is in packages that the coordinator must not import.
type machine struct {
	workerv1.UnimplementedWorkerServiceServer
	mu     sync.Mutex
	asked  []proto.Message
	cancel []string
	// answer makes the outcome of a call, or its error. nil: a text at once.
	answer func(ctx context.Context, r proto.Message, send func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error)
	load   func() (*workerv1.LoadResponse, error)
	renews []*workerv1.ModelSpec
	hangs  bool // unloads do not end by themselves
}

func (m *machine) outcome(ctx context.Context, r proto.Message, send func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
	m.mu.Lock()
	m.asked = append(m.asked, r)
	answer := m.answer
	m.mu.Unlock()
	if answer == nil {
		return &workerv1.Outcome{Text: "done", Report: &workerv1.Report{Model: "m"}}, nil
	}
	return answer(ctx, r, send)
}

func (m *machine) requests() []proto.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func (m *machine) Generate(r *workerv1.GenerateRequest, s workerv1.WorkerService_GenerateServer) error {
	o, err := m.outcome(s.Context(), r, s.Send)
	if err != nil || o == nil {
		return err
	}
	return s.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Outcome{Outcome: o}})
}

func (m *machine) Plan(ctx context.Context, r *workerv1.PlanRequest) (*workerv1.PlanResponse, error) {
	o, err := m.outcome(ctx, r, nil)
	return &workerv1.PlanResponse{Outcome: o}, err
}

func (m *machine) Evaluate(ctx context.Context, r *workerv1.EvaluateRequest) (*workerv1.EvaluateResponse, error) {
	o, err := m.outcome(ctx, r, nil)
	return &workerv1.EvaluateResponse{Outcome: o}, err
}

func (m *machine) Embed(ctx context.Context, r *workerv1.EmbedRequest) (*workerv1.EmbedResponse, error) {
	o, err := m.outcome(ctx, r, nil)
	return &workerv1.EmbedResponse{Outcome: o}, err
}

func (m *machine) Cancel(_ context.Context, r *workerv1.CancelRequest) (*workerv1.CancelResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel = append(m.cancel, r.GetKey())
	return &workerv1.CancelResponse{}, nil
}

func (m *machine) Load(_ context.Context, r *workerv1.LoadRequest) (*workerv1.LoadResponse, error) {
	return m.load()
}

func (m *machine) Renew(_ context.Context, r *workerv1.RenewRequest) (*workerv1.RenewResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renews = append(m.renews, r.GetModel())
	return &workerv1.RenewResponse{Loaded: true}, nil
}

func (m *machine) Unload(ctx context.Context, _ *workerv1.UnloadRequest) (*workerv1.UnloadResponse, error) {
	if m.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &workerv1.UnloadResponse{}, nil
}

// rig is a dispatcher, a real ledger and one node.
type rig struct {
	t     *testing.T
	store *ledger.SQLite
	m     *machine
	d     *Dispatcher

	mu       sync.Mutex
	client   workerv1.WorkerServiceClient // nil: not connected
	conn     *grpc.ClientConn
	state    scheduler.NodeState
	l        *bufconn.Listener
	results  []engine.Result
	progress []engine.Progress
	moved    []engine.Move
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := &rig{t: t, store: store, m: &machine{}, state: scheduler.NodeUp}
	r.l = bufconn.Listen(1 << 20)
	g := grpc.NewServer(grpc.MaxRecvMsgSize(32<<20), grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(g, r.m)
	served := make(chan struct{})
	go func() { defer close(served); g.Serve(r.l) }()
	t.Cleanup(func() { g.Stop(); <-served })
	r.connect()
	r.d = New(Options{Nodes: r, Store: store, Sink: r, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { r.d.Stop(); r.d.Stop() })
	return r
}

// connect opens a connection, as the fleet does.
func (r *rig) connect() {
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.l.DialContext(ctx) }))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client, r.conn, r.state = workerv1.NewWorkerServiceClient(conn), conn, scheduler.NodeUp
}

// disconnect closes the connection, as the fleet does when reports end.
func (r *rig) disconnect(s scheduler.NodeState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client, r.state = nil, s
	r.conn.Close()
}

func (r *rig) Client(node string) (workerv1.WorkerServiceClient, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client, r.client != nil
}

func (r *rig) State(string) scheduler.NodeState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Mode tells of one model what an earlier probe found.
func (r *rig) Mode(_, digest string) *workerv1.CallMode {
	if digest != "probed" {
		return nil
	}
	return &workerv1.CallMode{Endpoint: "chat", Think: "low", Field: "content", ServerVersion: "0.17.4"}
}

func (r *rig) Finished(e engine.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, e)
}

func (r *rig) Progressed(p engine.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, p)
}

func (r *rig) Moved(node string, m engine.Move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved = append(r.moved, m)
}

func (r *rig) Lost(string) {}

func (r *rig) ended() []engine.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.results)
}

func (r *rig) put(name, text string) string {
	r.t.Helper()
	_, err := r.store.PutArtifact(r.t.Context(), name, strings.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	raw, _ := json.Marshal(map[string]any{"ref": ledger.Digest([]byte(text)), "name": name, "bytes": len(text)})
	return string(raw)
}

func attempt(key string, kind engine.CallKind, request, body string) engine.Attempt {
	a := engine.Attempt{Key: key, RunID: "r", Step: 3, Item: 2, Number: 3, Try: 1, Node: "den", Kind: kind, Model: "qwen3:8b", Digest: "d1", Context: 4096, Seed: 9,
		Request: json.RawMessage(request), Feedback: []string{"too long"}}
	if body != "" {
		a.Body = json.RawMessage(body)
	}
	return a
}

// one sends an attempt and returns its only end.
func (r *rig) one(a engine.Attempt) engine.Result {
	r.t.Helper()
	before := len(r.ended())
	r.d.Send(a)
	for len(r.ended()) == before {
		time.Sleep(time.Second)
		synctest.Wait()
	}
	return r.only(before)
}

func (r *rig) only(before int) engine.Result {
	r.t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	got := r.ended()
	if len(got) != before+1 {
		r.t.Fatalf("%d ends, want one more than %d", len(got), before)
	}
	return got[before]
}

func inBubble(t *testing.T, f func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newRig(t)) })
}
