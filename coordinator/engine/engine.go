package engine

import (
	"context"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Engine is the coordinator's single writer. Make one with New; its methods may be called from any goroutine.
type Engine struct{ o Options }

var _ Sink = (*Engine)(nil)

// New makes an engine over a ledger. Nothing runs before Start; the engine is a Sink at once, so that fleet and dispatch can
// be made with it.
func New(o Options) *Engine { return &Engine{o: o.withDefaults()} }

// Start recovers every run that has not ended and begins to work. It returns when recovery has read the ledger.
func (e *Engine) Start(ctx context.Context, f Fleet, d Dispatcher) error { panic("soon") }

// Stop ends the engine and waits until nothing of it runs. Runs under way go on at the next start. It may be called again.
func (e *Engine) Stop() { panic("soon") }

// Done is closed when the engine has stopped, by Stop or because the ledger could not be written; then Err says why.
func (e *Engine) Done() <-chan struct{} { panic("soon") }

// Err returns why the engine stopped by itself, nil while it runs and after Stop.
func (e *Engine) Err() error { panic("soon") }

// Submit starts a run and returns its id once that is durable. A key that is known returns its run and existing true.
func (e *Engine) Submit(ctx context.Context, s Submission) (id string, existing bool, err error) {
	panic("soon")
}

// Resolve returns the id of the run that id names exactly, or of the only one that it begins. NotFound, InvalidArgument.
func (e *Engine) Resolve(ctx context.Context, id string) (string, error) { panic("soon") }

// Cancel ends a run and what it has in flight. Conflict: it has ended.
func (e *Engine) Cancel(ctx context.Context, id, reason string) (View, error) { panic("soon") }

// Run returns one run with its steps; a unique prefix of the id will do.
func (e *Engine) Run(ctx context.Context, id string) (View, error) { panic("soon") }

// Runs returns runs without steps, newest first.
func (e *Engine) Runs(ctx context.Context, f Filter) ([]View, error) { panic("soon") }

// Watch returns a channel that holds the newest view: one at once, one after every change, the last when the run has
// ended, whereupon it is closed. A slow reader misses views, never the newest. It ends with ctx, too.
func (e *Engine) Watch(ctx context.Context, id string) (<-chan View, error) { panic("soon") }

// Items returns up to limit items (0: 100) of a step from index from; step -1 is the first batch.
func (e *Engine) Items(ctx context.Context, id string, step, from, limit int) (ItemsPage, error) {
	panic("soon")
}

// Outputs returns a run's key results in the order in which they appeared.
func (e *Engine) Outputs(ctx context.Context, id string) ([]Output, error) { panic("soon") }

// Explain says why a run's attempts are where they are, or not placed: of one step, or of all open ones with step -1.
func (e *Engine) Explain(ctx context.Context, id string, step int) ([]Explanation, error) {
	panic("soon")
}

// Snapshot returns what a placement decided now would see; submission checks and explain use it.
func (e *Engine) Snapshot(ctx context.Context) (scheduler.Snapshot, error) { panic("soon") }

// Busy returns how many attempts a node has in flight.
func (e *Engine) Busy(node string) int { panic("soon") }

// Finished implements Sink.
func (e *Engine) Finished(r Result) { panic("soon") }

// Progressed implements Sink.
func (e *Engine) Progressed(p Progress) { panic("soon") }

// Moved implements Sink.
func (e *Engine) Moved(node string, d scheduler.Decision, spilled bool, err error) { panic("soon") }

// Lost implements Sink.
func (e *Engine) Lost(node string) { panic("soon") }
