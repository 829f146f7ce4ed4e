package engine

import (
	"context"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
)

const (
	// besidePause is how often what stands beside the events is written at most, while commits follow fast.
	besidePause = time.Second
	// besideLate is when it is written in a commit of its own, when none has come since: a crash costs what is held back. Why a call
	// was placed is then not told, and a result is made anew by a run that would have taken it over.
	besideLate = 30 * time.Second
	// besideMost is how many rows wait for that.
	besideMost = 128
)

// beside is what stands beside the events, and that no replay reads. In each commit it would cost as much as the events do; so it is
// held back while steps follow fast, and is written before anybody looks for it. The engine's loop owns it.
type beside struct {
	decisions []ledger.Decision
	accepted  []ledger.Accepted
	written   time.Time // when some was last
}

func (b *beside) rows() int { return len(b.decisions) + len(b.accepted) }

// next is when what is held back is written without another reason.
func (b *beside) next() time.Time {
	if b.rows() == 0 {
		return time.Time{}
	}
	return b.written.Add(besideLate)
}

// give moves it to a commit.
func (b *beside) give(c *ledger.Commit, now time.Time) {
	c.Decisions, c.Accepted = append(c.Decisions, b.decisions...), append(c.Accepted, b.accepted...)
	*b = beside{written: now}
}

// holdBeside lets the commit have what stands beside the events when it is time, somebody looks for it, or a run has ended.
func (t *turn) holdBeside() {
	b := &t.e.beside
	b.decisions, b.accepted = append(b.decisions, t.commit.Decisions...), append(b.accepted, t.commit.Accepted...)
	t.commit.Decisions, t.commit.Accepted = nil, nil
	due := t.beside || b.rows() >= besideMost || t.now.Sub(b.written) >= besidePause
	for _, a := range t.touched {
		due = due || a.state.Status.Ended()
	}
	if due && b.rows() > 0 {
		b.give(&t.commit, t.now)
	}
}

// showBeside writes what is held back, for somebody who is about to read it.
func (e *Engine) showBeside(ctx context.Context) error {
	_, err := ask(ctx, e, func(t *turn) func() (struct{}, error) {
		t.beside = true
		return reply(struct{}{}, nil)
	})
	return err
}

// keepBeside writes what is held back when the engine ends.
func (e *Engine) keepBeside() {
	if e.Err() != nil || e.beside.rows() == 0 {
		return
	}
	var c ledger.Commit
	e.beside.give(&c, e.clock.now())
	if err := e.o.Store.Append(context.WithoutCancel(e.ctx), c); err != nil {
		e.o.Log.Warn("the last decisions were not written", "err", err)
	}
}
