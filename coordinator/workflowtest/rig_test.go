package workflowtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// call is what a model is asked, as the workflow put it.
type call struct {
	Kind    engine.CallKind
	Label   string
	Request map[string]any
	Body    any // the item, or the subject of a judge
	Said    []string
	Number  int
}

// failure is an answer that no further try can change.
type failure string

// staff stands in for fleet, dispatch and models: one machine that has every model loaded and answers at once. An answer that is a
// text is free text, a failure fails the call, and anything else is a value.
type staff struct {
	mu      sync.Mutex
	answer  func(c call) any
	sink    engine.Sink
	calls   []call
	hold    chan struct{} // no answer comes before it is closed; nil: at once
	changed chan struct{}
	pending sync.WaitGroup
}

var machine = scheduler.Node{
	ID: "n1", Name: "box", State: scheduler.NodeUp, OllamaVersion: "0.17.4", Slots: 16, Simulated: true,
	Pools:  []scheduler.Pool{{ID: "host", Kind: scheduler.PoolHost, Total: scheduler.Bytes{N: 64 << 30, Known: true}, Free: scheduler.Bytes{N: 60 << 30, Known: true}}},
	Models: []scheduler.Model{model("m"), model("j"), model("qwen3:8b"), model("qwen3:32b"), model("gpt-oss:20b")},
}

func model(name string) scheduler.Model {
	return scheduler.Model{Name: name, Digest: "sha-" + name, FileBytes: 1 << 30, Shape: &shape}
}

var shape = scheduler.Shape{Architecture: "llama", WeightBytes: 1 << 30, Layers: 16, EmbeddingLength: 2048, Heads: 16, KVHeads: []int{4},
	FeedForward: 8192, VocabSize: 32000, ContextLength: 8192}

func (s *staff) Nodes() []scheduler.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := machine
	n.Loaded = slices.Clone(n.Loaded)
	return []scheduler.Node{n}
}

func (s *staff) Answering(string) time.Time             { return time.Time{} }
func (s *staff) Changed() <-chan struct{}               { return s.changed }
func (s *staff) Cancel(string, string)                  {}
func (s *staff) Unload(string, scheduler.Decision)      {}
func (s *staff) Renew(string, scheduler.Decision)       {}
func (s *staff) Load(node string, _ scheduler.Decision) {}

func (s *staff) Send(a engine.Attempt) {
	s.pending.Go(func() {
		c := call{Kind: a.Kind, Said: a.Feedback, Number: a.Number}
		_ = json.Unmarshal(a.Request, &c.Request) // it was checked when it became a step
		_ = json.Unmarshal(a.Body, &c.Body)
		c.Label, _ = c.Request["label"].(string)
		if s.hold != nil {
			<-s.hold
		}
		s.mu.Lock()
		s.calls = append(s.calls, c)
		r := engine.Result{Key: a.Key, Report: engine.Report{Model: a.Model, Digest: a.Digest, PromptTokens: 1, OutputTokens: 1, Simulated: true}}
		switch said := s.answer(c).(type) {
		case judgement:
			r.Value = json.RawMessage(show(said.answers(c)))
		case failure:
			r.Failure = &run.Failure{Kind: string(said), Message: "it was " + string(said), Advice: run.Never}
		case string:
			r.Text = said
		default:
			r.Value = json.RawMessage(show(said))
		}
		s.mu.Unlock()
		s.sink.Finished(r)
	})
}

// coordinator is an engine over a real ledger, with the built-in workflows and those of a test.
type coordinator struct {
	t     *testing.T
	e     *engine.Engine
	store ledger.Store
	staff *staff
}

func newCoordinator(t *testing.T, own map[string]script.Program, answer func(call) any) *coordinator {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	find := func(_ context.Context, name string) (script.Program, error) {
		if p, ok := own[name]; ok {
			return p, nil
		}
		if p, ok := workflows.Lookup(name); ok {
			return p, nil
		}
		return script.Program{}, fmt.Errorf("no workflow is named %q", name)
	}
	s := &staff{answer: answer, changed: make(chan struct{}, 1)}
	e := engine.New(engine.Options{Store: store, Host: script.NewHost(script.Limits{}), Workflows: find, Place: at1, Tools: scribe{}})
	s.sink = e
	if err := e.Start(t.Context(), s, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Stop()
		s.pending.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &coordinator{t, e, store, s}
}

// at1 starts everything on the one machine at once. What is placed where is tested elsewhere.
func at1(s scheduler.Snapshot) scheduler.Plan {
	var p scheduler.Plan
	for _, task := range s.Waiting {
		p.Decisions = append(p.Decisions, scheduler.Decision{Action: scheduler.Start, Task: task.Key, Node: "n1", Model: task.Model, Digest: "sha-" + task.Model, Context: 4096})
	}
	return p
}

// start submits a built-in workflow, with its input as the API checks it.
func (c *coordinator) start(name, input string, submitted ...run.Submitted) string {
	c.t.Helper()
	p, ok := workflows.Lookup(name)
	if !ok {
		c.t.Fatalf("there is no workflow %s", name)
	}
	id, _, err := c.e.Submit(c.t.Context(), engine.Submission{Workflow: name, Program: p, Input: json.RawMessage(input), Submitted: submitted})
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// end follows a run to its end; each time it waits for people, ask answers, and says nothing to leave it.
func (c *coordinator) end(id string, person func(engine.Wait) *engine.Answer) engine.View {
	c.t.Helper()
	views, err := c.e.Watch(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	var last engine.View
	for last = range views {
		waits, err := c.e.Waits(c.t.Context(), id)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, w := range waits {
			if a := person(w); a != nil {
				if _, err := c.e.Settle(c.t.Context(), id, w.Step, w.Item, *a); err != nil {
					c.t.Fatalf("%s: %v", w.Title, err)
				}
			}
		}
	}
	return last
}

func nobody(engine.Wait) *engine.Answer { return nil }

func (c *coordinator) output(id, name string, into any) {
	c.t.Helper()
	outputs, err := c.e.Outputs(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range outputs {
		if o.Name == name {
			if err := json.Unmarshal(o.Value, into); err != nil {
				c.t.Fatalf("output %s is %s: %v", name, o.Value, err)
			}
			return
		}
	}
	c.t.Fatalf("there is no output %s", name)
}

// labels are those of all calls, in order, judges of a step among them.
func (s *staff) labels() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range s.calls {
		out = append(out, c.Label)
	}
	return strings.Join(out, ", ")
}
