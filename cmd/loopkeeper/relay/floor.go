package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator/dispatch"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
	"github.com/loopkeeper/loopkeeper/worker"
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
