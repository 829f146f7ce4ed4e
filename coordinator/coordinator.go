// Package coordinator is the daemon that keeps the books: it wires ledger, engine, fleet, dispatch and API together and
// holds no logic of its own.
package coordinator

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
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/loopkeeper/loopkeeper/coordinator/api"
	"github.com/loopkeeper/loopkeeper/coordinator/dispatch"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/pull"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	"github.com/loopkeeper/loopkeeper/coordinator/tools/policy"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Options is what a Coordinator is made of.
type Options struct {
	Name      string // of this machine, for people
	Fleet     string // fleet id
	Version   string // semantic
	DataDir   string // for people; the ledger is open already
	Store     ledger.Store
	Host      script.Host
	Listener  net.Listener // for the command line
	Server    []grpc.ServerOption
	Dial      func(addr string) (*grpc.ClientConn, error) // to workers
	Workers   []string                                    // static addresses, host:port
	Local     string                                      // address of the worker in this process; "" for none
	Discover  *fleet.MDNS                                 // nil: off
	Interval  time.Duration                               // between rounds of discovery
	LostAfter time.Duration
	MaxRuns   int
	Limits    scheduler.Limits
	Contexts  map[string]int               // tokens per slot by model name; a name without tag is the latest
	Hours     map[string]engine.Hours      // when a node may be used, by id or name; one that is not in it always
	Nodes     map[string]engine.NodeLimits // by id or name
	Resources map[string]engine.Resource   // limits of what calls hold, by name
	Pulls     PullPolicy
	Default   run.Limits                 // budgets of runs where neither they nor their workflow set any
	Budgets   map[string]run.Limits      // of single workflows, by name; 0 is Default's, a negative number none
	Roles     map[string][]run.RoleModel // models that play a role, in order of preference
	Prompts   prompts.Set                // texts in the place of this release's own
	// PromptsFolder is where these come from, for people; "" for nowhere.
	PromptsFolder string
	Spaces        []tools.Workspace        // the folders that tools may use, and nothing else of this machine
	Web           map[string]tools.WebHost // what http.request may call; with none there is no such tool
	Policy        []policy.Rule            // what calls of tools may do; the first that fits holds
	EffectLog     *tools.EffectLog         // the tool effect.log, for tests; nil: there is none
	Grace         time.Duration            // how long after a start a call waits for its node to come back; 0: the engine's default
	Log           *slog.Logger
}

// Coordinator is the running daemon.
type Coordinator struct {
	o        Options
	engine   *engine.Engine
	fleet    *fleet.Fleet
	dispatch *dispatch.Dispatcher
	pulls    *pull.Puller
	library  *library
	tools    *tools.Registry
	schedule *schedules
	judges   *judgeBook
	server   *grpc.Server
	auto     sync.WaitGroup
	end      context.CancelFunc // of what goes on in auto
	served   chan error
}

// Start recovers what the ledger holds and begins to work. The caller keeps the store and closes it after Stop.
func Start(ctx context.Context, o Options) (*Coordinator, error) {
	c := &Coordinator{o: o, served: make(chan error, 1), library: &library{store: o.Store}}
	var err error
	if c.tools, err = o.newTools(); err != nil {
		return nil, err
	}
	submitted := func(ctx context.Context, params, input json.RawMessage) ([]run.Submitted, error) {
		return api.Submitted(ctx, o.Store, params, input)
	}
	c.judges = o.newJudgeBook(func() []fleet.View { all, _ := c.fleet.View(); return all })
	c.engine = engine.New(engine.Options{Store: o.Store, Host: o.Host, MaxScripts: o.MaxRuns, ReattachGrace: o.Grace,
		Pins: engine.Pins{Roles: o.Roles, Prompts: o.texts(), Judges: c.judges.pinned}, DefaultLimits: o.Default, Tools: toolbox{c.tools}, Rule: ruler{c.tools, o.rules()}.rule, Workflows: c.library.Find, Submitted: submitted,
		Limits: o.limits(), Hours: o.Hours, Nodes: o.Nodes, Resources: o.Resources, Log: o.Log.With("part", "engine")})
	fo := fleet.Options{Fleet: o.Fleet, Version: o.Version, Static: o.Workers, Local: o.Local, Interval: o.Interval, Dial: o.Dial,
		LostAfter: o.LostAfter, Memory: o.Store, Lost: c.engine.Lost, Note: c.engine.Reported, Log: o.Log.With("part", "fleet")}
	if o.Discover != nil {
		fo.Find = o.Discover.Find
	}
	if c.fleet, err = fleet.New(ctx, fo); err != nil {
		return nil, errors.Join(err, c.tools.Close())
	}
	c.dispatch = dispatch.New(dispatch.Options{Nodes: c.fleet, Store: o.Store, Sink: c.engine, Log: o.Log.With("part", "dispatch")})
	c.pulls = pull.New(c.fleet)
	c.fleet.Start()
	if err := c.engine.Start(ctx, c.fleet, c.dispatch); err != nil {
		c.stop()
		return nil, fmt.Errorf("recover the runs: %w", err)
	}
	server := c.newServer()
	if c.schedule, err = c.startSchedules(ctx, server); err != nil {
		c.stop()
		return nil, err
	}
	c.serve(server)
	c.startAuto(ctx)
	return c, nil
}

