// Package dispatch turns the engine's decisions into calls on workers: attempts, loads and unloads. It resolves what a
// request names by hash, joins a call again after a broken connection, and hands every end in exactly once.
package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Nodes gives connections to workers; a *fleet.Fleet is one.
type Nodes interface {
	Client(nodeID string) (workerv1.WorkerServiceClient, bool)
	State(nodeID string) scheduler.NodeState
	// Mode is what is known about calling a model there with a format; nil while nothing is.
	Mode(nodeID, digest string) *workerv1.CallMode
}

// Options is what a Dispatcher needs from outside.
type Options struct {
	Nodes Nodes
	Store ledger.Store
	Sink  engine.Sink
	Log   *slog.Logger
	// Rejoin is the pause before a broken call is joined again; 0 is 300 ms.
	Rejoin time.Duration
}

// Dispatcher implements engine.Dispatcher. Each attempt, load and unload is one goroutine that Stop waits for.
type Dispatcher struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	sent   sentBodies

	mu      sync.Mutex
	running map[string]*flight // by attempt key
}

// flight is one attempt under way.
type flight struct {
	asked context.Context // ends when the attempt is to be cancelled: no call is begun after that
	ask   context.CancelFunc
	ctx   context.Context // of the call under way: ends when the worker did not end a cancelled call by itself
	cut   context.CancelFunc
	done  chan struct{}
}

const (
	// maxBroken is how often in a row a call may break off early before another node is tried.
	maxBroken = 5
	// steady is how long a call has to last to count as more than another early break.
	steady = 10 * time.Second
	// cancelWait is how long a worker has to take note of a cancel, and confirmWait how long it has then to end the call. Until it
	// does, the call occupies its slot; nobody else waits for it.
	cancelWait  = 10 * time.Second
	confirmWait = 2 * time.Minute
)

var _ engine.Dispatcher = (*Dispatcher)(nil)

// New returns a Dispatcher that works until Stop.
func New(o Options) *Dispatcher {
	if o.Rejoin == 0 {
		o.Rejoin = 300 * time.Millisecond
	}
	d := &Dispatcher{o: o, running: map[string]*flight{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Stop leaves every call and returns when nothing runs any more. Workers finish what they have begun and keep the
// results for the next coordinator. It may be called more than once.
func (d *Dispatcher) Stop() {
	d.mu.Lock()
	d.cancel()
	d.mu.Unlock()
	d.work.Wait()
}

// Send implements engine.Dispatcher.
func (d *Dispatcher) Send(a engine.Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, runs := d.running[a.Key]; runs || d.ctx.Err() != nil {
		return
	}
	f := &flight{done: make(chan struct{})}
	f.asked, f.ask = context.WithCancel(d.ctx)
	f.ctx, f.cut = context.WithCancel(d.ctx)
	d.running[a.Key] = f
	d.work.Go(func() {
		r := d.attempt(f, a)
		d.mu.Lock()
		delete(d.running, a.Key)
		d.mu.Unlock()
		f.ask()
		f.cut()
		close(f.done)
		if d.ctx.Err() == nil {
			d.o.Sink.Finished(r)
		}
	})
}

// Cancel implements engine.Dispatcher. The worker is told, and what it has until then comes back as its outcome; a worker
// that cannot be told, or does not end the call, is left alone with it.
func (d *Dispatcher) Cancel(node, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	f := d.running[key]
	if f != nil {
		f.ask()
	}
	d.work.Go(func() {
		told := d.tell(node, key)
		if f == nil {
			return
		}
		if told {
			late := time.NewTimer(confirmWait)
			defer late.Stop()
			select {
			case <-f.done:
			case <-late.C:
			case <-d.ctx.Done():
			}
		}
		f.cut()
	})
}

// tell cancels an attempt on its worker, and says whether that reached it.
func (d *Dispatcher) tell(node, key string) bool {
	client, ok := d.o.Nodes.Client(node)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(d.ctx, cancelWait)
	defer cancel()
	_, err := client.Cancel(ctx, &workerv1.CancelRequest{Key: key})
	if err != nil {
		d.o.Log.Info("cancel did not reach the worker", "node", node, "attempt", key, "error", err)
	}
	return err == nil
}

// attempt makes the call and joins it again for as long as the node is not lost.
func (d *Dispatcher) attempt(f *flight, a engine.Attempt) engine.Result {
	c, err := parseCall(a)
	if err != nil {
		return failed(a.Key, "cannot_send", engine.Never, err)
	}
	byValue := false
	for breaks := 0; f.asked.Err() == nil; {
		client, ok := d.o.Nodes.Client(a.Node)
		if !ok {
			if d.o.Nodes.State(a.Node) == scheduler.NodeLost {
				return failed(a.Key, "node_lost", engine.OtherNode, apierr.New(apierr.Unavailable, "node %s is gone", a.Node).WithNext("loopkeeper nodes"))
			}
			d.pause(f)
			continue
		}
		began := time.Now()
		r, err := d.call(f.ctx, client, a, c, byValue)
		if err == nil {
			r.Key = a.Key
			return r
		}
		if time.Since(began) >= steady {
			breaks = 0
		}
		switch code := apierr.CodeOf(err); {
		case code == apierr.MissingArtifact && !byValue:
			byValue = true
			d.sent.forget(a.Node)
		case code == apierr.Unavailable && breaks < maxBroken:
			breaks++
			d.o.Log.Info("a call broke, joining it again", "node", a.Node, "attempt", a.Key, "error", err)
			d.pause(f)
		case f.asked.Err() == nil:
			return failed(a.Key, kindOf(err), elsewhere(err), err)
		}
	}
	return failed(a.Key, "cancelled", engine.Never, errors.New("cancelled"))
}

// kindOf names what went wrong with a call that has no outcome.
func kindOf(err error) string {
	if errors.Is(err, errAnswer) {
		return run.KindTooLarge
	}
	return run.KindCannotSend
}

// elsewhere says whether another node can help after a call could not be sent: not when the request itself is at fault.
func elsewhere(err error) engine.Advice {
	switch apierr.CodeOf(err) {
	case apierr.NotFound, apierr.LedgerCorrupt, apierr.InvalidArgument:
		return engine.Never
	default:
		return engine.OtherNode
	}
}

func (d *Dispatcher) pause(f *flight) {
	t := time.NewTimer(d.o.Rejoin)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.asked.Done():
	}
}

func failed(key, kind string, advice engine.Advice, err error) engine.Result {
	e := apierr.As(err)
	return engine.Result{Key: key, Failure: &engine.Failure{Kind: kind, Message: e.Error(), Advice: advice, Next: e.Next}}
}
