package residency

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// counter counts what is asked of a real Ollama.
type counter struct {
	mu       sync.Mutex
	loads    int
	contexts map[float64]int // of calls, by num_ctx
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && (r.URL.Path == "/api/generate" || r.URL.Path == "/api/chat") {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		var q struct {
			Prompt    string `json:"prompt"`
			KeepAlive string `json:"keep_alive"`
			Messages  []any  `json:"messages"`
			Options   struct {
				NumCtx float64 `json:"num_ctx"`
			} `json:"options"`
		}
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if q.Prompt == "" && len(q.Messages) == 0 {
			if q.KeepAlive != "0s" {
				c.loads++
			}
		} else {
			c.contexts[q.Options.NumCtx]++
		}
		c.mu.Unlock()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// once asks for so many tokens and no second try: the tiny model never ends by itself, and what its limit cuts is a failure.
func once(tokens int) map[string]any {
	return map[string]any{"max_tokens": tokens, "retry": map[string]any{"attempts": 1}}
}

// realHouse is a house over real Ollama servers, one for each machine's tools, with 640 MB of main memory each: room for one of the
// tiny models with their compute buffers, and not for two.
func realHouse(t *testing.T, tools ...source.Runner) (*house, []*counter) {
	t.Helper()
	workflows.Lookup("map")
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	h := &house{t: t, listens: map[string]*bufconn.Listener{}}
	var counters []*counter
	for i, tool := range tools {
		server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
		server.Create(t, "tiny:a", tinymodel.Options{Seed: 1, Endless: true})
		server.Create(t, "tiny:b", tinymodel.Options{Seed: 2, Endless: true})
		c := &counter{contexts: map[float64]int{}}
		counters = append(counters, c)
		h.worker(i+1, ollama.Options{BaseURL: server.URL, Transport: c}, machine("MemTotal: 640000 kB\nMemAvailable: 640000 kB\n", tool))
	}
	h.open()
	t.Cleanup(func() { h.shut() })
	for {
		l, err := h.client.ListNodes(t.Context(), &coordinatorv1.ListNodesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		up := 0
		for _, n := range l.GetNodes() {
			if n.GetState() == "up" && len(n.GetReport().GetModels()) == 2 && n.GetReport().GetModels()[0].GetShape() != nil {
				up++
			}
		}
		if up == len(tools) {
			return h, counters
		}
		select {
		case <-time.After(50 * time.Millisecond): // nothing tells when the first report has come
		case <-t.Context().Done():
			t.Fatal("the machines never came up")
		}
	}
}

// The same as on the stand-in: 40 calls in turns of two models that cannot be resident together, which arrive over a minute, cost at
// most four loads. A call takes about a second, so that a machine which never swapped would be done soon after the last one came.
func TestRealModelsOnOneMachineAreBatchedAndNotAlternated(t *testing.T) {
	h, counters := realHouse(t, nothing{})
	h.endAs(h.submit("tiny:a", once(10), report(0)), "completed", "incomplete") // loads it
	began := time.Now()
	h.endAs(h.submit("tiny:a", once(1000), report(0)), "completed", "incomplete")
	tokens := min(max(int(1000*time.Second/time.Since(began)), 300), 6000) // about a second, whatever this machine can do
	pace := time.NewTicker(1500 * time.Millisecond)
	defer pace.Stop()
	began = time.Now()
	var runs []string
	for i := range 40 {
		<-pace.C
		model := []string{"tiny:a", "tiny:b"}[i%2]
		runs = append(runs, h.submit(model, once(tokens), report(i)))
	}
	arrived := time.Since(began)
	for _, id := range runs {
		h.endAs(id, "completed", "incomplete")
	}
	c := counters[0]
	if c.loads < 2 || c.loads > 4 {
		t.Errorf("%d loads", c.loads)
	}
	if len(c.contexts) != 1 {
		t.Errorf("calls by context: %v", c.contexts)
	}
	t.Logf("%d loads, %d tokens a call, which arrived over %s and were done %s later", c.loads, tokens, arrived.Round(time.Second), (time.Since(began) - arrived).Round(time.Second))
}

// Steps of a run that ask for another context force no reload, at once or one after the other: the server is always sent the same. It is
// one run, because of two the one that asks first may ask for less than the other will.
func TestRealContextChangeForcesNoReload(t *testing.T) {
	h, counters := realHouse(t, nothing{})
	h.endAs(h.script(`
		const ask = (items, num_ctx) => batch({ model: "tiny:a", prompt: "{{item}}", items, max_tokens: 20, retry: { attempts: 1 }, options: num_ctx ? { num_ctx } : {} });
		await all([ask(input.items), ask(["a"], 4096), ask(["b"], 1024)]);
		await ask(["c"], 2048);
		await ask(["d"]);`, map[string]any{"items": reports(20)}), "completed", "incomplete")
	if c := counters[0]; c.loads != 1 || len(c.contexts) != 1 || c.contexts[8192] != 24 {
		t.Errorf("%d loads, calls by context %v", c.loads, c.contexts)
	}
}

// smi is the nvidia-smi of a machine with a card that its Ollama cannot use: whatever is loaded ends on the processor.
type smi struct{}

func (smi) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	if !strings.HasPrefix(name, "nvidia-smi") {
		return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return source.Output{Stdout: []byte("uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%]\n" +
		"GPU-00000000-0000-0000-0000-000000000000, NVIDIA GeForce RTX 4080 SUPER, 00000000:01:00.0, 595.71.05, 16376 MiB, 16000 MiB, 0 %\n")}, nil
}

// A load that ends on the processor of a machine with a card is a spill: it is unloaded, and the step is placed again.
func TestRealSpillIsPlacedAgain(t *testing.T) {
	h, counters := realHouse(t, smi{}, nothing{})
	h.endAs(h.submit("tiny:a", once(20), reports(3)...), "completed", "incomplete")
	if n := len(counters[0].contexts); n != 0 {
		t.Errorf("calls were sent to the machine on which the model had spilled: %v", counters[0].contexts)
	}
	if counters[0].loads == 0 || counters[1].loads != 1 {
		t.Errorf("%d and %d loads", counters[0].loads, counters[1].loads)
	}
	if got := h.incidents(); len(got) == 0 || !strings.HasPrefix(got[0], "spilled: tiny:a") {
		t.Errorf("%q", got)
	}
}
