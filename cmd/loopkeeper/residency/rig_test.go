package residency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
	"github.com/loopkeeper/loopkeeper/worker/serve"
)

// Two models of about 5.5 GiB each at 8192 tokens: one fits a machine with 8 GiB, both do not.
const (
	writer = "qwen2.5:7b"
	judge  = "mistral:7b"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a coordinator and its machines, in a bubble.
type house struct {
	t       *testing.T
	dir     string
	listens map[string]*bufconn.Listener
	workers []string
	stands  []*ollamatest.Server
	store   *ledger.SQLite
	coord   *coordinator.Coordinator
	client  coordinatorv1.CoordinatorServiceClient
	close   func() // of the client's connection
	change  func(*coordinator.Options)
}

// card is a machine with a device of that many GiB that loads 1 GiB a second and writes 100 tokens a second.
func card(gib int, faults ...ollamatest.Fault) ollamatest.Config {
	return ollamatest.Config{Memory: ollamatest.Bytes(gib) << 30, LoadSpeed: 1 << 30, PromptRate: 4000, DecodeRate: 100, Faults: faults}
}

// live runs a test in a bubble, with a house of these machines.
func live(t *testing.T, do func(t *testing.T, h *house), stands ...ollamatest.Config) {
	t.Helper()
	liveWith(t, nil, do, stands...)
}

func liveWith(t *testing.T, change func(*coordinator.Options), do func(t *testing.T, h *house), stands ...ollamatest.Config) {
	t.Helper()
	workflows.Lookup("map") // bundles it once, with goroutines that belong to no bubble
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, listens: map[string]*bufconn.Listener{}, change: change}
		for i, cfg := range stands {
			h.machine(i+1, cfg)
		}
		h.open()
		t.Cleanup(func() { h.shut() })
		time.Sleep(5 * time.Second) // every machine has reported
		do(t, h)
	})
}

// machine starts a stand-in and its worker.
func (h *house) machine(n int, cfg ollamatest.Config) {
	t := h.t
	if cfg.Models == nil { // small vocabularies: reading them is most of a test's time
		cfg.Models = []ollamatest.Model{{Name: writer, Vocab: 4096}, {Name: judge, Preset: writer, Vocab: 4096}}
	}
	stand := ollamatest.New(cfg)
	url, web := stand.StartPipe(t)
	h.stands = append(h.stands, stand)
	h.worker(n, ollama.Options{BaseURL: url, Transport: web.Transport}, machine("", nothing{}))
}

// worker starts a worker over an Ollama, on a machine as the prober sees it.
func (h *house) worker(n int, o ollama.Options, p *probe.Prober) {
	t := h.t
	client, err := ollama.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := serve.New(t.Context(), serve.Options{NodeID: fmt.Sprint("node-", n), Name: fmt.Sprint("machine ", n), Version: "0.1.0", Fleet: "home",
		Ollama: client, Slots: 1, Prober: p, Log: logger(t)})
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(g, w)
	l := h.listen(fmt.Sprint("worker-", n))
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(l) }()
	t.Cleanup(func() { w.Stop(); g.Stop(); <-served; client.Close() })
	h.workers = append(h.workers, fmt.Sprint("worker-", n))
}

// machine is one with so much main memory, as /proc/meminfo has it, and with the vendors' tools that answer. Of one with a stand-in
// nothing is to be read: what matters is what that pretends to be.
func machine(meminfo string, tools source.Runner) *probe.Prober {
	files := fstest.MapFS{}
	if meminfo != "" {
		files["proc/meminfo"] = &fstest.MapFile{Data: []byte(meminfo)}
	}
	return probe.New(probe.Options{Machine: source.Machine{OS: "linux", Arch: "amd64", Calls: source.Calls{}, Commands: tools, Files: files}})
}

// nothing is a machine without any tool.
type nothing struct{}

// Run implements source.Runner.
func (nothing) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func (h *house) listen(name string) *bufconn.Listener {
	h.listens[name] = bufconn.Listen(1 << 20)
	return h.listens[name]
}

