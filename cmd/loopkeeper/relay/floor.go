package relay

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator/dispatch"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
	"github.com/loopkeeper/loopkeeper/worker"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// floor is loopkeeper in this process: ledger, engine, fleet, dispatch and a worker before the Ollama that is measured, as a
// coordinator has them, but with the world's workers as its only tool.
type floor struct {
	store    ledger.Store
	engine   *engine.Engine
	fleet    *fleet.Fleet
	dispatch *dispatch.Dispatcher
	worker   *worker.Worker
	worlds   *worlds
	program  script.Program
}

const (
	floorFleet = "relay"
	floorNode  = "relay"
	version    = "0.1.0" // of both ends, which are this program
	heartbeat  = 500 * time.Millisecond
)

// newFloor starts everything, and waits until the model can be placed.
func newFloor(ctx context.Context, o Options) (*floor, error) {
	f := &floor{worlds: &worlds{all: map[string]*World{}}}
	var err error
	if f.program, err = script.BundleFS(files, "relay.ts"); err != nil {
		return nil, fmt.Errorf("bundle the workflow of the benchmark: %w", err)
	}
	if f.store, err = ledger.Open(ctx, ledger.Options{Dir: o.Dir, Log: o.Log}); err != nil {
		return nil, err
	}
	if err := f.start(ctx, o); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, f.known(ctx, o.Model)
}

func (f *floor) start(ctx context.Context, o Options) (err error) {
	l := bufconn.Listen(1 << 20)
	f.worker, err = worker.Start(ctx, worker.Options{NodeID: floorNode, Name: floorNode, Fleet: floorFleet, Version: version, Ollama: o.Ollama, Slots: o.Parallel,
		Heartbeat: heartbeat, Listener: l, Log: o.Log})
	if err != nil {
		return err
	}
	f.engine = engine.New(engine.Options{Store: f.store, Host: script.NewHost(script.Limits{}), Tools: f.worlds, MaxScripts: o.Parallel, MaxTools: o.Parallel,
		Limits: scheduler.Limits{Contexts: map[string]int{o.Model: o.Context}}, Log: o.Log})
	dial := func(string) (*grpc.ClientConn, error) { return dialPipe(l) }
	f.fleet, err = fleet.New(ctx, fleet.Options{Fleet: floorFleet, Version: version, Local: "relay:1", Dial: dial, Memory: f.store, Lost: f.engine.Lost, Log: o.Log})
	if err != nil {
		return err
	}
	f.dispatch = dispatch.New(dispatch.Options{Nodes: f.fleet, Store: f.store, Sink: f.engine, Log: o.Log})
	f.fleet.Start()
	return f.engine.Start(ctx, f.fleet, f.dispatch)
}

func dialPipe(l *bufconn.Listener) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///relay", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
}

// knownTime is how long the machine and the header of the model's file may take to be read.
const knownTime = 2 * time.Minute

// known waits until the node says what the model is made of.
func (f *floor) known(ctx context.Context, model string) error {
	wait := time.NewTimer(knownTime)
	defer wait.Stop()
	for {
		for _, n := range f.fleet.Nodes() {
			for _, m := range n.Models {
				if n.State == scheduler.NodeUp && m.Name == model && m.Shape != nil {
					return nil
				}
			}
		}
		select {
		case <-f.fleet.Changed():
		case <-wait.C:
			return errors.Join(apierr.New(apierr.Unavailable, "the worker did not say within %s what %s is made of", knownTime, model).WithNext("loopkeeper doctor"), f.stop())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), f.stop())
		}
	}
}

func (f *floor) stop() error {
	if f.engine != nil {
		f.engine.Stop()
	}
	if f.dispatch != nil {
		f.dispatch.Stop()
	}
	if f.fleet != nil {
		f.fleet.Stop()
	}
	if f.worker != nil {
		f.worker.Stop()
	}
	return f.store.Close()
}

// worlds are the worlds of the runs under way; for the engine they are its tools.
type worlds struct {
	mu  sync.Mutex
	all map[string]*World
}

const askTool = "relay.ask"

func (w *worlds) put(name string, world *World) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[name] = world
}

func (w *worlds) drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, name)
}

// Effect implements engine.Tools: to ask changes nothing.
func (w *worlds) Effect(tool string) (engine.ToolEffect, bool) {
	return engine.EffectNone, tool == askTool
}

// Run implements engine.Tools.
func (w *worlds) Run(_ context.Context, c engine.ToolCall) (engine.ToolOutcome, error) {
	var in struct{ World, Worker, Argument string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return engine.ToolOutcome{}, fmt.Errorf("read the input of %s: %w", c.Tool, err)
	}
	w.mu.Lock()
	world := w.all[in.World]
	w.mu.Unlock()
	if world == nil {
		return engine.ToolOutcome{Failure: &engine.Failure{Kind: "no_world", Message: "the run is over"}}, nil
	}
	value, err := json.Marshal(map[string]string{"reply": world.Ask(Call{Worker: in.Worker, Arg: in.Argument}).Reply})
	return engine.ToolOutcome{Value: value}, err
}

