package durable

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// instant stands in for fleet, dispatch and workers, so that the engine is measured alone: four machines with their models loaded, which
// answer at once.
type instant struct {
	sink    engine.Sink
	sent    func() // is called for each attempt; nil: nothing
	pending sync.WaitGroup
}

var shape = scheduler.Shape{Architecture: "llama", WeightBytes: 4 << 30, Layers: 32, EmbeddingLength: 4096, Heads: 32, KVHeads: []int{8},
	FeedForward: 14336, VocabSize: 32000, ContextLength: 8192}

func (f *instant) Nodes() (nodes []scheduler.Node) {
	for i := range 4 {
		n := scheduler.Node{ID: fmt.Sprintf("n%d", i+1), Name: "box", State: scheduler.NodeUp, OllamaVersion: "0.17.4", Slots: 16, Simulated: true,
			Pools: []scheduler.Pool{{ID: "host", Kind: scheduler.PoolHost, Total: scheduler.Bytes{N: 1 << 40, Known: true}, Free: scheduler.Bytes{N: 1 << 40, Known: true}}}}
		for _, name := range []string{judge, model} {
			n.Models = append(n.Models, scheduler.Model{Name: name, Digest: "sha-" + name, FileBytes: 4 << 30, Shape: &shape})
			n.Loaded = append(n.Loaded, scheduler.Loaded{Name: name, Digest: "sha-" + name, Context: 8192, SizeBytes: 5 << 30})
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (f *instant) Answering(string) time.Time        { return time.Time{} }
func (f *instant) Changed() <-chan struct{}          { return nil }
func (f *instant) Cancel(string, string)             {}
func (f *instant) Load(string, scheduler.Decision)   {}
func (f *instant) Unload(string, scheduler.Decision) {}
func (f *instant) Renew(string, scheduler.Decision)  {}
func (f *instant) Send(a engine.Attempt) {
	if f.sent != nil {
		f.sent()
	}
	f.pending.Go(func() { f.sink.Finished(answer(a)) })
}

func answer(a engine.Attempt) engine.Result {
	value := json.RawMessage(`{"of":` + string(a.Body) + `}`) // a string, here
	if len(a.Body) == 0 {
		value = json.RawMessage(`{"of":""}`)
	}
	if a.Kind == engine.CallEvaluate {
		var asked struct{ Criteria []string }
		if err := json.Unmarshal(a.Request, &asked); err != nil {
			panic(err)
		}
		value = allMet(asked.Criteria)
	}
	return engine.Result{Key: a.Key, Value: value, Raw: string(value), Report: engine.Report{Model: a.Model, Digest: a.Digest, PromptTokens: 20, OutputTokens: 10, Simulated: true}}
}

// startEngine starts an engine alone.
func startEngine(t testing.TB, store ledger.Store, f *instant) *engine.Engine {
	t.Helper()
	e := engine.New(engine.Options{Store: store, Host: script.NewHost(script.Limits{})})
	f.sink = e
	if err := e.Start(t.Context(), f, f); err != nil {
		t.Fatal(err)
	}
	return e
}

// complete runs a script to its end, which must be a completed one, and returns how long that took.
func complete(t testing.TB, e *engine.Engine, p script.Program, n int) time.Duration {
	t.Helper()
	began := time.Now()
	id, _, err := e.Submit(t.Context(), engine.Submission{Workflow: "flow", Program: p, Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
	if err != nil {
		t.Fatal(err)
	}
	views, err := e.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var last engine.View
	for v := range views {
		last = v
	}
	if last.Status != run.Completed {
		t.Fatalf("%s: %s", last.Status, last.Error)
	}
	return time.Since(began)
}

// ledgerOn opens a ledger that is closed with the test.
func ledgerOn(t testing.TB) *ledger.SQLite {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
