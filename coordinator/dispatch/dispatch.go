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
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Nodes gives connections to workers; a *fleet.Fleet is one.
type Nodes interface {
	Client(nodeID string) (workerv1.WorkerServiceClient, bool)
	State(nodeID string) scheduler.NodeState
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
	node      string
	cancelled context.Context
	cancel    context.CancelFunc
}

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
	d.cancel()
	d.work.Wait()
}

// Send implements engine.Dispatcher.
func (d *Dispatcher) Send(a engine.Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, runs := d.running[a.Key]; runs || d.ctx.Err() != nil {
		return
	}
	f := &flight{node: a.Node}
	f.cancelled, f.cancel = context.WithCancel(d.ctx)
	d.running[a.Key] = f
	d.work.Go(func() {
		r := d.attempt(f, a)
		d.mu.Lock()
		delete(d.running, a.Key)
		d.mu.Unlock()
		f.cancel()
		if d.ctx.Err() == nil {
			d.o.Sink.Finished(r)
		}
	})
}

// Cancel implements engine.Dispatcher.
func (d *Dispatcher) Cancel(node, key string) {
	d.mu.Lock()
	if f := d.running[key]; f != nil {
		f.cancel()
	}
	d.mu.Unlock()
	client, ok := d.o.Nodes.Client(node)
	if !ok || d.ctx.Err() != nil {
		return
	}
	d.work.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		defer cancel()
		if _, err := client.Cancel(ctx, &workerv1.CancelRequest{Key: key}); err != nil {
			d.o.Log.Info("cancel did not reach the worker", "node", node, "attempt", key, "error", err)
		}
	})
}

// attempt makes the call and joins it again for as long as the node is not lost.
func (d *Dispatcher) attempt(f *flight, a engine.Attempt) engine.Result {
	c, err := parseCall(a)
	if err != nil {
		return failed(a.Key, "cannot_send", engine.Never, err)
	}
	byValue := false
	for {
		if f.cancelled.Err() != nil {
			return failed(a.Key, "cancelled", engine.Never, errors.New("cancelled"))
		}
		client, ok := d.o.Nodes.Client(a.Node)
		if !ok {
			if d.o.Nodes.State(a.Node) == scheduler.NodeLost {
				return failed(a.Key, "node_lost", engine.OtherNode, apierr.New(apierr.Unavailable, "node %s is gone", a.Node))
			}
			d.pause(f)
			continue
		}
		r, err := d.call(f.cancelled, client, a, c, byValue)
		switch {
		case err == nil:
			r.Key = a.Key
			return r
		case apierr.CodeOf(err) == apierr.MissingArtifact && !byValue:
			byValue = true
			d.sent.forget(a.Node)
		case apierr.CodeOf(err) == apierr.Unavailable, f.cancelled.Err() != nil:
			d.o.Log.Info("a call broke, joining it again", "node", a.Node, "attempt", a.Key, "error", err)
			d.pause(f)
		default:
			return failed(a.Key, "cannot_send", elsewhere(err), err)
		}
	}
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
	case <-f.cancelled.Done():
	}
}

func failed(key, kind string, advice engine.Advice, err error) engine.Result {
	e := apierr.As(err)
	return engine.Result{Key: key, Failure: &engine.Failure{Kind: kind, Message: e.Error(), Advice: advice, Next: e.Next}}
}
