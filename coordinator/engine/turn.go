package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// turn is one round of the loop: commands are decided and applied in memory, then all their events become durable in one
// commit, and only then do effects leave. When the commit fails the memory is thrown away with the engine.
type turn struct {
	e       *Engine
	now     time.Time
	place   bool // something changed that placement depends on
	beside  bool // somebody looks for what stands beside the events
	commit  ledger.Commit
	touched []*active
	bodies  map[string]bool // digests in commit.Bodies
	effects []func()
}

// then adds an effect, to be let out after the commit.
func (t *turn) then(effect func()) { t.effects = append(t.effects, effect) }

// execute carries out a command on a run. A stale command does nothing and is no error.
func (t *turn) execute(a *active, cmd run.Command) error {
	events, err := run.Execute(a.state, cmd, t.now)
	if errors.Is(err, run.ErrStale) {
		return nil
	}
	if err != nil {
		t.e.o.Log.Error("a command was refused", "run", a.state.Pinned.ID, "command", fmt.Sprintf("%T", cmd), "err", err)
		return err
	}
	return t.record(a, events)
}

func (t *turn) record(a *active, events []run.Event) error {
	for _, ev := range events {
		kind, payload, err := run.Encode(ev)
		if err != nil {
			return err
		}
		t.commit.Events = append(t.commit.Events, ledger.Event{RunID: a.state.Pinned.ID, Seq: ev.Seq, Time: ev.Time, Kind: kind, Payload: payload})
		t.accept(a, ev.Data)
	}
	for _, ev := range events {
		if req, ok := ev.Data.(*run.Requested); ok && !req.Note {
			t.requested(a, req.Pos)
		}
	}
	if len(events) > 0 {
		t.place = true
		t.touch(a)
	}
	return nil
}

func (t *turn) touch(a *active) {
	if !a.touched {
		a.touched = true
		t.touched = append(t.touched, a)
	}
}

// store adds bodies to the commit.
func (t *turn) store(bodies []ledger.Body) {
	if t.bodies == nil {
		t.bodies = map[string]bool{}
	}
	for _, b := range bodies {
		if d := ledger.Digest(b.Data); !t.bodies[d] {
			t.bodies[d] = true
			t.commit.Bodies = append(t.commit.Bodies, b)
		}
	}
}

// finish places what can be placed, makes the turn durable and lets its effects out.
func (t *turn) finish() error {
	e := t.e
	t.endPauses()
	t.expire()
	t.hear()
	for _, a := range t.touched {
		t.spawn(a)
	}
	if t.place {
		t.resend()
		t.sweep()
		t.placeAttempts()
	}
	if len(t.commit.Events) > 0 {
		t.noteBegun()
	}
	t.settleEnds() // what a placement has ended
	t.host()
	t.commit.Learned = append(t.commit.Learned, e.moves.rows(t.now)...)
	t.commit.Learned = append(t.commit.Learned, e.facts.rows(t.now, false)...)
	t.holdBeside()
	for _, a := range t.touched {
		row, err := a.row(t.now)
		if err != nil {
			return err
		}
		t.commit.Runs = append(t.commit.Runs, row)
	}
	if !t.commit.Empty() {
		// A commit that has begun is finished even while the engine stops.
		if err := e.o.Store.Append(context.WithoutCancel(e.ctx), t.commit); err != nil {
			return err
		}
	}
	for _, effect := range t.effects {
		effect()
	}
	for _, a := range t.touched {
		a.touched = false
		t.release(a)
	}
	e.publish(t.now)
	e.setAlarm(t.now)
	return nil
}

// hearing is how long a turn waits for scripts to react to its results. They react in microseconds; one that computes longer is
// heard in a later turn.
const hearing = 2 * time.Millisecond

// hear gives the turn's results to their scripts, so that what they ask for next commits together with the results. A script
// has no effects of its own, so nothing leaves by this.
func (t *turn) hear() {
	var timeout <-chan time.Time
	for t.settleEnds(); t.tellScripts(); t.settleEnds() {
		if timeout == nil {
			timeout = time.After(hearing)
		}
		select {
		case <-t.e.inbox.wake:
			for _, m := range t.e.inbox.take() {
				m(t)
			}
		case <-timeout:
			return
		case <-t.e.ctx.Done():
			return
		}
	}
}

// tellScripts hands out results and says whether a script has yet to react to one.
func (t *turn) tellScripts() bool {
	open := false
	for _, a := range t.touched {
		if a.driver != nil && !a.state.Status.Ended() {
			a.deliver(false)
			open = open || a.given > a.heard
		}
	}
	return open
}

// release lets out what a run's new events mean for its script and, at its end, for what it has in flight.
func (t *turn) release(a *active) {
	if a.driver != nil {
		a.deliver(true)
	}
	a.stale = true
	if a.state.Status.Ended() && t.e.runs[a.state.Pinned.ID] == a {
		t.retire(a)
	}
}

// begun events ride with the next commit; nobody waits for them.
func (t *turn) noteBegun() {
	begun := t.e.begun
	t.e.begun = nil
	for _, key := range begun {
		if f := t.e.flights[key]; f != nil {
			_ = t.execute(f.run, run.Begin{AttemptID: f.id}) // refused only when the attempt has ended meanwhile
		}
	}
}

// row is the run's projection for lists.
func (a *active) row(now time.Time) (ledger.RunRow, error) {
	s := a.state
	sum := summarise(s, now)
	if len(a.looks) > 0 {
		sum.Waits = len(waitsOf(s, a.looks))
	}
	summary, err := json.Marshal(sum)
	if err != nil {
		return ledger.RunRow{}, err
	}
	return ledger.RunRow{ID: s.Pinned.ID, Workflow: s.Pinned.Workflow, State: string(s.Status), Created: s.Born, Started: s.Started,
		Ended: s.Ended, Key: s.Pinned.Key, Summary: summary}, nil
}