// limits are the scheduler's with the configured contexts: one per model, the same for every call.
func (o Options) limits() scheduler.Limits {
	l := o.Limits
	l.Contexts = o.Contexts
	return l
}

func (c *Coordinator) newServer() *api.Server {
	return api.New(api.Options{Engine: c.engine, Fleet: c.fleet, Store: c.o.Store, Host: c.o.Host, Library: c.library, Budgets: c.o.Budgets,
		Limits: c.o.limits(), Context: c.engine.Context, Pulls: c.pulls, Suggest: c.suggester(), Settings: c.o.settings(), Roles: c.o.Roles,
		Prompts: c.o.Prompts, PromptsFolder: c.o.PromptsFolder, Judges: c.judges, Version: c.o.Version, FleetID: c.o.Fleet, Name: c.o.Name, DataDir: c.o.DataDir,
		Discovery: c.discovery(), Log: c.o.Log.With("part", "api")})
}

// serve answers the command line.
func (c *Coordinator) serve(server *api.Server) {
	// Stop waits for the handlers, because what they use ends after them.
	c.server = grpc.NewServer(append([]grpc.ServerOption{grpc.WaitForHandlers(true)}, c.o.Server...)...)
	server.Register(c.server)
	coordinatorv1.RegisterScheduleServiceServer(c.server, server.Schedules(c.schedule.runner))
	coordinatorv1.RegisterToolServiceServer(c.server, &api.Tools{Registry: c.tools, Workspaces: c.o.Spaces})
	h := health.NewServer()
	h.SetServingStatus(coordinatorv1.CoordinatorService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(c.server, h)
	reflection.Register(c.server)
	go func() { c.served <- c.server.Serve(c.o.Listener) }()
}

func (c *Coordinator) discovery() string {
	if c.o.Discover == nil {
		return "off"
	}
	if len(c.o.Discover.Interfaces) > 0 {
		return fmt.Sprintf("mdns on %v", c.o.Discover.Interfaces)
	}
	return "mdns on every usable interface"
}

// Wait returns when the coordinator cannot go on, with the reason, or when ctx ends, with nil.
func (c *Coordinator) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.engine.Done():
		return c.engine.Err()
	case err := <-c.served:
		c.served <- err
		return err
	}
}

// Stop ends everything in the order in which it depends on each other. Runs go on at the next start.
func (c *Coordinator) Stop() {
	c.end()
	c.auto.Wait()
	c.server.Stop()
	if err := <-c.served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		c.o.Log.Error("the listener failed", "error", err)
	}
	c.schedule.close()
	c.stop()
}

func (c *Coordinator) stop() {
	c.pulls.Stop()
	c.engine.Stop()
	c.dispatch.Stop()
	c.fleet.Stop()
	if err := c.tools.Close(); err != nil {
		c.o.Log.Error("the workspaces were not released", "error", err)
	}
}
