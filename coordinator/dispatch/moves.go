package dispatch

import (
	"context"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Load implements engine.Dispatcher.
func (d *Dispatcher) Load(node string, dec scheduler.Decision) {
	d.move(node, dec, func(ctx context.Context, c workerv1.WorkerServiceClient) (spilled bool, err error) {
		r, err := c.Load(ctx, &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: dec.Model, Digest: dec.Digest, Context: int32(dec.Context)}})
		return r.GetSpilled(), err
	})
}

// unloadBound is how long an unload may take. Only idle models are unloaded, which takes Ollama a second or two; what takes this
// long is stuck, and tasks wait for its room.
const unloadBound = 30 * time.Second

// Unload implements engine.Dispatcher.
func (d *Dispatcher) Unload(node string, dec scheduler.Decision) {
	d.move(node, dec, func(ctx context.Context, c workerv1.WorkerServiceClient) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, unloadBound)
		defer cancel()
		_, err := c.Unload(ctx, &workerv1.UnloadRequest{Name: dec.Model})
		return false, err
	})
}

func (d *Dispatcher) move(node string, dec scheduler.Decision, call func(context.Context, workerv1.WorkerServiceClient) (bool, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	d.work.Go(func() {
		var spilled bool
		var err error = apierr.New(apierr.Unavailable, "node %s is not connected", node)
		if client, ok := d.o.Nodes.Client(node); ok {
			spilled, err = call(d.ctx, client)
		}
		if d.ctx.Err() == nil {
			d.o.Sink.Moved(node, dec, spilled, apierr.FromStatus(err))
		}
	})
}
