package modes

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Bounds of a Book.
const (
	most  = 256              // modes kept; the oldest goes first
	again = 10 * time.Minute // between two probes of a mode that is doubted and has been confirmed before
)

// Book holds the modes of one server's models. It is safe for concurrent use.
type Book struct {
	log *slog.Logger

	mu      sync.Mutex
	entries map[key]*entry
	order   []key // as they came
}

type key struct{ version, digest string }

// entry is what is known about one model on one version.
type entry struct {
	mode      Mode
	doubted   bool
	confirmed time.Time // when a probe out of doubt found the same again
	flight    *flight   // the probe under way; nil when there is none
}

// flight is a probe that several calls wait for.
type flight struct {
	done  chan struct{} // closed at its end
	err   error
	ended bool // err is of the caller that probed, and says nothing about the model
}

// NewBook makes an empty book; it logs one line per probe.
func NewBook(log *slog.Logger) *Book {
	return &Book{log: log, entries: map[key]*entry{}}
}

// Lookup returns what is known about a model under a version of the server; it asks nobody.
func (b *Book) Lookup(version, digest string) (Mode, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key{version, digest}]
	if e == nil {
		return Mode{}, false
	}
	return e.mode, e.mode.Known()
}

// Find returns the mode of a model under a version of the server. The first call with a model probes, and the others wait
// for it. learned is what somebody found out before; it is taken where it is about the same version and nothing is known
// here. An error is that of the probe: it could not be found out.
func (b *Book) Find(ctx context.Context, version string, t Target, learned Mode, ask Ask) (Mode, error) {
	k := key{version, t.Digest}
	for {
		e, f, mine := b.enter(k, learned)
		if f == nil {
			return e, nil
		}
		if mine {
			return b.fly(ctx, k, f, t, ask)
		}
		select {
		case <-f.done:
			if f.err != nil && !f.ended {
				return Mode{}, f.err
			}
		case <-ctx.Done():
			return Mode{}, context.Cause(ctx)
		}
	}
}

// enter returns the mode, or the probe to wait for; mine says that the caller has to fly it.
func (b *Book) enter(k key, learned Mode) (m Mode, f *flight, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(k)
	if !e.mode.Known() && learned.Known() && learned.ServerVersion == k.version {
		e.mode = learned
	}
	switch {
	case e.flight != nil:
		return Mode{}, e.flight, false
	case e.mode.Known() && !(e.doubted && time.Since(e.confirmed) >= again):
		return e.mode, nil, false
	}
	e.flight = &flight{done: make(chan struct{})}
	return Mode{}, e.flight, true
}

// entry returns that of k, made where there is none; mu is held. Flights are not forgotten: somebody waits for them.
func (b *Book) entry(k key) *entry {
	if e := b.entries[k]; e != nil {
		return e
	}
	for i := 0; len(b.order) >= most && i < len(b.order); i++ {
		if old := b.order[i]; b.entries[old].flight == nil {
			delete(b.entries, old)
			b.order = append(b.order[:i:i], b.order[i+1:]...)
			break
		}
	}
	e := &entry{}
	b.entries[k], b.order = e, append(b.order, k)
	return e
}

// fly probes and tells those who wait.
func (b *Book) fly(ctx context.Context, k key, f *flight, t Target, ask Ask) (m Mode, err error) {
	start := time.Now()
	landed := false
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		e := b.entry(k)
		e.flight = nil
		switch {
		case !landed: // a panic goes on to who called; the others try for themselves
			f.err, f.ended = context.Canceled, true
		case err != nil:
			f.err, f.ended = err, ctx.Err() != nil
		default:
			if e.confirmed = (time.Time{}); e.doubted && same(e.mode, m) {
				e.confirmed = time.Now()
			}
			e.mode, e.doubted = m, false
		}
		close(f.done)
	}()
	m, err = probe(ctx, t, ask)
	landed = true
	if err != nil {
		b.log.Warn("how to call a model could not be found out", "model", t.Name, "error", err)
		return Mode{}, err
	}
	m.ServerVersion, m.Time = k.version, time.Now()
	b.log.Info("found out how to call a model", "model", t.Name, "endpoint", m.Endpoint, "think", string(m.Think), "field", m.Field,
		"ordered", m.Ordered, "none", m.None, "took", time.Since(start))
	return m, nil
}

// Doubt says that an answer was not what the mode promises. The next Find probes again, but where that found the same a
// short while ago: then the answer was the model's own fault.
func (b *Book) Doubt(version, digest string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[key{version, digest}]; e != nil {
		e.doubted = true
	}
}