func (h *house) dial(name string) (*grpc.ClientConn, error) {
	l := h.listens[name]
	return grpc.NewClient("passthrough:///"+name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
}

// open starts the coordinator, as a new process would.
func (h *house) open() {
	t := h.t
	t.Helper()
	if h.dir == "" {
		h.dir = t.TempDir()
	}
	var err error
	if h.store, err = ledger.Open(t.Context(), ledger.Options{Dir: h.dir}); err != nil {
		t.Fatal(err)
	}
	o := coordinator.Options{Name: "test", Fleet: "home", Version: "0.1.0", Store: h.store, Host: script.NewHost(script.Limits{}),
		Listener: h.listen("coordinator"), Dial: h.dial, Log: logger(t)}
	o.Workers = h.workers
	if h.change != nil {
		h.change(&o)
	}
	if h.coord, err = coordinator.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	conn, err := h.dial("coordinator")
	if err != nil {
		t.Fatal(err)
	}
	h.client, h.close = coordinatorv1.NewCoordinatorServiceClient(conn), func() { _ = conn.Close() }
}

// shut ends the coordinator; the machines go on.
func (h *house) shut() {
	h.close()
	h.coord.Stop()
	if err := h.store.Close(); err != nil {
		h.t.Error(err)
	}
}

// submit starts a run of one call for each item.
func (h *house) submit(model string, more map[string]any, items ...string) string {
	h.t.Helper()
	input := map[string]any{"model": model, "prompt": "Sum the report up.\n\n{{item}}", "items": items, "max_tokens": 400}
	for k, v := range more {
		input[k] = v
	}
	return h.start(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}}, input)
}

// script starts a run of a script's body.
func (h *house) script(body string, input map[string]any) string {
	h.t.Helper()
	p, err := script.BundleText("flow.ts", `import { all, batch } from "loopkeeper"; export default async function flow(input: any) {`+body+`}`)
	if err != nil {
		h.t.Fatal(err)
	}
	bundle := &coordinatorv1.Bundle{Name: p.Name, Code: p.Code, SourceMap: p.SourceMap}
	return h.start(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: bundle}}, input)
}

func (h *house) start(q *coordinatorv1.SubmitRequest, input map[string]any) string {
	h.t.Helper()
	var err error
	if q.InputJson, err = json.Marshal(input); err != nil {
		h.t.Fatal(err)
	}
	r, err := h.client.Submit(h.t.Context(), q)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.GetRunId()
}

// end waits for a run to complete.
func (h *house) end(id string) *coordinatorv1.Run {
	h.t.Helper()
	return h.endAs(id, "completed")
}

// endAs waits for a run to end in one of these states.
func (h *house) endAs(id string, states ...string) *coordinatorv1.Run {
	h.t.Helper()
	stream, err := h.client.WatchRun(h.t.Context(), &coordinatorv1.WatchRunRequest{RunId: id})
	if err != nil {
		h.t.Fatal(err)
	}
	var last *coordinatorv1.Run
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			h.t.Fatalf("watch run %s: %v; the last view was %v", id, err, last)
		}
		last = msg.GetRun()
	}
	if !slices.Contains(states, last.GetState()) {
		h.t.Fatalf("run %s ended %s: %s %v", id, last.GetState(), last.GetError(), last.GetFailures())
	}
	return last
}

// incidents are the texts of what happened to the machines, oldest first.
func (h *house) incidents() (texts []string) {
	h.t.Helper()
	all, err := h.store.Incidents(h.t.Context(), "", 0)
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Reverse(all)
	for _, i := range all {
		texts = append(texts, i.Kind+": "+i.Text)
	}
	return texts
}

func (h *house) loads() (n int) {
	for _, s := range h.stands {
		n += s.Loads()
	}
	return n
}

func report(i int) string {
	return fmt.Sprintf("Report %03d says that the harbour was calm and that every ship came home.", i)
}

func reports(n int) (all []string) {
	for i := range n {
		all = append(all, report(i))
	}
	return all
}

// logger writes to stderr when LOOPKEEPER_TEST_LOG is set, else nowhere.
func logger(t *testing.T) *slog.Logger {
	if os.Getenv("LOOPKEEPER_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("test", t.Name())
}
