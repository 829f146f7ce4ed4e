package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

const (
	fleetID = "test"
	version = "0.1.0"
	model   = "small:8b"
	judge   = "judge:8b"
)

// machine is a worker that has its models loaded and answers at once, at the other end of real gRPC. Its answer depends on the call alone,
// so that an undisturbed run and a disturbed one have the same.
type machine struct {
	workerv1.UnimplementedWorkerServiceServer
	id      string
	slots   int32
	reached func(key string) // is called when a call comes in; nil: nothing
}

func (m *machine) report() *workerv1.NodeReport {
	total := uint64(1 << 40)
	r := &workerv1.NodeReport{Ollama: &workerv1.Ollama{Reachable: true, Version: "0.17.4"}, Slots: m.slots, Simulated: true, HeartbeatSeconds: 5,
		Pools: []*workerv1.Pool{{Id: "host", Kind: "host", TotalBytes: &total, FreeBytes: &total}}}
	for _, name := range []string{judge, model} {
		r.Models = append(r.Models, &workerv1.Model{Name: name, Digest: "sha-" + name, FileBytes: 4 << 30, Shape: &workerv1.Shape{Architecture: "llama",
			WeightBytes: 4 << 30, Layers: 32, EmbeddingLength: 4096, Heads: 32, KvHeads: []int32{8}, FeedForward: 14336, VocabSize: 32000, ContextLength: 8192}})
		r.Loaded = append(r.Loaded, &workerv1.LoadedModel{Name: name, Digest: "sha-" + name, SizeBytes: 5 << 30, VramBytes: 5 << 30, Context: 8192})
	}
	return r
}

func (m *machine) Describe(context.Context, *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	return &workerv1.DescribeResponse{NodeId: m.id, Name: "machine " + m.id, Version: version, Fleet: fleetID, Simulated: true, Report: m.report()}, nil
}

func (m *machine) Watch(_ *workerv1.WatchRequest, s workerv1.WorkerService_WatchServer) error {
	beat := time.NewTicker(5 * time.Second)
	defer beat.Stop()
	for {
		if err := s.Send(&workerv1.WatchResponse{Report: m.report()}); err != nil {
			return err
		}
		select {
		case <-beat.C:
		case <-s.Context().Done():
			return nil
		}
	}
}

func (m *machine) Generate(r *workerv1.GenerateRequest, s workerv1.WorkerService_GenerateServer) error {
	m.reach(r.GetCall())
	value, err := json.Marshal(map[string]string{"of": cmp.Or(r.GetItem().GetText(), r.GetPrompt())})
	if err != nil {
		return err
	}
	return s.Send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Outcome{Outcome: &workerv1.Outcome{ValueJson: value, Prompt: r.GetPrompt(),
		Raw: string(value), Report: report(r.GetModel())}}})
}

func (m *machine) Evaluate(_ context.Context, r *workerv1.EvaluateRequest) (*workerv1.EvaluateResponse, error) {
	m.reach(r.GetCall())
	var criteria []string
	for _, q := range r.GetQuestions() {
		criteria = append(criteria, q.GetText())
	}
	value := allMet(criteria)
	return &workerv1.EvaluateResponse{Outcome: &workerv1.Outcome{ValueJson: value, Raw: string(value), Report: report(r.GetModel())}}, nil
}

// allMet is what a judge answers that finds every criterion met, by a line of the subject.
func allMet(criteria []string) []byte {
	j := panel.Judgement{}
	for _, c := range criteria {
		j.Answers = append(j.Answers, panel.Answer{Criterion: c, Said: panel.Met, Counted: panel.Met, Reason: "it is",
			Quotes: []panel.Quote{{Text: "a line", In: panel.Subject, Line: 1}}})
	}
	value, err := json.Marshal(j)
	if err != nil { // cannot be: it is plain data
		panic(err)
	}
	return value
}

func (m *machine) reach(c *workerv1.Call) {
	if m.reached != nil {
		m.reached(c.GetKey())
	}
}

func report(m *workerv1.ModelSpec) *workerv1.Report {
	return &workerv1.Report{Model: m.GetName(), Digest: m.GetDigest(), PromptTokens: 20, OutputTokens: 10, OutputNanos: 3e8, TotalNanos: 5e8, Simulated: true}
}

func (m *machine) Cancel(context.Context, *workerv1.CancelRequest) (*workerv1.CancelResponse, error) {
	return &workerv1.CancelResponse{}, nil
}

func (m *machine) Renew(context.Context, *workerv1.RenewRequest) (*workerv1.RenewResponse, error) {
	return &workerv1.RenewResponse{Loaded: true}, nil
}

// serve answers for the machine on l until the test ends.
func (m *machine) serve(t testing.TB, l net.Listener) {
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(g, m)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served })
}

// network is in memory: whoever listens under a name can be dialled there.
type network struct {
	mu sync.Mutex
	at map[string]*bufconn.Listener
}

func (n *network) listen(name string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at == nil {
		n.at = map[string]*bufconn.Listener{}
	}
	n.at[name] = bufconn.Listen(1 << 20)
	return n.at[name]
}

func (n *network) dial(name string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) {
			n.mu.Lock()
			l := n.at[name]
			n.mu.Unlock()
			if l == nil {
				return nil, fmt.Errorf("nobody listens at %s", name)
			}
			return l.DialContext(ctx)
		}))
}
