package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

const (
	model   = "llama3.2:3b"
	planner = "qwen3:8b"
	version = "0.1.0"
	fleetID = "test"
)

// house is everything that takes part: stand-ins and ledger stay, coordinator and workers come and go.
type house struct {
	t     *testing.T
	dir   string
	net   *network
	seats []*seat

	lostAfter   time.Duration
	store       *cutStore
	coordinator *coordinator.Coordinator
	conn        *grpc.ClientConn
	client      coordinatorv1.CoordinatorServiceClient
}

// seat is one machine: a stand-in Ollama that stays and a worker that may die.
type seat struct {
	addr   string
	stand  *ollamatest.Server
	url    string
	worker *worker.Worker
}

// start makes a house with a worker for each stand-in and a coordinator that knows their addresses.
func start(t *testing.T, stands ...ollamatest.Config) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), net: newNetwork(), lostAfter: 20 * time.Second}
	h.open(stands...)
	return h
}

// open starts everything.
func (h *house) open(stands ...ollamatest.Config) {
	t := h.t
	t.Helper()
	for i, cfg := range stands {
		cfg.Name = fmt.Sprintf("stand-in %d", i+1)
		if cfg.Models == nil { // small vocabularies, because a race detector reads the lists of tokens slowly
			cfg.Models = []ollamatest.Model{{Name: model, Vocab: 4096}, {Name: planner, Vocab: 4096}}
		}
		stand := ollamatest.New(cfg)
		h.seats = append(h.seats, &seat{addr: fmt.Sprintf("worker-%d:1", i+1), stand: stand, url: stand.Start(t)})
	}
	for i := range h.seats {
		h.startWorker(i)
	}
	h.startCoordinator()
	t.Cleanup(func() {
		if h.coordinator != nil {
			h.stopCoordinator()
		}
		for i := range h.seats {
			h.stopWorker(i)
		}
	})
	h.up(len(stands))
}

func (h *house) startWorker(i int) {
	h.t.Helper()
	s := h.seats[i]
	w, err := worker.Start(h.t.Context(), worker.Options{NodeID: fmt.Sprintf("node-%d", i+1), Name: fmt.Sprintf("machine %d", i+1), Fleet: fleetID,
		Version: version, Ollama: s.url, Slots: 1, Heartbeat: 500 * time.Millisecond, Listener: h.net.listen(s.addr), Log: logger(h.t)})
	if err != nil {
		h.t.Fatal(err)
	}
	s.worker = w
}

func (h *house) stopWorker(i int) {
	if s := h.seats[i]; s.worker != nil {
		s.worker.Stop()
		s.worker = nil
	}
}

func (h *house) startCoordinator() {
	h.t.Helper()
	ctx := h.t.Context()
	store, err := ledger.Open(ctx, ledger.Options{Dir: filepath.Join(h.dir, "ledger")})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = &cutStore{Store: store, left: -1}
	o := coordinator.Options{Name: "test", Fleet: fleetID, Version: version, DataDir: h.dir, Store: h.store, Host: script.NewHost(script.Limits{}),
		Listener: h.net.listen("coordinator"), Dial: h.net.dial, LostAfter: h.lostAfter, Grace: 30 * time.Second, MaxRuns: 4, Log: logger(h.t)}
	for _, s := range h.seats {
		o.Workers = append(o.Workers, s.addr)
	}
	if h.coordinator, err = coordinator.Start(ctx, o); err != nil {
		h.t.Fatal(err)
	}
	if h.conn, err = h.net.dial("coordinator"); err != nil {
		h.t.Fatal(err)
	}
	h.client = coordinatorv1.NewCoordinatorServiceClient(h.conn)
}

func (h *house) stopCoordinator() {
	h.t.Helper()
	if err := h.conn.Close(); err != nil {
		h.t.Error(err)
	}
	h.coordinator.Stop()
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
	h.coordinator = nil
}

// up waits until n workers are, and until everything is known about their models.
func (h *house) up(n int) {
	h.t.Helper()
	h.eventually(fmt.Sprintf("%d nodes are up", n), func() bool {
		r, err := h.client.ListNodes(h.t.Context(), &coordinatorv1.ListNodesRequest{})
		up := 0
		for _, n := range r.GetNodes() {
			if n.GetState() == "up" && !slices.ContainsFunc(n.GetReport().GetModels(), func(m *workerv1.Model) bool { return m.GetShape() == nil }) {
				up++
			}
		}
		return err == nil && up == n
	})
}

