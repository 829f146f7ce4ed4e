package dispatch

import (
	"context"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Load implements engine.Dispatcher.
func (d *Dispatcher) Load(node string, dec scheduler.Decision) {
	d.move(node, dec, func(ctx context.Context, c workerv1.WorkerServiceClient) (engine.Move, error) {
		r, err := c.Load(ctx, &workerv1.LoadRequest{Model: spec(dec)})
		m := engine.Move{Took: time.Duration(nanos(r.GetLoadNanos())), Spilled: r.GetSpilled(), Size: size(r.GetLoaded().GetSizeBytes()), VRAM: size(r.GetLoaded().GetVramBytes())}
		if err == nil && r.ObservedBytes != nil && r.GetObservedBytes() <= mostBytes {
			m.Observed = scheduler.Bytes{N: r.GetObservedBytes(), Known: true}
		}
		return m, err
	})
}

func spec(d scheduler.Decision) *workerv1.ModelSpec {
	return &workerv1.ModelSpec{Name: d.Model, Digest: d.Digest, Context: int32(d.Context)}
}

// unloadBound is how long an unload may take. Only idle models are unloaded, which takes Ollama a second or two; what takes this
// long is stuck, and tasks wait for its room.
const unloadBound = 30 * time.Second

// Unload implements engine.Dispatcher.
func (d *Dispatcher) Unload(node string, dec scheduler.Decision) {
	d.move(node, dec, func(ctx context.Context, c workerv1.WorkerServiceClient) (engine.Move, error) {
		ctx, cancel := context.WithTimeout(ctx, unloadBound)
		defer cancel()
		_, err := c.Unload(ctx, &workerv1.UnloadRequest{Name: dec.Model})
		return engine.Move{}, err
	})
}

func (d *Dispatcher) move(node string, dec scheduler.Decision, call func(context.Context, workerv1.WorkerServiceClient) (engine.Move, error)) {
	d.begin(func() {
		m, err := engine.Move{}, error(apierr.New(apierr.Unavailable, "node %s is not connected", node).WithNext("loopkeeper nodes"))
		if client, ok := d.o.Nodes.Client(node); ok {
			m, err = call(d.ctx, client)
		}
		m.Decision, m.Err = dec, apierr.FromStatus(err)
		if d.ctx.Err() == nil {
			d.o.Sink.Moved(node, m)
		}
	})
}

// Renew implements engine.Dispatcher. One that fails is only logged: a model that went shows in the next report.
func (d *Dispatcher) Renew(node string, dec scheduler.Decision) {
	d.begin(func() {
		client, ok := d.o.Nodes.Client(node)
		if !ok {
			return
		}
		if _, err := client.Renew(d.ctx, &workerv1.RenewRequest{Model: spec(dec)}); err != nil && d.ctx.Err() == nil {
			d.o.Log.Info("a model was not renewed", "node", node, "model", dec.Model, "error", apierr.FromStatus(err))
		}
	})
}

// begin runs work in a goroutine that Stop waits for; not after Stop.
func (d *Dispatcher) begin(work func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() == nil {
		d.work.Go(work)
	}
}
