package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

const (
	// inUseFor is how long after the last call or move the hardware is looked at often: as long as models of ours stay in memory
	// without being used, the coordinator may want to make room, and needs to know what is free.
	inUseFor = 10 * time.Minute
	// changesKept is how many changes of the hardware a report tells.
	changesKept = 16
)

// machine is the hardware as last seen. One goroutine looks, at the prober's pace; who needs newer numbers has it look and waits.
type machine struct {
	prober *probe.Prober
	log    *slog.Logger
	news   chan struct{} // something changed that must not wait for the next report; capacity one

	mu      sync.Mutex
	last    probe.Update       // Began is zero before the first look
	changes []*workerv1.Change // oldest first
	newer   chan struct{}      // closed at the next look
	used    time.Time          // when somebody last used the machine
}

func newMachine(p *probe.Prober, log *slog.Logger) *machine {
	return &machine{prober: p, log: log, news: make(chan struct{}, 1), newer: make(chan struct{})}
}

func (h *machine) watch(ctx context.Context) {
	for u := range h.prober.Watch(ctx) {
		h.take(u)
	}
}

// take keeps what was seen. In the first look everything is new, which is no change; it is news for who gave up waiting for it.
func (h *machine) take(u probe.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.last.Began.IsZero()
	if !first {
		for _, c := range u.Changes {
			told := change(c)
			h.changes = append(h.changes, told)
			h.log.Info("the hardware changed", "kind", told.GetKind(), "device", told.GetDevice(), "text", told.GetText())
		}
		h.changes = h.changes[max(0, len(h.changes)-changesKept):]
	}
	h.last = u
	close(h.newer)
	h.newer = make(chan struct{})
	if first || len(u.Changes) > 0 {
		select {
		case h.news <- struct{}{}:
		default: // one look tells all of them
		}
	}
}

// newest is the report of the last look; false before the first.
func (h *machine) newest(context.Context) (hwprobe.Report, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.Report, !h.last.Began.IsZero()
}

// first waits for the first look, which may have to start a driver.
func (h *machine) first(ctx context.Context) (hwprobe.Report, bool) {
	r, ok := h.await(ctx, time.Time{})
	if ok {
		<-h.news // of the first look, which is told now
	}
	return r, ok
}

// fresh has the machine looked at now, and returns what was seen; false, with the newest there is, when that takes too long.
func (h *machine) fresh(ctx context.Context) (hwprobe.Report, bool) {
	since := time.Now()
	h.prober.Poke()
	return h.await(ctx, since)
}

// await waits for a look that began at since or later.
func (h *machine) await(ctx context.Context, since time.Time) (hwprobe.Report, bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		h.mu.Lock()
		last, newer := h.last, h.newer
		h.mu.Unlock()
		if !last.Began.IsZero() && !last.Began.Before(since) {
			return last.Report, true
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return last.Report, false
		}
	}
}

// use says that somebody uses the machine, so that numbers move.
func (h *machine) use() {
	h.mu.Lock()
	h.used = time.Now()
	h.mu.Unlock()
	h.prober.Busy(true)
}

// rest lets the looks become rare when nobody has used the machine for a while.
func (h *machine) rest() {
	h.mu.Lock()
	resting := time.Since(h.used) > inUseFor
	h.mu.Unlock()
	if resting {
		h.prober.Busy(false)
	}
}

// tell puts the hardware into a report. Of a simulated machine only what cannot be mistaken for its own is real.
func (h *machine) tell(r *workerv1.NodeReport) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.Began.IsZero() {
		r.Warnings = append(r.Warnings, &workerv1.Warning{Code: "hardware_pending", Text: "the hardware has not answered yet",
			Next: "wait half a minute, a driver may have to start; then loopkeeper probe on that machine"})
		return
	}
	found := h.last.Report
	r.Host = &workerv1.Host{Hostname: found.Host.Hostname, Os: found.Host.OS, Cpu: found.Host.CPU, Cores: int32(found.Host.Cores)}
	if raw, err := json.Marshal(found); err == nil { // a report is plain values: it always marshals
		r.ProbeJson = raw
	}
	for _, w := range found.Warnings {
		r.Warnings = append(r.Warnings, &workerv1.Warning{Code: string(w.Code), Text: w.Message, Next: w.Next})
	}
	r.Changes = append(r.Changes, h.changes...)
	if !r.Simulated {
		r.Probed = timestamppb.New(h.last.Began)
		hardware(found, r)
	}
}