// eventually asks until the answer is yes. It is for what has no event to wait for from outside.
func (h *house) eventually(what string, yes func() bool) {
	h.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	give := time.After(time.Minute)
	for !yes() {
		select {
		case <-tick.C:
		case <-give:
			h.t.Fatalf("it never came to be that %s", what)
		}
	}
}

// submit starts a run of a built-in workflow.
func (h *house) submit(workflow string, input any, models ...string) string {
	h.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := h.client.Submit(h.t.Context(), &coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: workflow},
		InputJson: raw, Models: models})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.GetRunId()
}

// watch shows each view to see, until the run has ended or see says that it has seen enough. It returns the last view.
func (h *house) watch(id string, see func(*coordinatorv1.Run) (enough bool)) *coordinatorv1.Run {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Minute)
	defer cancel()
	stream, err := h.client.WatchRun(ctx, &coordinatorv1.WatchRunRequest{RunId: id})
	if err != nil {
		h.t.Fatal(err)
	}
	var last *coordinatorv1.Run
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			h.t.Fatalf("watch run %s: %v; the last view was %v", id, err, last)
		}
		if last = msg.GetRun(); see != nil && see(last) {
			return last
		}
	}
}

// end waits for a run's end and fails the test when it is another than want.
func (h *house) end(id, want string) *coordinatorv1.Run {
	h.t.Helper()
	r := h.watch(id, nil)
	if r.GetState() != want {
		h.t.Fatalf("run %s ended %s, want %s: %s %v", id, r.GetState(), want, r.GetError(), r.GetFailures())
	}
	return r
}

// items returns all items of a run's batch.
func (h *house) items(id string) []*coordinatorv1.Item {
	h.t.Helper()
	var out []*coordinatorv1.Item
	for {
		r, err := h.client.GetItems(h.t.Context(), &coordinatorv1.GetItemsRequest{RunId: id, From: int32(len(out))})
		if err != nil {
			h.t.Fatal(err)
		}
		if out = append(out, r.GetItems()...); len(out) >= int(r.GetTotal()) || len(r.GetItems()) == 0 {
			return out
		}
	}
}

// trace counts a run's ledger events by kind, and failed attempts by kind of failure.
func (h *house) trace(id string) (kinds, failures map[string]int) {
	h.t.Helper()
	stream, err := h.client.GetTrace(h.t.Context(), &coordinatorv1.GetTraceRequest{RunId: id})
	if err != nil {
		h.t.Fatal(err)
	}
	kinds, failures = map[string]int{}, map[string]int{}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return kinds, failures
		}
		if err != nil {
			h.t.Fatal(err)
		}
		kinds[e.GetKind()]++
		if e.GetKind() == "attempt.failed" {
			var p struct{ Cause struct{ Kind string } }
			if err := json.Unmarshal(e.GetPayloadJson(), &p); err != nil {
				h.t.Fatal(err)
			}
			failures[p.Cause.Kind]++
		}
	}
}

// calls are the requests for answers that the stand-ins have had, of one model's loads nothing.
func (h *house) calls() []ollamatest.Call {
	var out []ollamatest.Call
	for _, s := range h.seats {
		for _, c := range s.stand.Calls() {
			if c.Prompt != "" {
				out = append(out, c)
			}
		}
	}
	return out
}

// report is the text of item i: one sentence, so that the stand-in's answer in its key sentences is that sentence.
func report(i int) string {
	return fmt.Sprintf("Report %03d says that the harbour was calm and that every ship came home.", i)
}

func reports(n int) []string {
	var out []string
	for i := range n {
		out = append(out, report(i))
	}
	return out
}

var reportName = regexp.MustCompile(`Report \d{3}`)

// byItem counts calls by the item they are about.
func byItem(calls []ollamatest.Call) map[string]int {
	out := map[string]int{}
	for _, c := range calls {
		out[reportName.FindString(c.Prompt)]++
	}
	return out
}

// network is in-memory: whoever listens under a name can be dialled there, whoever stopped cannot.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
}

func newNetwork() *network { return &network{listeners: map[string]*bufconn.Listener{}} }

func (n *network) listen(name string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := bufconn.Listen(1 << 20)
	n.listeners[name] = l
	return l
}

func (n *network) dial(name string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) {
			n.mu.Lock()
			l := n.listeners[name]
			n.mu.Unlock()
			if l == nil {
				return nil, fmt.Errorf("nobody listens at %s", name)
			}
			return l.DialContext(ctx)
		}))
}

// logger writes a part's log to stderr when LOOPKEEPER_TEST_LOG is set, else nowhere.
func logger(t *testing.T) *slog.Logger {
	if os.Getenv("LOOPKEEPER_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("test", strings.TrimPrefix(t.Name(), "Test"))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
