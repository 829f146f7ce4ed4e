package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Options is what an engine is made of. Store and Host are required.
type Options struct {
	Store ledger.Store
	Host  script.Host
	// Bodies opens what the store has by hash; nil is the store itself.
	Bodies Bodies
	// Place decides where attempts run, on the engine's loop; nil is the scheduler's with Limits.
	Place func(scheduler.Snapshot) scheduler.Plan
	// Limits are the scheduler's. An IdleUnload of 0 is 5 minutes here, a negative one is for ever.
	Limits scheduler.Limits
	// KeepAlive is how long a worker's Ollama keeps a model after its last request: half of it is when one that is wanted is
	// renewed. 0 is 10 minutes.
	KeepAlive time.Duration
	// Resources are the limits of what calls hold beside their slots, by name; "model:NAME" is held by every call of a model.
	Resources map[string]Resource
	// Hours are when a node may be used, by its id or name; a node that is not in it may be used always.
	Hours map[string]Hours
	// Nodes are the limits of single nodes, by id or name.
	Nodes map[string]NodeLimits
	// MaxScripts bounds the scripts that are hosted at once; further runs wait for a host that has nothing to do. 0 is 8.
	MaxScripts int
	// ReattachGrace is how long after a restart an attempt waits for its node before it goes elsewhere. 0 is 20 s.
	ReattachGrace time.Duration
	// Tools are what steps can do on this machine; nil: nothing.
	Tools Tools
	// Rule says whether a call of a tool may act: it only looks at the call, and does not wait. nil: every call may.
	Rule func(ToolCall) Ruling
	// MaxTools bounds the tools that run at once. 0 is 4.
	MaxTools int
	// Workflows finds the workflow that a spawn names; nil: none can be spawned. It may be called from several goroutines.
	Workflows func(ctx context.Context, name string) (script.Program, error)
	// Submitted lists the work in a child's input that it must cover, by the parameters of its script; nil: none is. It may be called
	// from several goroutines.
	Submitted func(ctx context.Context, params, input json.RawMessage) ([]run.Submitted, error)
	// Pins are what new runs keep of the settings.
	Pins Pins
	// DefaultLimits are the budgets of a run where its submission sets none.
	DefaultLimits run.Limits
	Log           *slog.Logger // nil discards

	wall func() time.Time // the machine's clock; nil: time.Now. For tests
}

// Submission is a request to start a run. The caller has checked the input against the program's parameter schema.
type Submission struct {
	Workflow  string // built-in or file name, for people
	BuiltIn   bool   // Workflow is one of ours, and no user's of that name
	Program   script.Program
	Interface string            // version of the script interface the program was bundled for
	Input     json.RawMessage   // canonical JSON
	Key       string            // the same key returns the same run; "": none
	TimeLimit time.Duration     // of active time, as Limits.ActiveSeconds; 0: that
	Limits    run.Limits        // 0 is the default's, a negative number is none
	SetBy     map[string]string // by the limit's name, who set those of Limits: run or workflow
	Submitted []run.Submitted   // what must be covered for the run to be completed
	Parent    *run.Parent       // nil: nothing spawned it. Spawns set it themselves
	Base      *run.Base         // nil: nothing is taken over. Fork sets it, with what else a base needs
	Priority  run.Priority      // "": normal
	Weight    float64           // share of the machines beside other runs; 0 counts as 1
}

func (o Options) withDefaults() Options {
	switch {
	case o.Limits.IdleUnload == 0:
		o.Limits.IdleUnload = 5 * time.Minute
	case o.Limits.IdleUnload < 0:
		o.Limits.IdleUnload = 0
	}
	if o.Place == nil {
		planner, limits := new(scheduler.Planner), o.Limits
		o.Place = func(s scheduler.Snapshot) scheduler.Plan { return planner.Place(s, limits) }
	}
	if o.Bodies == nil {
		o.Bodies = o.Store
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = 10 * time.Minute
	}
	if o.MaxScripts == 0 {
		o.MaxScripts = 8
	}
	if o.Rule == nil {
		o.Rule = func(ToolCall) Ruling { return Ruling{} }
	}
	if o.MaxTools == 0 {
		o.MaxTools = 4
	}
	if o.ReattachGrace == 0 {
		o.ReattachGrace = 20 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
