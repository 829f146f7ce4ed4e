package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a whole coordinator over a real ledger and a network in memory.
type rig struct {
	t       *testing.T
	store   *ledger.SQLite
	c       *coordinator.Coordinator
	client  coordinatorv1.CoordinatorServiceClient
	steer   coordinatorv1.SteerServiceClient
	library coordinatorv1.WorkflowServiceClient
	judges  coordinatorv1.JudgeServiceClient
}

// newRig starts a coordinator and the machines, and waits until they are up.
func newRig(t *testing.T, machines ...*machine) *rig {
	t.Helper()
	return newRigWith(t, func(*coordinator.Options) {}, machines...)
}

// newRigWith does it with other settings.
func newRigWith(t *testing.T, settings func(*coordinator.Options), machines ...*machine) *rig {
	t.Helper()
	at := map[string]*bufconn.Listener{"coordinator": bufconn.Listen(1 << 20)}
	o := coordinator.Options{Name: "here", Fleet: "home", Version: "0.1.0", DataDir: "/data", Host: script.NewHost(script.Limits{}), LostAfter: 20 * time.Second,
		Contexts: map[string]int{"small:1b": 4096}, Listener: at["coordinator"], Log: slog.New(slog.DiscardHandler),
		Dial: func(addr string) (*grpc.ClientConn, error) { return dial(at[addr]) }}
	for _, m := range machines {
		at[m.id] = bufconn.Listen(1 << 20)
		o.Workers = append(o.Workers, m.id)
		m.serve(t, at[m.id])
	}
	r := &rig{t: t}
	var err error
	if r.store, err = ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	o.Store = r.store
	settings(&o)
	if r.c, err = coordinator.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	conn, err := dial(at["coordinator"])
	if err != nil {
		t.Fatal(err)
	}
	r.client, r.steer = coordinatorv1.NewCoordinatorServiceClient(conn), coordinatorv1.NewSteerServiceClient(conn)
	r.library, r.judges = coordinatorv1.NewWorkflowServiceClient(conn), coordinatorv1.NewJudgeServiceClient(conn)
	t.Cleanup(func() {
		conn.Close()
		if r.c != nil {
			r.c.Stop()
		}
		r.store.Close()
	})
	r.eventually("every machine is up", func() bool {
		i, err := r.client.Info(t.Context(), &coordinatorv1.InfoRequest{})
		return err == nil && int(i.GetNodesUp()) == len(machines)
	})
	return r
}

func dial(l *bufconn.Listener) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
}

// eventually asks until the answer is yes. It is for what has no event to wait for from outside.
func (r *rig) eventually(what string, yes func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	give := time.After(time.Minute)
	for !yes() {
		select {
		case <-tick.C:
		case <-give:
			r.t.Fatalf("it never came to be that %s", what)
		}
	}
}

// submit starts a built-in workflow, or says why not.
func (r *rig) submit(workflow, input string, models ...string) (*coordinatorv1.SubmitResponse, *apierr.Error) {
	r.t.Helper()
	return r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: workflow}, InputJson: []byte(input), Models: models})
}

// script starts a script of the test's own, or says why not.
func (r *rig) script(text, input string) (*coordinatorv1.SubmitResponse, *apierr.Error) {
	r.t.Helper()
	return r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: bundle(r.t, text)}, InputJson: []byte(input)})
}

func (r *rig) ask(q *coordinatorv1.SubmitRequest) (*coordinatorv1.SubmitResponse, *apierr.Error) {
	r.t.Helper()
	out, err := r.client.Submit(r.t.Context(), q)
	return out, apierr.As(apierr.FromStatus(err))
}

func bundle(t *testing.T, text string) *coordinatorv1.Bundle {
	t.Helper()
	p, err := script.BundleText("flow.ts", text)
	if err != nil {
		t.Fatal(err)
	}
	return &coordinatorv1.Bundle{Name: p.Name, Code: p.Code, SourceMap: p.SourceMap}
}

// end watches a run to its end.
func (r *rig) end(id string) *coordinatorv1.Run {
	r.t.Helper()
	stream, err := r.client.WatchRun(r.t.Context(), &coordinatorv1.WatchRunRequest{RunId: id})
	if err != nil {
		r.t.Fatal(err)
	}
	var last *coordinatorv1.Run
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			r.t.Fatal(err)
		}
		last = msg.GetRun()
	}
}

// put uploads a text in the given chunks.
func (r *rig) put(name string, chunks ...string) (*coordinatorv1.Ref, *apierr.Error) {
	r.t.Helper()
	stream, err := r.client.PutArtifact(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range chunks {
		if err := stream.Send(&coordinatorv1.PutArtifactRequest{Name: name, Chunk: []byte(c)}); err != nil {
			break // the reason comes with the answer
		}
		name = ""
	}
	out, err := stream.CloseAndRecv()
	return out.GetRef(), apierr.As(apierr.FromStatus(err))
}

// refused checks that an error has a code and says what it must.
func refused(t *testing.T, err *apierr.Error, code apierr.Code, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("it was accepted, want %s", code)
		return
	}
	if err.Code != code {
		t.Errorf("code %s, want %s: %v", err.Code, code, err)
	}
	for _, s := range says {
		if !strings.Contains(err.Message, s) {
			t.Errorf("the error lacks %q: %s", s, err.Message)
		}
	}
}

