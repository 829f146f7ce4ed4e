package cli

import (
	"context"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// collector fetches the items of a run's first batch and hands them to a sink, each once, in input order, as they become
// final.
type collector struct {
	c    *client
	run  string
	sink sink
	next int32 // index of the first item that was not handed out
	seen int64 // items that had ended when it last asked
}

// page is how many items are fetched at a time.
const page = 100

// advance hands out what a view says has become final.
func (k *collector) advance(ctx context.Context, v *coordinatorv1.Run) error {
	if k == nil {
		return nil
	}
	ended := v.GetItems().GetSucceeded() + v.GetItems().GetFailed() + v.GetItems().GetCancelled()
	if ended == k.seen || !hasBatch(v) {
		return nil
	}
	k.seen = ended
	return k.fetch(ctx, false)
}

// rest hands out the items that are left when the run has ended, whatever their state.
func (k *collector) rest(ctx context.Context, v *coordinatorv1.Run) error {
	if k == nil || !hasBatch(v) {
		return nil
	}
	return k.fetch(ctx, true)
}

// got is how many items were handed out.
func (k *collector) got() int {
	if k == nil {
		return 0
	}
	return int(k.next)
}

// batchTotal is how many items the first batch of a run has; 0 while that is unknown.
func batchTotal(v *coordinatorv1.Run) int64 {
	for _, s := range ui.Calls(v) {
		if s.GetKind() == "batch" {
			return s.GetItems().GetTotal()
		}
	}
	return 0
}

func hasBatch(v *coordinatorv1.Run) bool {
	for _, s := range ui.Calls(v) {
		if s.GetKind() == "batch" {
			return true
		}
	}
	return false
}

func (k *collector) fetch(ctx context.Context, all bool) error {
	for {
		r, err := k.c.GetItems(ctx, &coordinatorv1.GetItemsRequest{RunId: k.run, From: k.next, Limit: page})
		if err != nil {
			return err
		}
		until := r.GetFinalPrefix()
		if all {
			until = r.GetTotal()
		}
		began := k.next
		for _, i := range r.GetItems() {
			if i.GetIndex() != k.next || i.GetIndex() >= until {
				break
			}
			if err := k.sink.put(i); err != nil {
				return err
			}
			k.next++
		}
		if k.next == began || k.next >= until {
			return nil
		}
	}
}
