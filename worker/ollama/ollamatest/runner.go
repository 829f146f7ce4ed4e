package ollamatest

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/ollama/ollama/api"
)

// need is what a request asks of the runner that serves it.
type need struct {
	model     Model
	opts      api.Runner     // as sent: num_ctx is not clamped to the trained context, just as in Ollama
	ctxSet    bool           // the client or the Modelfile set num_ctx
	shift     bool           // matters for 0.30 and newer only
	keepAlive *time.Duration // nil = leave it as it is
}

// runner is a loaded model. The scheduler's mutex guards it, but for the lanes.
type runner struct {
	need
	slots      int
	context    int   // tokens per slot, clamped to the trained context
	size, vram int64 // bytes in all, and on the device
	slowdown   float64
	keepAlive  time.Duration
	refs       int
	expiresAt  time.Time
	timer      *time.Timer
	gone       chan struct{} // closed when it is unloaded
	lanes      *lanes
}

// needsReload says whether a request cannot use the runner as it is (research: scheduling §2.1 point 3, §2.5).
func (r *runner) needsReload(n need, modern bool) bool {
	have, want := r.opts, n.opts
	if want.NumGPU < 0 {
		have.NumGPU, want.NumGPU = -1, -1
	}
	if modern {
		if !n.ctxSet {
			have.NumCtx, want.NumCtx = 0, 0
		}
		if r.shift != n.shift {
			return true
		}
	}
	return !reflect.DeepEqual(have, want)
}

// lanes are a runner's slots. Each remembers the prompt it saw last, which is its prefix cache; the first free one is
// taken, so a second conversation spoils the cache of the first (research: judgement §2.3).
type lanes struct {
	free    chan struct{}
	mu      sync.Mutex
	busy    []bool
	prompts []string
}

func newLanes(n int) *lanes {
	return &lanes{free: make(chan struct{}, n), busy: make([]bool, n), prompts: make([]string, n)}
}

// take waits for a slot and returns how many bytes of the prompt its cache already holds.
func (l *lanes) take(ctx context.Context, prompt string) (cached int, release func(), err error) {
	select {
	case l.free <- struct{}{}:
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := 0
	for l.busy[slot] {
		slot++
	}
	l.busy[slot] = true
	old := l.prompts[slot]
	for cached < len(old) && cached < len(prompt) && old[cached] == prompt[cached] {
		cached++
	}
	l.prompts[slot] = prompt
	return cached, func() {
		l.mu.Lock()
		l.busy[slot] = false
		l.mu.Unlock()
		<-l.free
	}, nil
}