// machine is a worker as far as the coordinator sees it: it has models, takes its time for loads, and answers with the
// item, once gate is open.
type machine struct {
	workerv1.UnimplementedWorkerServiceServer
	id   string
	gate chan struct{} // nil is open

	mu      sync.Mutex
	report  *workerv1.NodeReport
	changed chan struct{}
}

// newMachine has 8 GiB, a model of about 1 GiB and one of 40.
func newMachine(id string) *machine {
	total := uint64(8 << 30)
	shape := func(weights uint64) *workerv1.Shape {
		return &workerv1.Shape{Architecture: "llama", WeightBytes: weights, Layers: 16, EmbeddingLength: 2048, Heads: 32, KvHeads: []int32{8},
			FeedForward: 8192, VocabSize: 32000, ContextLength: 8192}
	}
	return &machine{id: id, changed: make(chan struct{}), report: &workerv1.NodeReport{Ollama: &workerv1.Ollama{Reachable: true, Version: "0.17.4"}, Slots: 2,
		Simulated: true, Pools: []*workerv1.Pool{{Id: "gpu", Kind: "device", TotalBytes: &total, FreeBytes: &total}},
		Devices: []*workerv1.Device{{Name: "card", PoolId: "gpu", State: "ok"}},
		Models: []*workerv1.Model{
			{Name: "small:1b", Digest: "aa", FileBytes: 1 << 30, Shape: shape(1 << 30)},
			{Name: "huge:70b", Digest: "bb", FileBytes: 40 << 30, Shape: shape(40 << 30)},
		}}}
}

func (m *machine) serve(t *testing.T, l net.Listener) {
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(g, m)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		<-served
	})
}

func (m *machine) latest() (*workerv1.NodeReport, chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report, m.changed
}

func (m *machine) Describe(context.Context, *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	r, _ := m.latest()
	return &workerv1.DescribeResponse{NodeId: m.id, Name: "the " + m.id, Version: "0.1.0", Fleet: "home", Simulated: true, Report: r}, nil
}

func (m *machine) Watch(_ *workerv1.WatchRequest, s workerv1.WorkerService_WatchServer) error {
	for {
		r, changed := m.latest()
		if err := s.Send(&workerv1.WatchResponse{Report: r}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

func (m *machine) Load(_ context.Context, r *workerv1.LoadRequest) (*workerv1.LoadResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &workerv1.LoadedModel{Name: r.GetModel().GetName(), Digest: r.GetModel().GetDigest(), SizeBytes: 2 << 30, VramBytes: 2 << 30, Context: r.GetModel().GetContext()}
	old := m.report
	m.report = &workerv1.NodeReport{Ollama: old.Ollama, Slots: old.Slots, Simulated: true, Pools: old.Pools, Devices: old.Devices, Models: old.Models,
		Loaded: []*workerv1.LoadedModel{l}}
	close(m.changed)
	m.changed = make(chan struct{})
	return &workerv1.LoadResponse{Loaded: l}, nil
}

func (m *machine) Generate(r *workerv1.GenerateRequest, s workerv1.WorkerService_GenerateServer) error {
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
	return s.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Outcome{Outcome: &workerv1.Outcome{Prompt: r.GetPrompt(), Text: r.GetItem().GetText(),
		Report: &workerv1.Report{Model: r.GetModel().GetName(), PromptTokens: 3, OutputTokens: 2, Simulated: true}}}})
}

// Pull downloads in one step; "broken:1b" fails, and "slow:1b" never ends.
func (m *machine) Pull(r *workerv1.PullRequest, s workerv1.WorkerService_PullServer) error {
	if err := s.Send(&workerv1.PullResponse{Status: "pulling x", CompletedBytes: 50, TotalBytes: 100}); err != nil {
		return err
	}
	switch r.GetName() {
	case "broken:1b":
		return apierr.ToStatus(apierr.New(apierr.NotFound, "pull broken:1b: the registry has no such model"))
	case "slow:1b":
		<-s.Context().Done()
		return s.Context().Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := proto.Clone(m.report).(*workerv1.NodeReport)
	next.Models = append(next.Models, &workerv1.Model{Name: r.GetName(), Digest: "cc", FileBytes: 100})
	m.report = next
	close(m.changed)
	m.changed = make(chan struct{})
	return nil
}

func (m *machine) Cancel(context.Context, *workerv1.CancelRequest) (*workerv1.CancelResponse, error) {
	return &workerv1.CancelResponse{}, nil
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
