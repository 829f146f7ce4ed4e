package fleet

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a network of workers in memory, and the fleet that looks at it. It works under fake time.
type house struct {
	t     *testing.T
	store *ledger.SQLite
	log   *slog.Logger

	mu    sync.Mutex
	at    map[string]*bufconn.Listener
	dials map[string]int
	lost  []string
	found []string // addresses that discovery announces
}

func newHouse(t *testing.T) *house {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &house{t: t, store: store, log: slog.New(slog.DiscardHandler), at: map[string]*bufconn.Listener{}, dials: map[string]int{}}
}

// machine is a worker whose reports a test sends.
type machine struct {
	workerv1.UnimplementedWorkerServiceServer
	describe *workerv1.DescribeResponse
	beat     time.Duration // between reports; 0 is 3 s
	noWatch  bool

	mu     sync.Mutex
	silent bool
	report *workerv1.NodeReport
	stop   func()
}

func (m *machine) Describe(context.Context, *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	return m.describe, nil
}

func (m *machine) Watch(_ *workerv1.WatchRequest, s workerv1.WorkerService_WatchServer) error {
	if m.noWatch {
		return status.Error(codes.Unimplemented, "no")
	}
	for {
		m.mu.Lock()
		silent, report := m.silent, m.report
		m.mu.Unlock()
		if !silent {
			if err := s.Send(&workerv1.WatchResponse{Report: report}); err != nil {
				return err
			}
		}
		select {
		case <-time.After(max(m.beat, 3*time.Second)):
		case <-s.Context().Done():
			return nil
		}
	}
}

func (m *machine) hush(silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silent = silent
}

func (m *machine) say(r *workerv1.NodeReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report = r
}

func report(models ...string) *workerv1.NodeReport {
	total := uint64(8 << 30)
	r := &workerv1.NodeReport{Ollama: &workerv1.Ollama{Reachable: true, Version: "0.17.4"}, Slots: 2,
		Pools: []*workerv1.Pool{{Id: "gpu", Kind: "device", TotalBytes: &total}}}
	for _, m := range models {
		r.Models = append(r.Models, &workerv1.Model{Name: m, Digest: m})
	}
	return r
}

func newMachine(id string) *machine {
	r := report("qwen3:8b")
	return &machine{describe: &workerv1.DescribeResponse{NodeId: id, Name: "the " + id, Version: "0.1.0", Fleet: "home", Report: r}, report: r}
}

// start serves a machine at an address.
func (h *house) start(addr string, m *machine) {
	l := bufconn.Listen(1 << 16)
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(g, m)
	served := make(chan struct{})
	go func() { defer close(served); g.Serve(l) }()
	h.mu.Lock()
	h.at[addr] = l
	h.mu.Unlock()
	m.stop = sync.OnceFunc(func() {
		h.mu.Lock()
		if h.at[addr] == l {
			delete(h.at, addr)
		}
		h.mu.Unlock()
		g.Stop()
		<-served
	})
	h.t.Cleanup(m.stop)
}

func (h *house) dial(addr string) (*grpc.ClientConn, error) {
	h.mu.Lock()
	h.dials[addr]++
	h.mu.Unlock()
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			h.mu.Lock()
			l := h.at[addr]
			h.mu.Unlock()
			if l == nil {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.ErrClosed}
			}
			return l.DialContext(ctx)
		}))
}

func (h *house) tried(addr string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dials[addr]
}

func (h *house) losses() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.lost...)
}

// fleet starts a fleet in the house.
func (h *house) fleet(change ...func(*Options)) *Fleet {
	h.t.Helper()
	o := Options{Fleet: "home", Version: "0.1.0", Dial: h.dial, LostAfter: 15 * time.Second, Memory: h.store, Log: h.log,
		Lost: func(id string) { h.mu.Lock(); defer h.mu.Unlock(); h.lost = append(h.lost, id) }}
	for _, c := range change {
		c(&o)
	}
	f, err := New(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	f.Start()
	h.t.Cleanup(f.Stop)
	return f
}

func static(addrs ...string) func(*Options) { return func(o *Options) { o.Static = addrs } }

// settle lets d pass and everything that it brings about.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *house) want(f *Fleet, id string, s scheduler.NodeState) {
	h.t.Helper()
	if got := f.State(id); got != s {
		h.t.Fatalf("%s is %v, want %v", id, got, s)
	}
}
