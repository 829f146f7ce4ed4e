package ollamatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// errMaxQueue has Ollama's own text (server/sched.go).
var errMaxQueue = errors.New("server busy, please try again.  maximum pending requests exceeded")

// scheduler decides which models are loaded, the way Ollama does (research: scheduling §2.1): one load at a time in
// order of arrival, requests for a loaded model pass by, and room is made by evicting one model after another.
type scheduler struct {
	cfg  Config
	dice *dice
	turn chan struct{} // held by the one request that loads; waiting senders are served in order

	mu      sync.Mutex
	waiting int
	loaded  map[string]*runner
	loads   int
	foreign int64 // bytes of the device that other programs have
}

func newScheduler(cfg Config, d *dice) *scheduler {
	return &scheduler{cfg: cfg, dice: d, turn: make(chan struct{}, 1), loaded: map[string]*runner{}}
}

// acquire returns a loaded runner for n, loading and evicting as needed. The caller must call release once.
func (s *scheduler) acquire(ctx context.Context, n need) (r *runner, release func(), err error) {
	s.mu.Lock()
	if r := s.usable(n); r != nil {
		defer s.mu.Unlock()
		return r, s.use(r, n), nil
	}
	if s.waiting >= s.cfg.MaxQueue {
		s.mu.Unlock()
		return nil, nil, errMaxQueue
	}
	s.waiting++
	s.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	s.waiting--
	s.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	defer func() { <-s.turn }()
	return s.load(ctx, n)
}

// usable returns the loaded runner that can serve n as it is. The mutex is held.
func (s *scheduler) usable(n need) *runner {
	if r := s.loaded[n.model.Name]; r != nil && !r.needsReload(n, s.cfg.modern()) {
		return r
	}
	return nil
}

