package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

const (
	// longestSleep bounds how late a clock that was set, or a machine that slept, is noticed.
	longestSleep = time.Minute
	// firstRetry and lastRetry bound the pause after a store or a submission that failed; it doubles between them.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
)

// entry is one schedule. Its loop decides; whoever changes it takes mu.
type entry struct {
	*Options
	wake chan struct{} // 1: a nudge that is not taken yet counts for later ones too
	over chan struct{} // closed when it was removed

	mu      sync.Mutex
	spec    Spec
	state   State
	saved   []byte    // the state as it is stored
	next    time.Time // when to decide again
	looked  time.Time // the clock when it was last looked at
	reasons []string
	removed bool
	failed  string        // why the last turn did not get on
	retry   time.Duration // how long to wait after it
}

func (r *Runner) newEntry(s stored, data []byte) *entry {
	e := &entry{Options: &r.opts, wake: make(chan struct{}, 1), over: make(chan struct{}), spec: s.Spec, state: s.State}
	e.saved = bytes.Clone(data)
	return e
}

func (e *entry) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// loop decides and acts until it is stopped or removed.
func (e *entry) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.over:
			return
		case <-e.wake:
		case <-timer.C:
			if rest := e.rest(); rest > 0 {
				timer.Reset(rest)
				continue
			}
		}
		timer.Reset(e.turn(ctx))
	}
}

// rest is how long there is still nothing to decide: unless the clock was set back, or the last turn did not get on, until next.
func (e *entry) rest() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Now().Round(0)
	if e.retry > 0 || now.Before(e.looked) || e.next.IsZero() {
		return 0
	}
	e.looked = now
	return min(e.next.Sub(now), longestSleep)
}

