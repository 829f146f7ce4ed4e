package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// driver is the one goroutine that owns a run's script. It first replays what the ledger has, comparing everything that the script does,
// and then goes on live: deliveries in, requests and answers out.
type driver struct {
	player
	a      *active // an identity for messages to the loop, not to be read here
	pinned run.Created
	behind int // deliveries from before it began
	cancel context.CancelFunc
	box    *mailbox[delivery]

	// What follows belongs to the loop.
	live bool // it has caught up
	held bool // it has had its host for as long as others have to wait for it
}

// maxCrashes is how often a run's script host may die before that counts as the script's doing.
const maxCrashes = 2

// drive gives a run's script a host.
func (e *Engine) drive(a *active) {
	if a.state.Status.Ended() || a.driver != nil {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	d := &driver{a: a, pinned: a.state.Pinned, behind: len(a.state.Deliveries), cancel: cancel, box: newMailbox[delivery]()}
	d.player = player{e: e, id: a.id, record: newRecord(a.state), with: d.onLoop}
	for st := range a.state.Open {
		if st.Kind == run.KindRead && !st.Note {
			e.answer(a, st.Pos, st.Body)
		}
	}
	a.given, a.heard, a.quiet = d.behind, d.behind, -1
	a.driver = d
	e.hosts.live[d] = true
	e.wg.Go(func() {
		defer cancel()
		err := d.run(ctx)
		e.inbox.put(func(t *turn) { t.driverEnded(a, d, err) })
	})
}

// onLoop runs f where the run's state may be read.
func (d *driver) onLoop(ctx context.Context, f func(*run.State)) error {
	done := make(chan struct{})
	d.e.inbox.put(func(*turn) {
		f(d.a.state)
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver hands new deliveries to the driver, in the order they have in the ledger. Before the turn's commit it stops at one
// whose body may only come with that commit.
func (a *active) deliver(committed bool) {
	for a.given < len(a.state.Deliveries) {
		d := settled(a.state, a.state.Deliveries[a.given])
		if !committed && !d.durable() {
			return
		}
		a.given++
		a.driver.box.put(d)
	}
}

// driverEnded is told to the loop when a driver's goroutine ends.
func (t *turn) driverEnded(a *active, d *driver, err error) {
	delete(t.e.hosts.live, d)
	if a.driver != d {
		return
	}
	a.driver = nil
	t.place = true
	if err == nil || a.state.Status.Ended() || t.e.ctx.Err() != nil {
		return
	}
	var diverged *divergence
	if errors.As(err, &diverged) {
		_ = t.execute(a, run.Diverge{Divergence: run.Divergence(*diverged)}) // logged there
		return
	}
	var f *script.Failure
	switch {
	case errors.As(err, &f) && f.Kind == script.Incompatible: // nothing is wrong with it
		a.quiet = len(a.state.Deliveries)
		_ = t.execute(a, run.Suspend{By: "loopkeeper", Reason: f.Message}) // logged there
		return
	case apierr.CodeOf(err) == apierr.IncompatibleVersion: // the program's file was replaced under the coordinator
		a.quiet = len(a.state.Deliveries)
		t.e.o.Log.Error("a script cannot go on in this process", "run", a.id, "err", err)
		return
	}
	a.crashes++
	t.e.o.Log.Warn("a script host ended unexpectedly", "run", a.id, "times", a.crashes, "err", err)
	if a.crashes > maxCrashes { // else the next turn's host rebuilds it by replay
		_ = t.execute(a, run.Yield{End: &run.ScriptEnd{Error: scriptError(err)}}) // logged there
	}
}

func scriptError(err error) *run.Error {
	var f *script.Failure
	if !errors.As(err, &f) {
		return &run.Error{Kind: string(script.Crashed), Message: err.Error()}
	}
	return &run.Error{Kind: string(f.Kind), Message: f.Message, File: f.File, Line: f.Line, Column: f.Column, Stack: f.Stack}
}

type divergence run.Divergence

func (d *divergence) Error() string {
	return fmt.Sprintf("the replay diverged at position %d: expected %s, got %s", d.Pos, d.Expected, d.Got)
}

// run drives the script until it ends, ctx does, or something breaks.
func (d *driver) run(ctx context.Context) error {
	defer d.close()
	began := time.Now()
	out, err := d.catchUp(ctx, d.pinned, d.behind)
	if err != nil {
		return d.broke(err)
	}
	if err := d.tell(ctx, out, 0); err != nil || out.end != nil {
		return err
	}
	d.requests = nil // compared to the last
	return d.follow(ctx, time.Since(began))
}

// follow gives the script what comes, as it comes. caught is how long a replay takes.
func (d *driver) follow(ctx context.Context, caught time.Duration) error {
	slice := time.AfterFunc(max(leastSlice, sliceShare*caught), func() { d.e.inbox.put(func(*turn) { d.held = true }) })
	defer slice.Stop()
	d.e.inbox.put(func(*turn) { d.live = true })
	rest := max(leastRest, restShare*caught)
	idle := time.NewTimer(rest)
	defer idle.Stop()
	for heard := d.behind; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			d.e.inbox.put(func(t *turn) { t.rest(d, heard) })
			continue
		case <-d.box.wake:
		}
		var out reaction
		n, err := d.feed(ctx, d.box.take(), &out)
		if err != nil {
			return d.broke(err)
		}
		if err := d.tell(ctx, out, n); err != nil || out.end != nil {
			return err
		}
		heard += n
		idle.Reset(rest)
	}
}

// broke tells a failure of the script, which ends the run, from one of its host, which is tried again.
func (d *driver) broke(err error) error {
	var f *script.Failure
	if !errors.As(err, &f) || f.Kind == script.Crashed || f.Kind == script.Incompatible {
		return err
	}
	return d.tell(context.Background(), reaction{end: &run.ScriptEnd{Error: scriptError(f)}}, 0)
}

// tell hands the loop what the script did, having heard so many deliveries more.
func (d *driver) tell(ctx context.Context, out reaction, heard int) error {
	rejects := out.failed
	for i := range out.requests {
		bad, err := d.e.lines(ctx, &out.requests[i])
		if err != nil {
			return err
		}
		rejects = append(rejects, bad...)
		refuseSchema(&out.requests[i])
	}
	a := d.a
	d.e.inbox.put(func(t *turn) {
		a.heard += heard
		t.yielded(a, run.Yield{Checks: out.checks, Requests: out.requests, End: out.end})
		now := min(len(rejects), takeAtOnce)
		for _, r := range rejects[:now] {
			_ = t.execute(a, r) // logged there
		}
	})
	for at := takeAtOnce; at < len(rejects); at += takeAtOnce {
		some := rejects[at:min(at+takeAtOnce, len(rejects))]
		d.e.inbox.put(func(t *turn) {
			for _, r := range some {
				_ = t.execute(a, r) // logged there
			}
		})
	}
	return nil
}

// yielded records what a script did.
func (t *turn) yielded(a *active, y run.Yield) {
	if len(y.Requests) == 0 && len(y.Checks) == 0 && y.End == nil {
		return
	}
	if err := t.execute(a, y); err != nil {
		_ = t.execute(a, run.Yield{End: &run.ScriptEnd{Error: scriptError(err)}}) // logged there
		return
	}
	for _, r := range y.Requests {
		if r.Kind == run.KindRead && !r.Note {
			t.then(func() { t.e.answer(a, r.Pos, r.Body) })
		}
	}
}

// answer settles a read, once what it may be of is durable: the ledger has the body or not.
func (e *Engine) answer(a *active, pos int, body json.RawMessage) {
	e.wg.Go(func() {
		var req struct{ Ref string }
		_ = json.Unmarshal(body, &req) // a request that does not parse has failed already, and the answer is stale
		cmd := run.Answer{Pos: pos}
		has, err := e.o.Store.HasArtifact(e.ctx, req.Ref)
		switch {
		case apierr.CodeOf(err) == apierr.InvalidArgument:
			cmd.Failure = &run.Failure{Kind: run.KindBadRequest, Message: err.Error(), Advice: run.Never}
		case err != nil:
			cmd.Failure = &run.Failure{Kind: "read_failed", Message: err.Error(), Advice: run.Again}
		case !has:
			cmd.Failure = &run.Failure{Kind: "missing_artifact", Message: "no artifact is named " + req.Ref, Advice: run.Never}
		default:
			cmd.Result = run.Content{Ref: req.Ref, Text: true}
		}
		if e.ctx.Err() == nil {
			e.inbox.put(func(t *turn) { _ = t.execute(a, cmd) }) // logged there
		}
	})
}

// program reads a run's pinned script.
func (e *Engine) program(ctx context.Context, pinned run.Created) (p script.Program, err error) {
	p.Name = pinned.Program
	if p.Code, err = e.body(ctx, pinned.Script); err == nil && pinned.SourceMap != "" {
		p.SourceMap, err = e.body(ctx, pinned.SourceMap)
	}
	if err != nil {
		return p, apierr.Wrap(err, apierr.CodeOf(err), "open the script")
	}
	return p, nil
}