// load makes room and loads; the caller holds the turn.
func (s *scheduler) load(ctx context.Context, n need) (*runner, func(), error) {
	for {
		s.mu.Lock()
		if r := s.usable(n); r != nil {
			release := s.use(r, n)
			s.mu.Unlock()
			return r, release, nil
		}
		victim := s.loaded[n.model.Name]
		var fresh *runner
		var err error
		if victim == nil && len(s.loaded) < s.cfg.MaxLoaded {
			fresh, err = s.fit(n)
		}
		if err != nil {
			s.mu.Unlock()
			return nil, nil, err
		}
		if fresh != nil {
			s.mu.Unlock()
			return s.start(ctx, n, fresh)
		}
		if victim == nil {
			victim = s.victim()
		}
		s.expire(victim)
		s.mu.Unlock()
		select {
		case <-victim.gone:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// start waits as long as the load takes and makes the runner known. A load that the client gives up is undone.
func (s *scheduler) start(ctx context.Context, n need, fresh *runner) (*runner, func(), error) {
	d := s.cfg.LoadLatency
	if s.cfg.LoadSpeed > 0 {
		d += time.Duration(float64(n.model.fileSize()) / float64(s.cfg.LoadSpeed) * float64(time.Second))
	}
	if err := sleep(ctx, d); err != nil {
		return nil, nil, err
	}
	struck, _ := s.dice.roll(loading, n.model.Name, "", "load "+n.model.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if struck.Kind == CPULoad {
		fresh.vram, fresh.slowdown = 0, s.cfg.Slowdown
	}
	s.loaded[n.model.Name] = fresh
	s.loads++
	return fresh, s.use(fresh, n), nil
}

// use counts a request in. Keep-alive is sticky: a request without one leaves it alone, and one with it undoes an
// eviction that waits for this runner. The mutex is held.
func (s *scheduler) use(r *runner, n need) (release func()) {
	r.refs++
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if n.keepAlive != nil {
		r.keepAlive = *n.keepAlive
	}
	return sync.OnceFunc(func() { s.release(r) })
}

func (s *scheduler) release(r *runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.refs--
	switch {
	case r.refs > 0:
	case r.keepAlive <= 0:
		s.unload(r)
	default:
		r.expiresAt = time.Now().Add(r.keepAlive)
		r.timer = time.AfterFunc(r.keepAlive, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if r.refs == 0 && !time.Now().Before(r.expiresAt) {
				s.unload(r)
			}
		})
	}
}

// victim picks what Ollama evicts: the idle runner with the shortest keep-alive, then by name; when all are busy, the
// one with the shortest keep-alive. It is neither the least recently used nor the smallest. The mutex is held.
func (s *scheduler) victim() *runner {
	order := slices.SortedFunc(maps.Values(s.loaded), func(a, b *runner) int {
		return cmp.Or(cmp.Compare(uint64(a.keepAlive), uint64(b.keepAlive)), cmp.Compare(a.model.Name, b.model.Name))
	})
	for _, r := range order {
		if r.refs == 0 {
			return r
		}
	}
	return order[0]
}

// expire unloads an idle runner at once and a busy one when its requests are done. The mutex is held.
func (s *scheduler) expire(r *runner) {
	r.keepAlive, r.expiresAt = 0, time.Now()
	if r.refs == 0 {
		s.unload(r)
	}
}

// unload takes the runner out of the books. The mutex is held; a second call does nothing.
func (s *scheduler) unload(r *runner) {
	if s.loaded[r.model.Name] != r {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	delete(s.loaded, r.model.Name)
	close(r.gone)
}

// expireModel is what keep_alive 0 with an empty prompt does; it does not wait.
func (s *scheduler) expireModel(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.loaded[name]; r != nil {
		s.expire(r)
	}
}

// crash ends runners as a dying runner process does: the memory is free at once, whoever still uses it. With an empty
// name all of them go, as a run-time out-of-memory does from 0.30 on.
func (s *scheduler) crash(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.loaded {
		if name == "" || r.model.Name == name {
			s.unload(r)
		}
	}
}

// fit sizes a runner for n in what is free now. It returns nil when something must be evicted first, and an error when
// not even that helps. With nothing loaded it never asks for more room: what does not fit spills, without a word. The
// mutex is held.
func (s *scheduler) fit(n need) (*runner, error) {
	free, hostFree := s.free()
	r := &runner{need: n, slots: n.model.parallel(s.cfg.Slots), slowdown: 1, gone: make(chan struct{})}
	r.keepAlive = s.cfg.KeepAlive
	if r.keepAlive < 0 {
		r.keepAlive = math.MaxInt64
	}
	r.context = min(n.opts.NumCtx, n.model.Context)
	r.lanes = newLanes(r.slots)
	alone, whole := len(s.loaded) == 0, true
	switch {
	case s.cfg.CPUOnly || n.opts.NumGPU == 0:
		r.size = n.model.footprintOf(r.context, r.slots).total()
	case s.cfg.modern():
		whole = s.sizeModern(r, free, alone)
	default:
		f := n.model.footprintOf(r.context, r.slots)
		layers := 0
		r.size = f.total()
		r.vram, layers = f.onDevice(free, n.opts.NumGPU)
		whole = layers == len(f.layers) || n.opts.NumGPU > 0 && layers >= n.opts.NumGPU
	}
	onHost := r.size - r.vram
	if !alone && (!whole || onHost > hostFree) {
		return nil, nil
	}
	if onHost > hostFree {
		return nil, fmt.Errorf("model requires more system memory (%s) than is available (%s)", gib(onHost), gib(hostFree))
	}
	if !s.cfg.CPUOnly && r.size > 0 {
		r.slowdown = 1 + (s.cfg.Slowdown-1)*float64(onHost)/float64(r.size)
	}
	return r, nil
}

// sizeModern applies the rules of 0.30 and newer (research: scheduling §2.5) and says whether the runner may join what
// is loaded: its prediction must be within 80 % of what is free. A context that nobody set is lowered until it fits.
func (s *scheduler) sizeModern(r *runner, free int64, alone bool) bool {
	predict := func() int64 { return r.model.predictModern(r.context, r.slots, r.opts.NumBatch) }
	for _, lower := range []int{32768, 4096} {
		if alone && !r.ctxSet && predict() > free && r.context > lower {
			r.context = lower
		}
	}
	r.size = predict()
	r.vram = min(r.size, free)
	return float64(r.size) <= 0.8*float64(free)
}

// free returns the bytes that no runner has, on the device and on the host. The mutex is held.
func (s *scheduler) free() (device, host int64) {
	device, host = max(0, int64(s.cfg.Memory)-s.foreign), int64(s.cfg.HostMemory)
	if host == 0 {
		host = math.MaxInt64
	}
	for _, r := range s.loaded {
		device -= r.vram
		host -= r.size - r.vram
	}
	return device, host
}

// close unloads everything and stops the timers.
func (s *scheduler) close() { s.crash("") }

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
