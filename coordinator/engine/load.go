package engine

import (
	"context"
	"sync"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// load folds a run's events. To read, to decode and to fold them take about as long as each
// other, so that each is done by a goroutine of its own.
func load(ctx context.Context, s ledger.Store, id string) (*run.State, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	rows, events := make(chan result[[]ledger.Event], 1), make(chan result[[]run.Event], 1)
	wg.Go(func() { readPages(ctx, s, id, rows) })
	wg.Go(func() { decodePages(ctx, id, rows, events) })
	st := &run.State{}
	for page := range events {
		if page.err != nil {
			return nil, page.err
		}
		for _, ev := range page.of {
			if err := run.Apply(st, ev); err != nil {
				return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read run %s", id)
			}
		}
	}
	return st, ctx.Err()
}

// result is what a stage hands to the next one; an error is the last.
type result[T any] struct {
	of  T
	err error
}

// hand is false when nobody takes it any more.
func hand[T any](ctx context.Context, to chan<- result[T], of T, err error) bool {
	select {
	case to <- result[T]{of, err}:
		return err == nil
	case <-ctx.Done():
		return false
	}
}

// loadPage is how many events a stage has in memory.
const loadPage = 512

func readPages(ctx context.Context, s ledger.Store, id string, to chan<- result[[]ledger.Event]) {
	defer close(to)
	for after := int64(0); ; {
		page, err := s.Events(ctx, id, after, loadPage)
		if err != nil {
			err = apierr.Wrap(err, apierr.Unavailable, "read run %s", id)
		}
		if !hand(ctx, to, page, err) || len(page) < loadPage {
			return
		}
		after = page[len(page)-1].Seq
	}
}

func decodePages(ctx context.Context, id string, from <-chan result[[]ledger.Event], to chan<- result[[]run.Event]) {
	defer close(to)
	for page := range from {
		out, err := make([]run.Event, 0, len(page.of)), page.err
		for i := 0; i < len(page.of) && err == nil; i++ {
			row := page.of[i]
			var ev run.Event
			if ev, err = run.Decode(row.Seq, row.Time, row.Kind, row.Payload); err != nil {
				err = apierr.Wrap(err, apierr.LedgerTooNew, "read run %s", id).WithNext("update loopkeeper")
			}
			out = append(out, ev)
		}
		if !hand(ctx, to, out, err) {
			return
		}
	}
}
