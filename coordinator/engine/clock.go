package engine

import (
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// timeline is the engine's time: the machine's at the start, and from then on what has passed, so that a clock that is set back stops
// nothing. One that jumps ahead (it was set, or the machine slept) is followed by noteJump. Two clocks differ by seconds all the time.
type timeline struct {
	wall  func() time.Time
	base  time.Time // of the ledger's kind: UTC, without a monotonic part
	began time.Time // with one
}

const (
	// jumpLeast is what a clock must be ahead to have jumped.
	jumpLeast = 5 * time.Second
	// clockLook is how long the engine sleeps at most while something waits for a time of day: its alarm stands still while the
	// machine sleeps, and knows nothing of a clock that was set. It looks at the clock, and at nothing else.
	clockLook = time.Minute
)

func newTimeline(wall func() time.Time) *timeline {
	if wall == nil {
		wall = time.Now
	}
	return &timeline{wall: wall, base: wall().UTC().Round(0), began: time.Now()}
}

// now is the time as the ledger keeps it, so that live and recovered states are equal.
func (c *timeline) now() time.Time { return c.base.Add(time.Since(c.began)) }

// jump is how far the machine's clock is ahead, 0 for nothing to speak of.
func (c *timeline) jump() time.Duration {
	if d := c.wall().Sub(c.now()).Round(0); d >= jumpLeast {
		return d
	}
	return 0
}

// noteJump follows a clock that has jumped ahead. What waits for a time of day is due then; but no run has worked meanwhile, so
// those that are active are parked over the jump, and their books say so.
func (t *turn) noteJump() {
	e := t.e
	d := e.clock.jump()
	if d == 0 {
		return
	}
	var over []*active
	for _, a := range e.order {
		if a.state.Status == run.Running && a.state.Budget() > 0 {
			over = append(over, a)
			_ = t.execute(a, run.Suspend{By: clockPerson, Reason: fmt.Sprintf("the clock went ahead by %s", d.Round(time.Second))}) // logged there
		}
	}
	e.o.Log.Info("the clock went ahead; active time does not count it", "by", d.Round(time.Second), "runs", len(over))
	e.clock.base = e.clock.base.Add(d)
	t.now = e.clock.now()
	for _, a := range over {
		_ = t.execute(a, run.Resume{By: clockPerson}) // logged there
	}
}

// clockPerson is who parks a run over a jump.
const clockPerson = "the clock"