// Check implements engine.Tools.
func (w *worlds) Check(context.Context, engine.ToolCall) (engine.ToolChecked, error) {
	return engine.ToolChecked{State: engine.ToolNotDone, Why: "to ask has no effect"}, nil
}

var discard = slog.New(slog.DiscardHandler)

//go:embed relay.ts reports.ts
var files embed.FS

// input of the workflow.
type input struct {
	World    string         `json:"world"`
	Goal     string         `json:"goal"`
	Model    string         `json:"model"`
	Workers  []string       `json:"workers"`
	Accounts []string       `json:"accounts"`
	Named    string         `json:"named"`
	Gold     []Step         `json:"gold,omitempty"`
	Options  map[string]any `json:"options"`
}

// run lets code keep the loop: one run of loopkeeper.
func (f *floor) run(ctx context.Context, j job, o Options) (Outcome, error) {
	world := NewWorld(j.task)
	name := fmt.Sprintf("%s/%s/%d", j.arm, j.task.Name(), j.try)
	f.worlds.put(name, world)
	defer f.worlds.drop(name)
	in := input{World: name, Goal: j.task.Goal, Model: o.Model, Workers: j.task.names(), Accounts: append([]string{}, j.task.accounts()...),
		Named: Named, Options: map[string]any{}}
	if j.arm.gold() {
		in.Gold = j.task.Gold()
	}
	id, view, err := f.carryOut(ctx, f.program, in)
	out := Outcome{Log: world.Log(), Ended: view.Status.Ended()}
	if err != nil {
		return out, err
	}
	if err = f.count(ctx, id, &out); err != nil {
		return out, err
	}
	if view.Error != "" {
		return out, fmt.Errorf("the run %s: %s", view.Status, view.Error)
	}
	if out.Cost.Calls == 0 && len(view.Failures) > 0 { // no model was ever asked
		return out, fmt.Errorf("the run %s: %s", view.Status, view.Failures[0].Message)
	}
	var result struct{ Report map[string]int }
	err = f.output(ctx, id, "result", &result)
	out.Report = result.Report
	return out, err
}

// carryOut is one run of a program, from its submission to its end.
func (f *floor) carryOut(ctx context.Context, p script.Program, in any) (id string, last engine.View, err error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return "", last, err
	}
	if raw, err = script.Canonical(raw); err != nil {
		return "", last, err
	}
	if id, _, err = f.engine.Submit(ctx, engine.Submission{Workflow: p.Name, Program: p, Input: raw}); err != nil {
		return "", last, err
	}
	last, err = f.end(ctx, id)
	return id, last, err
}

func (t Task) names() []string {
	var out []string
	for i := range len(t.Workers) {
		out = append(out, name(i))
	}
	return out
}

// end follows a run to its end; when nobody wants it any more it is cancelled.
func (f *floor) end(ctx context.Context, id string) (last engine.View, err error) {
	views, err := f.engine.Watch(ctx, id)
	if err != nil {
		return last, err
	}
	for last = range views {
	}
	if ctx.Err() != nil {
		_, _ = f.engine.Cancel(context.WithoutCancel(ctx), id, "the benchmark was interrupted")
	}
	return last, ctx.Err()
}

// count reads from the run's events what it took and what failed.
func (f *floor) count(ctx context.Context, id string, out *Outcome) error {
	out.Failures = map[string]int{}
	for e, err := range ledger.All(ctx, f.store, id, 0) {
		if err != nil {
			return err
		}
		event, err := run.Decode(e.Seq, e.Time, e.Kind, e.Payload)
		if err != nil {
			return err
		}
		switch p := event.Data.(type) {
		case *run.AttemptSucceeded:
			out.Cost.add(p.Evidence.Report)
		case *run.AttemptFailed:
			out.Cost.add(p.Evidence.Report)
			for _, kind := range failures(p.Cause) {
				out.Failures[kind]++
			}
		case *run.ItemChecked:
			if !p.Passed {
				out.Failures["argument"]++
			}
		}
	}
	return nil
}

func (c *Cost) add(r run.Report) {
	if r.Model == "" {
		return // a tool
	}
	c.Calls++
	c.PromptTokens += r.PromptTokens
	c.OutputTokens += r.OutputTokens
	c.PrefillMS += float64(r.PromptNanos) / float64(time.Millisecond)
}

// failures are the kinds of a failed call; of a plan the rule that it broke first.
func failures(f run.Failure) []string {
	if f.Kind != string(calls.PlanInvalid) {
		return []string{f.Kind}
	}
	_, rest, _ := strings.Cut(f.Message, "does not hold: ")
	rule, _, _ := strings.Cut(rest, ":")
	if rule == "" || strings.ContainsFunc(rule, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		rule = "other"
	}
	return slices.Clip([]string{"plan rule " + rule})
}
