package probe

import (
	"context"
	"iter"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// Update is what Watch saw.
type Update struct {
	Began   time.Time // when the probe began: what happened before is in the report
	Report  hwprobe.Report
	Changes []hwprobe.Change // since the last update; against nothing in the first one
}

// Watch probes until ctx ends or the caller breaks off, and yields after each probe. It probes at once, then at an interval
// that is short while numbers move or Busy says so and long when nothing happens, at once after Poke, and at once after the
// machine was suspended. It runs in the caller's goroutine: the time that the caller takes counts towards the interval.
func (p *Prober) Watch(ctx context.Context) iter.Seq[Update] {
	return func(yield func(Update) bool) {
		var last hwprobe.Report
		var resumed []hwprobe.Change
		pace := pace{}
		for begin := p.instant(); ; begin = p.instant() {
			spent := p.spent.total()
			report := p.Probe(ctx)
			if ctx.Err() != nil {
				return
			}
			interval := pace.next(p.isBusy() || moved(last, report), p.spent.total()-spent)
			update := Update{Began: begin.mono, Report: report, Changes: append(resumed, hwprobe.Changes(last, report)...)}
			last, resumed = report, nil
			if !yield(update) {
				return
			}
			slept, ok := p.wait(ctx, begin, interval)
			if !ok {
				return
			}
			if slept > 0 {
				resumed = []hwprobe.Change{{Kind: hwprobe.Resumed, To: slept.Round(time.Second).String()}}
				pace.interval = 0
			}
		}
	}
}

// Poke has Watch probe now. It never blocks.
func (p *Prober) Poke() {
	select {
	case p.poke <- struct{}{}:
	default: // one is wished for already
	}
}

// Busy tells Watch whether the machine is being used, so that numbers move.
func (p *Prober) Busy(busy bool) {
	p.busyMu.Lock()
	changed := p.busy != busy
	p.busy = busy
	p.busyMu.Unlock()
	if changed && busy {
		p.Poke()
	}
}

func (p *Prober) isBusy() bool {
	p.busyMu.Lock()
	defer p.busyMu.Unlock()
	return p.busy
}

// instant is a moment on both clocks.
type instant struct {
	wall time.Time // without its monotonic part
	mono time.Time
}

func now() instant {
	t := time.Now()
	return instant{wall: t.Round(0), mono: t}
}

const (
	// waitStep is how long Watch sleeps at once. A timer stands still while the machine is suspended, so a long one would end
	// long after the machine runs again.
	waitStep = 2 * time.Second
	// leastSuspension tells a suspension from a clock that is set right by a little.
	leastSuspension = 5 * time.Second
)

// wait returns when the interval since begin is over, the caller pokes, or the machine was suspended since, with for how long.
// ok is false when ctx has ended.
func (p *Prober) wait(ctx context.Context, begin instant, interval time.Duration) (suspended time.Duration, ok bool) {
	for last := begin; ; last = p.instant() {
		before := p.instant()
		left := interval - before.mono.Sub(begin.mono)
		step := time.NewTimer(max(0, min(left, waitStep)))
		poked := false
		select {
		case <-ctx.Done():
			step.Stop()
			return 0, false
		case <-p.poke:
			step.Stop()
			poked = true
		case <-step.C:
		}
		if gap := standstill(last, before, p.instant()); gap > leastSuspension {
			return gap, true
		}
		if poked || left <= waitStep {
			return 0, true
		}
	}
}

// standstill is how long the machine was suspended. The monotonic clock stands still then on Linux and macOS, and the wall clock
// jumps ahead of it; on Windows both go on, and the step of waiting that began at before ends late.
func standstill(last, before, after instant) time.Duration {
	return max(after.wall.Sub(last.wall)-after.mono.Sub(last.mono), after.mono.Sub(before.mono)-waitStep)
}
