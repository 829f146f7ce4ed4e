package serve

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// Bounds of the results that wait to be fetched. They hold the prompts as sent, and every report names them: a coordinator takes no report
// with more than twice as many, and has never more calls under way on one worker.
const (
	keptBytes = 64 << 20
	keptCount = 4096
)

// registry holds the attempts of this worker by key: those that run, and for a while those that ended.
type registry struct {
	keep, orphan time.Duration
	limit        int // bytes of kept results
	ctx          context.Context
	stopAll      context.CancelFunc
	work         sync.WaitGroup

	mu        sync.Mutex
	attempts  map[string]*attempt
	kept      int                  // bytes
	ended     list.List            // keys of kept attempts, the one that ended first in front
	cancelled map[string]time.Time // when keys that nothing ran under were cancelled: the cancel overtook the call
}

// runFunc is the work of an attempt. It must return soon after ctx ends.
type runFunc func(ctx context.Context, progress func(*workerv1.Progress)) proto.Message

// attempt is one call. Its fields are guarded by the registry's mu; response may be read once done is closed.
type attempt struct {
	print    string // of the request: a key that comes with another request is another attempt
	done     chan struct{}
	response proto.Message
	cancel   context.CancelFunc

	listeners int
	timer     *time.Timer // while it runs and nobody listens: abandons it; after it ended: forgets it; else nil
	progress  *workerv1.Progress
	ended     time.Time     // zero while it runs
	size      int           // bytes of the response
	place     *list.Element // in the registry's ended; nil while it is not kept
}

func newRegistry(keep, orphan time.Duration) *registry {
	r := &registry{keep: keep, orphan: orphan, limit: keptBytes, attempts: map[string]*attempt{}, cancelled: map[string]time.Time{}}
	r.ctx, r.stopAll = context.WithCancel(context.Background())
	return r
}

// join returns the attempt with this key, begun now if there is none. The caller listens until it calls leave.
// It fails only when the worker stops.
func (r *registry) join(key, print string, run runFunc) (*attempt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, apierr.New(apierr.Unavailable, "this worker is stopping")
	}
	if a := r.attempts[key]; a != nil && a.print == print {
		a.listeners++
		if a.ended.IsZero() {
			a.stopTimer()
		}
		return a, nil
	} else if a != nil {
		r.remove(key, a)
	}
	return r.begin(key, print, run), nil
}

// begin starts an attempt; mu is held.
func (r *registry) begin(key, print string, run runFunc) *attempt {
	a := &attempt{print: print, done: make(chan struct{}), listeners: 1}
	ctx, cancel := context.WithCancel(r.ctx)
	a.cancel = cancel
	if _, tooLate := r.cancelled[key]; tooLate {
		cancel()
	}
	r.attempts[key] = a
	r.work.Go(func() {
		defer cancel()
		r.end(key, a, run(ctx, func(p *workerv1.Progress) {
			r.mu.Lock()
			a.progress = p
			r.mu.Unlock()
		}))
	})
	return a
}

// end keeps the response for a while, so that a coordinator that was away can fetch it.
func (r *registry) end(key string, a *attempt, response proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.response, a.ended, a.size = response, time.Now(), proto.Size(response)
	a.stopTimer()
	close(a.done)
	if r.ctx.Err() != nil || r.attempts[key] != a {
		return
	}
	r.kept += a.size
	a.place = r.ended.PushBack(key)
	a.timer = time.AfterFunc(r.keep, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.remove(key, a)
	})
	for r.ended.Len() > keptCount || r.kept > r.limit && r.ended.Len() > 1 {
		oldest := r.ended.Front().Value.(string)
		r.remove(oldest, r.attempts[oldest])
	}
}

// remove forgets an attempt, and cancels it when it runs; mu is held.
func (r *registry) remove(key string, a *attempt) {
	if r.attempts[key] != a {
		return
	}
	delete(r.attempts, key)
	a.stopTimer()
	a.cancel()
	if a.place != nil {
		r.ended.Remove(a.place)
		r.kept -= a.size
	}
}

// leave says that one listener went. A call that nobody listens to runs on for a while, so that a coordinator that
// restarts can join it. After that it is forgotten, not kept as cancelled: who asks for it later wants it done.
func (r *registry) leave(key string, a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.listeners--; a.listeners > 0 || !a.ended.IsZero() || r.attempts[key] != a || r.ctx.Err() != nil {
		return
	}
	a.timer = time.AfterFunc(r.orphan, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.listeners == 0 && a.ended.IsZero() {
			r.remove(key, a)
		}
	})
}

// cancel ends the attempt with this key, or the one that will come with it: a cancel can overtake its call.
func (r *registry) cancel(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[key]; a != nil {
		a.cancel()
		return
	}
	now := time.Now()
	for k, at := range r.cancelled {
		if now.Sub(at) > r.keep {
			delete(r.cancelled, k)
		}
	}
	r.cancelled[key] = now
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
		if a.ended.IsZero() {
			running = append(running, key)
		} else {
			kept = append(kept, key)
		}
	}
	slices.Sort(running)
	slices.Sort(kept)
	return running, kept
}

func (r *registry) stop() {
	r.mu.Lock()
	r.stopAll()
	for _, a := range r.attempts {
		a.stopTimer()
	}
	r.mu.Unlock()
	r.work.Wait()
}

func (a *attempt) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
