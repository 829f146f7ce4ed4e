package engine

import (
	"context"
	"time"
)

// viewInterval is the least time between two views of a run for its watchers: people see no more, and a view costs as much
// as the run has steps. The last view of a run does not wait.
const viewInterval = 100 * time.Millisecond

// watcher is one reader of a run's views. The loop alone sends; the newest view replaces one that was not read.
type watcher struct {
	views chan View // capacity 1: the newest
	stop  func() bool
}

func (w *watcher) offer(v View) {
	select {
	case <-w.views:
	default:
	}
	w.views <- v // there is room: nobody else sends
}

func (w *watcher) close() {
	w.stop()
	close(w.views)
}

// Watch returns a channel that holds the newest view: one at once, one after every change, the last when the run has
// ended, whereupon it is closed. A slow reader misses views, never the newest. It ends with ctx, too.
func (e *Engine) Watch(ctx context.Context, id string) (<-chan View, error) {
	id, err := e.Resolve(ctx, id)
	if err != nil {
		return nil, err
	}
	w := &watcher{views: make(chan View, 1), stop: func() bool { return true }}
	live, err := ask(ctx, e, func(*turn) func() (bool, error) {
		a := e.runs[id]
		return func() (bool, error) {
			if a == nil {
				return false, nil
			}
			a.watchers[w] = struct{}{}
			w.offer(e.view(a))
			w.stop = context.AfterFunc(ctx, func() { e.inbox.put(func(*turn) { a.unwatch(w) }) })
			return true, nil
		}
	})
	if err != nil || live {
		return w.views, err
	}
	v, err := e.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	w.offer(v)
	close(w.views)
	return w.views, nil
}

func (a *active) unwatch(w *watcher) {
	if _, ok := a.watchers[w]; ok {
		delete(a.watchers, w)
		w.close()
	}
}

// refresh has every run shown again that has attempts on a node: what is known of the node is part of the view.
func (e *Engine) refresh() {
	for _, a := range e.order {
		a.stale = a.stale || a.state.InFlight() > 0
	}
}

// publish shows the newest views of what changed, each run at most once per viewInterval.
func (e *Engine) publish(now time.Time) {
	for _, a := range e.order {
		if a.stale && now.Sub(a.shown) >= viewInterval {
			e.show(a, now)
		}
	}
}

func (e *Engine) show(a *active, now time.Time) {
	a.stale, a.shown = false, now
	if len(a.watchers) == 0 {
		return
	}
	v := e.view(a)
	for w := range a.watchers {
		w.offer(v)
	}
}

// closeWatchers ends every watch when the engine does.
func (e *Engine) closeWatchers() {
	for _, a := range e.order {
		for w := range a.watchers {
			w.close()
		}
		clear(a.watchers)
	}
}