// turn gathers facts, decides, stores what was decided and only then acts. It returns how long to sleep.
func (e *entry) turn(ctx context.Context) time.Duration {
	facts, problem := e.gather(ctx)
	e.mu.Lock()
	asked := e.decide(facts)
	e.mu.Unlock()
	if len(asked) > 0 { // reading takes its time, and nobody waits for it
		facts.Hashes = e.Scanner.Hash(ctx, *e.spec.Watch, asked)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(asked) > 0 {
		e.decide(facts)
	}
	err := e.carryOut(ctx)
	if err == nil {
		err = problem
	}
	return e.sleep(ctx, err)
}

// gather asks the world what a decision needs. It holds no lock: a folder may not answer for long.
func (e *entry) gather(ctx context.Context) (facts Facts, problem error) {
	e.mu.Lock()
	watch, looks := e.spec.Watch, e.state.Paused == nil
	var runs []string
	for _, r := range e.state.Running {
		runs = append(runs, r.Run)
	}
	e.mu.Unlock()
	if watch != nil && looks {
		facts.Scan = e.Scanner.Scan(ctx, *watch)
	}
	if len(runs) > 0 {
		facts.Ended, problem = e.Ends(ctx, runs)
	}
	return facts, problem
}

// decide takes a decision into memory and returns the files it asks about. The caller holds mu.
func (e *entry) decide(facts Facts) []string {
	if e.removed {
		return nil
	}
	now := e.Now()
	e.looked = now.Round(0)
	d := Decide(e.spec, e.state, now, facts)
	e.state, e.next, e.reasons = d.State, d.Next, d.Reasons
	return d.Hash
}

// carryOut stores the state and does what it says is to be done. The caller holds mu.
func (e *entry) carryOut(ctx context.Context) error {
	if e.removed {
		return nil
	}
	if err := e.save(ctx, e.state); err != nil || e.state.Paused != nil {
		return err
	}
	err := e.act(ctx)
	if serr := e.save(context.WithoutCancel(ctx), e.state); serr != nil {
		return serr
	}
	return err
}

// act cancels and submits, and notes what was done.
func (e *entry) act(ctx context.Context) error {
	for len(e.state.Cancel) > 0 {
		if err := e.Cancel(ctx, e.state.Cancel[0]); err != nil {
			return apierr.Wrap(err, apierr.Internal, "cancel the run %s", e.state.Cancel[0])
		}
		e.state.Cancel = slices.Delete(e.state.Cancel, 0, 1)
	}
	for len(e.state.Outbox) > 0 {
		f := e.state.Outbox[0]
		run, err := e.Submit(ctx, e.spec, f)
		if err != nil {
			if final(err) {
				e.Logger.Warn("a schedule is paused", "schedule", e.spec.Name, "error", err)
				e.state = e.state.Pause(e.Now(), "loopkeeper", "it cannot be started: "+err.Error())
				return nil
			}
			return apierr.Wrap(err, apierr.Internal, "submit")
		}
		e.Logger.Info("a schedule has started a run", "schedule", e.spec.Name, "run", run, "key", f.Key)
		e.state.Outbox = slices.Delete(e.state.Outbox, 0, 1)
		e.state.Running = append(e.state.Running, Started{Key: f.Key, Run: run, At: e.Now().Round(0).UTC()})
	}
	return nil
}

// final says that the same submission would fail again.
func final(err error) bool {
	return slices.Contains([]apierr.Code{apierr.InvalidArgument, apierr.NotFound, apierr.Conflict}, apierr.CodeOf(err))
}

// sleep says how long, and remembers what hindered the turn.
func (e *entry) sleep(ctx context.Context, err error) time.Duration {
	if err != nil && ctx.Err() == nil {
		e.retry = min(max(2*e.retry, firstRetry), lastRetry)
		e.failed = err.Error()
		e.Logger.Warn("a schedule does not get on", "schedule", e.spec.Name, "error", err, "again_in", e.retry)
		if e.spec.Watch == nil && !e.next.IsZero() { // a time that comes meanwhile is not to be taken for missed
			return min(e.retry, max(e.next.Sub(e.Now().Round(0)), firstRetry))
		}
		return e.retry
	}
	e.retry, e.failed = 0, ""
	if e.next.IsZero() {
		return longestSleep
	}
	return min(max(e.next.Sub(e.Now().Round(0)), 0), longestSleep)
}

// save stores the state where it has changed. The caller holds mu, or nobody else knows the entry yet.
func (e *entry) save(ctx context.Context, state State) error {
	data, err := json.Marshal(stored{e.spec, state})
	if err != nil {
		return apierr.Wrap(err, apierr.Internal, "store the schedule %s", e.spec.Name)
	}
	if bytes.Equal(data, e.saved) {
		return nil
	}
	if err := e.Store.SaveSchedule(ctx, e.spec.Name, data); err != nil {
		return apierr.Wrap(err, apierr.Internal, "store the schedule %s", e.spec.Name)
	}
	e.saved = data
	return nil
}

func (e *entry) change(ctx context.Context, change func(State) State) (View, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := Complete(e.spec); err != nil {
		return View{}, apierr.Wrap(err, apierr.InvalidArgument, "the schedule %s is not usable", e.spec.Name).WithNext("loopkeeper schedule remove " + e.spec.Name)
	}
	changed := change(e.state)
	if err := e.save(ctx, changed); err != nil {
		return View{}, err
	}
	e.state = changed
	e.decide(Facts{})
	e.nudge()
	return e.shown(), nil
}

func (e *entry) remove(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removed {
		return unknown(e.spec.Name)
	}
	if err := e.Store.DeleteSchedule(ctx, e.spec.Name); err != nil {
		return apierr.Wrap(err, apierr.Internal, "remove the schedule %s", e.spec.Name)
	}
	e.removed = true
	close(e.over)
	return nil
}

func (e *entry) view() View {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shown()
}

func (e *entry) shown() View {
	state := e.state
	state.Known = nil
	v := View{Spec: e.spec, State: state.clone(), Files: len(e.state.Known), Next: e.next, Reasons: slices.Clone(e.reasons)}
	if e.failed != "" {
		v.Reasons = append(v.Reasons, e.failed)
	}
	return v
}
