package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine/health"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Engine is the coordinator's single writer. Make one with New; its methods may be called from any goroutine.
type Engine struct {
	o     Options
	inbox *mailbox[message]

	ctx    context.Context // ends with Stop, or with a ledger that cannot be written, which is its cause then
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	done   chan struct{} // closed when nothing runs any more
	end    sync.Once

	fleet    Fleet
	dispatch Dispatcher

	busy  atomic.Pointer[map[string]int] // attempts in flight by node
	ended endedRuns

	preparing chan struct{} // a value for each child that is being made ready
	schemas   sync.Map      // parameters of spawned scripts, by the digest of their code: json.RawMessage

	// What follows belongs to the loop.
	runs    map[string]*active   // every run that has not ended
	order   []*active            // the same, oldest first
	flights map[string]*flight   // attempts in flight, by key
	orphans map[string]orphan    // attempts that nobody waits for any more but that still run, by key
	begun   []string             // keys of attempts that have begun; see turn.noteBegun
	waiters map[string][]waiter  // spawns that wait for a run's end, by its id
	tools   map[string]*toolRun  // tools that run, by the key of their call
	missing map[string]time.Time // since when nodes with attempts are not there
	hosts   hosts
	clock   *timeline
	moves   moves
	started time.Time
	alarm   *time.Timer

	facts     facts
	beside    beside
	circuits  health.Circuits
	resources resources
	received  received
	uses      map[string]use    // what a person wants of a node, by id
	bases     map[string]base   // contexts where nothing asks for one, by model
	endings   map[string]ending // what may last have ended runners, by node
	waited    int               // tasks of the snapshot before
	tendAt    time.Time         // when a model of ours is to be renewed or unloaded next
}

// message is a thing to do for the loop.
type message func(t *turn)

var _ Sink = (*Engine)(nil)

// New makes an engine over a ledger. Nothing runs before Start; the engine is a Sink at once, so that fleet and dispatch can
// be made with it.
func New(o Options) *Engine {
	e := &Engine{
		o: o.withDefaults(), inbox: newMailbox[message](), done: make(chan struct{}),
		runs: map[string]*active{}, flights: map[string]*flight{}, orphans: map[string]orphan{}, moves: newMoves(),
		facts: newFacts(), resources: newResources(o.Resources), received: received{}, uses: map[string]use{}, bases: map[string]base{},
		endings: map[string]ending{}, waiters: map[string][]waiter{}, tools: map[string]*toolRun{}, missing: map[string]time.Time{}, preparing: make(chan struct{}, preparing),
		hosts: newHosts(),
	}
	e.clock = newTimeline(e.o.wall)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.busy.Store(&map[string]int{})
	return e
}

// Start recovers every run that has not ended and begins to work. It returns when recovery has read the ledger; ctx bounds
// that. It is called once.
func (e *Engine) Start(ctx context.Context, f Fleet, d Dispatcher) error {
	e.fleet, e.dispatch, e.started = f, d, e.clock.now()
	if err := e.recover(ctx); err != nil {
		e.Stop()
		return err
	}
	e.wg.Go(e.loop)
	go func() { // sees to it that Done is closed when the loop ends by itself
		<-e.ctx.Done()
		e.Stop()
	}()
	return nil
}

// Stop ends the engine and waits until nothing of it runs. Runs under way go on at the next start. It may be called again.
func (e *Engine) Stop() {
	e.cancel(nil)
	e.wg.Wait()
	e.end.Do(func() { close(e.done) })
}

// Done is closed when the engine has stopped, by Stop or because the ledger could not be written; then Err says why.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Err returns why the engine stopped by itself, nil while it runs and after Stop.
func (e *Engine) Err() error {
	if err := context.Cause(e.ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// loop is the single writer: it takes everything that is ready as one turn, and a turn is one commit.
func (e *Engine) loop() {
	e.alarm = time.NewTimer(0)
	defer e.alarm.Stop()
	for {
		t := &turn{e: e, place: true}
		select {
		case <-e.ctx.Done():
			e.closeWatchers()
			e.keepFacts()
			e.keepBeside()
			return
		case <-e.inbox.wake:
			t.place = false // a message says so itself
		case <-e.fleet.Changed():
			e.refresh()
		case <-e.alarm.C:
		}
		t.now = e.clock.now()
		t.noteJump()
		for _, m := range e.inbox.take() {
			m(t)
		}
		if err := t.finish(); err != nil {
			e.fail(err)
			return
		}
	}
}

// fail stops everything without another effect: what is durable is told to the next start by the ledger, and memory may be
// ahead of it.
func (e *Engine) fail(err error) {
	why := apierr.Wrap(err, apierr.Unavailable, "the ledger could not be written; nothing goes on until it can").
		WithNext("free space on the disk of the data folder, then start loopkeeper again: no finished work is lost")
	e.o.Log.Error("the engine stops", "err", why)
	e.cancel(why)
	e.closeWatchers()
}

// ask runs f on the loop. What f returns runs after the turn's commit is durable and makes the reply. It is given up when
// ctx or the engine ends; whether it was carried out is then unknown.
func ask[T any](ctx context.Context, e *Engine, f func(t *turn) func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	reply := make(chan answer, 1)
	e.inbox.put(func(t *turn) {
		after := f(t)
		t.then(func() {
			v, err := after()
			reply <- answer{v, err}
		})
	})
	var none T
	select {
	case r := <-reply:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-e.ctx.Done():
		return none, cmp.Or[error](e.Err(), errStopping())
	}
}

func errStopping() error {
	return apierr.New(apierr.Unavailable, "the coordinator is stopping").WithNext("start loopkeeper again")
}

// reply is an answer that needs no commit.
func reply[T any](v T, err error) func() (T, error) {
	return func() (T, error) { return v, err }
}

// Busy returns how many attempts a node has in flight.
func (e *Engine) Busy(node string) int { return (*e.busy.Load())[node] }
