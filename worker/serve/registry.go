package serve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// registry holds the attempts of this worker by key: those that run, and for a while those that ended.
type registry struct {
	keep, orphan time.Duration
	ctx          context.Context
	stopAll      context.CancelFunc
	work         sync.WaitGroup

	mu       sync.Mutex
	attempts map[string]*attempt
}

// attempt is one call. Fields below mu of the registry are guarded by it; response is read after done is closed.
type attempt struct {
	print    string // of the request: a key that comes with another request is another attempt
	done     chan struct{}
	response proto.Message
	cancel   context.CancelCauseFunc

	listeners int
	timer     *time.Timer // while it runs and nobody listens: cancels it; after it ended: forgets it
	progress  *workerv1.Progress
	ended     bool
}

var (
	errCancelled = errors.New("cancelled by the coordinator")
	errOrphaned  = errors.New("nobody listened any more")
)

func newRegistry(keep, orphan time.Duration) *registry {
	r := &registry{keep: keep, orphan: orphan, attempts: map[string]*attempt{}}
	r.ctx, r.stopAll = context.WithCancel(context.Background())
	return r
}

// join returns the attempt with this key, started now if there is none. The caller listens until it calls leave.
func (r *registry) join(key, print string, run func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[key]; a != nil && a.print == print {
		a.listeners++
		if !a.ended {
			a.timer.Stop()
		}
		return a
	} else if a != nil {
		a.timer.Stop()
		a.cancel(errOrphaned)
	}
	a := &attempt{print: print, done: make(chan struct{}), listeners: 1}
	ctx, cancel := context.WithCancelCause(r.ctx)
	a.cancel = cancel
	a.timer = time.AfterFunc(r.orphan, func() { cancel(errOrphaned) })
	a.timer.Stop()
	r.attempts[key] = a
	r.work.Go(func() {
		response := run(ctx, func(p *workerv1.Progress) {
			r.mu.Lock()
			a.progress = p
			r.mu.Unlock()
		})
		cancel(nil)
		r.end(key, a, response)
	})
	return a
}

// end keeps the response for a while.
func (r *registry) end(key string, a *attempt, response proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.response, a.ended = response, true
	a.timer.Stop()
	close(a.done)
	if r.ctx.Err() != nil || r.attempts[key] != a {
		return
	}
	a.timer = time.AfterFunc(r.keep, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.attempts[key] == a {
			delete(r.attempts, key)
		}
	})
}

// leave says that one listener went. A call that nobody listens to runs on for a while, so that a coordinator that
// restarts can join it.
func (r *registry) leave(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.listeners--; a.listeners == 0 && !a.ended && r.ctx.Err() == nil {
		a.timer.Reset(r.orphan)
	}
}

func (r *registry) cancel(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[key]; a != nil {
		a.cancel(errCancelled)
	}
}

// latest is how far the attempt is; nil before the first news.
func (r *registry) latest(a *attempt) *workerv1.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.progress
}

// keys returns the keys of running and of kept attempts, sorted.
func (r *registry) keys() (running, kept []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, a := range r.attempts {
		if a.ended {
			kept = append(kept, key)
		} else {
			running = append(running, key)
		}
	}
	slices.Sort(running)
	slices.Sort(kept)
	return running, kept
}

func (r *registry) stop() {
	r.stopAll()
	r.work.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attempts {
		a.timer.Stop()
	}
}
