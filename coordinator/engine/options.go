package engine

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Options is what an engine is made of. Store and Host are required.
type Options struct {
	Store ledger.Store
	Host  script.Host
	// Place decides where attempts run; nil is scheduler.Place with default limits.
	Place func(scheduler.Snapshot) scheduler.Plan
	// MaxScripts bounds the scripts that are hosted at once; further runs stay queued. 0 is 8.
	MaxScripts int
	// ReattachGrace is how long after a restart an attempt waits for its node before it goes elsewhere. 0 is 20 s.
	ReattachGrace time.Duration
	Log           *slog.Logger // nil discards
}

// Submission is a request to start a run. The caller has checked the input against the program's parameter schema.
type Submission struct {
	Workflow  string // built-in or file name, for people
	Program   script.Program
	Interface string          // version of the script interface the program was bundled for
	Input     json.RawMessage // canonical JSON
	Key       string          // the same key returns the same run; "": none
	TimeLimit time.Duration   // 0: none
}

func (o Options) withDefaults() Options {
	if o.Place == nil {
		o.Place = func(s scheduler.Snapshot) scheduler.Plan { return scheduler.Place(s, scheduler.Limits{}) }
	}
	if o.MaxScripts == 0 {
		o.MaxScripts = 8
	}
	if o.ReattachGrace == 0 {
		o.ReattachGrace = 20 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
