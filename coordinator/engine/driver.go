package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// driver is the one goroutine that owns a run's script. It first replays what the ledger has, comparing every request, and
// then goes on live: deliveries in, requests out. What it needs of the run's state it is given; it never reads it.
type driver struct {
	e        *Engine
	a        *active // an identity for messages to the loop, not to be read here
	pinned   run.Created
	cancel   context.CancelFunc
	box      *mailbox[delivery]
	recorded []run.Request // what the script asked for before, by position
	reads    []run.Request // of these, the reads without an answer
	replay   []delivery    // what it was given before

	session script.Session
	next    int // position of the next request
}

// delivery is a step's end on its way to the script or, with read set, a read that the driver is to answer: what it may be of
// is durable by now.
type delivery struct {
	pos  int
	time time.Time
	run.Settled
	read *run.Request
}

// maxCrashes is how often a run's script host may die before that counts as the script's doing.
const maxCrashes = 2

// drive gives a run's script a host.
func (e *Engine) drive(a *active) {
	if a.state.Status.Ended() || a.driver != nil {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	d := &driver{e: e, a: a, pinned: a.state.Pinned, cancel: cancel, box: newMailbox[delivery]()}
	for _, st := range a.state.Requests {
		r := run.Request{Pos: st.Pos, Kind: st.Kind, Body: st.Body, Note: st.Note}
		d.recorded = append(d.recorded, r)
		if st.Kind == run.KindRead && !st.Status.Ended() {
			d.reads = append(d.reads, r)
		}
	}
	for _, m := range a.state.Deliveries {
		d.replay = append(d.replay, a.settled(m))
	}
	a.given, a.heard = len(d.replay), len(d.replay)
	a.driver = d
	e.wg.Go(func() {
		defer cancel()
		err := d.run(ctx)
		e.inbox.put(func(t *turn) { t.driverEnded(a, d, err) })
	})
}

// settled is an ended step as a delivery.
func (a *active) settled(m run.Delivery) delivery {
	settled, err := a.state.Settle(m.Pos)
	if err != nil { // a value that does not marshal came from a worker as JSON, so this cannot be
		settled = run.Settled{Failure: &run.Failure{Kind: "internal", Message: err.Error(), Advice: run.Never}}
	}
	return delivery{pos: m.Pos, time: m.Time, Settled: settled}
}

// deliver hands new deliveries to the driver, in the order they have in the ledger. Before the turn's commit it stops at one
// whose body may only come with that commit.
func (a *active) deliver(committed bool) {
	for a.given < len(a.state.Deliveries) {
		d := a.settled(a.state.Deliveries[a.given])
		if d.Load != nil && !committed {
			return
		}
		a.given++
		a.driver.box.put(d)
	}
}

// driverEnded is told to the loop when a driver's goroutine ends.
func (t *turn) driverEnded(a *active, d *driver, err error) {
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
	a.crashes++
	t.e.o.Log.Warn("a script host ended unexpectedly", "run", a.state.Pinned.ID, "times", a.crashes, "err", err)
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
	program, err := d.program(ctx)
	if err != nil {
		return err
	}
	session, y, err := d.e.o.Host.Start(ctx, script.Start{
		Program: program, Input: d.pinned.Input, Seed: d.pinned.Seed, Clock: d.pinned.Clock,
	})
	if err != nil {
		return d.broke(err)
	}
	defer session.Close()
	d.session = session
	if ended, err := d.catchUp(ctx, y); ended || err != nil {
		return d.broke(err)
	}
	for _, r := range d.reads {
		d.answer(ctx, r)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.box.wake:
		}
		batch := d.box.take()
		if ended, err := d.feed(ctx, batch, script.Yield{}); ended || err != nil {
			return d.broke(err)
		}
		heard := 0
		for _, b := range batch {
			if b.read == nil {
				heard++
			}
		}
		d.e.inbox.put(func(*turn) { d.a.heard += heard })
	}
}

// broke tells a failure of the script, which ends the run, from one of its host, which is tried again.
func (d *driver) broke(err error) error {
	var f *script.Failure
	if !errors.As(err, &f) || f.Kind == script.Crashed {
		return err
	}
	d.tell(nil, &run.ScriptEnd{Error: scriptError(f)})
	return nil
}

// catchUp replays the recorded deliveries. Then every recorded request must have been made again.
func (d *driver) catchUp(ctx context.Context, first script.Yield) (ended bool, err error) {
	ended, err = d.feed(ctx, d.replay, first)
	if err == nil && d.next < len(d.recorded) {
		got := "nothing more"
		if ended {
			got = "the end of the script"
		}
		return ended, d.diverged(got)
	}
	d.replay = nil
	return ended, err
}

// feed gives the script deliveries, checks what it asks for against the record, and tells the loop what is new.
func (d *driver) feed(ctx context.Context, deliveries []delivery, first script.Yield) (ended bool, err error) {
	fresh, end, err := d.check(first)
	for _, next := range deliveries {
		if err != nil || end != nil {
			break
		}
		if next.read != nil {
			d.answer(ctx, *next.read)
			continue
		}
		var y script.Yield
		if y, err = d.deliver(ctx, next); err != nil {
			return false, err
		}
		var more []run.Request
		more, end, err = d.check(y)
		fresh = append(fresh, more...)
	}
	if err != nil {
		return false, err
	}
	if end != nil && d.next < len(d.recorded) {
		return true, nil // catchUp says what is missing
	}
	d.tell(fresh, end)
	return end != nil, nil
}

// tell hands the loop what the script asked for.
func (d *driver) tell(requests []run.Request, end *run.ScriptEnd) {
	if len(requests) == 0 && end == nil {
		return
	}
	a := d.a
	d.e.inbox.put(func(t *turn) {
		if err := t.execute(a, run.Yield{Requests: requests, End: end}); err != nil {
			_ = t.execute(a, run.Yield{End: &run.ScriptEnd{Error: scriptError(err)}}) // logged there
		}
		for i, r := range requests {
			if r.Kind == run.KindRead && !r.Note {
				t.then(func() { d.box.put(delivery{read: &requests[i]}) })
			}
		}
	})
}

// check compares a yield's requests with the recorded ones and returns those beyond them.
func (d *driver) check(y script.Yield) (fresh []run.Request, end *run.ScriptEnd, err error) {
	for _, r := range y.Requests {
		if d.next < len(d.recorded) {
			old := d.recorded[d.next]
			if script.Compare(script.Request{Pos: old.Pos, Kind: old.Kind, Body: old.Body, Note: old.Note}, r) != nil || old.Note != r.Note {
				return nil, nil, d.diverged(show(r.Kind, r.Body))
			}
		} else {
			fresh = append(fresh, run.Request{Pos: r.Pos, Kind: r.Kind, Body: r.Body, Note: r.Note})
		}
		d.next++
	}
	switch {
	case y.End == nil:
	case y.End.Failure == nil:
		end = &run.ScriptEnd{}
	case y.End.Failure.Kind == script.Crashed: // its host's doing: tried again
		return nil, nil, y.End.Failure
	default:
		end = &run.ScriptEnd{Error: scriptError(y.End.Failure)}
	}
	return fresh, end, nil
}

func (d *driver) diverged(got string) error {
	old := d.recorded[d.next]
	return &divergence{Pos: old.Pos, Expected: show(old.Kind, old.Body), Got: got}
}

// show is a request for people, cut where it gets long.
func show(kind string, body json.RawMessage) string {
	const limit = 300
	if len(body) > limit {
		return kind + " " + strings.ToValidUTF8(string(body[:limit]), "") + "…"
	}
	return kind + " " + string(body)
}

// deliver settles one request of the script.
func (d *driver) deliver(ctx context.Context, n delivery) (script.Yield, error) {
	out := script.Delivery{Pos: n.pos, Time: n.time, Value: n.Value}
	switch {
	case n.Failure != nil:
		out.Err = &script.CallError{Kind: n.Failure.Kind, Message: n.Failure.Message, Step: n.pos}
	case n.Load != nil:
		body, err := d.e.body(ctx, n.Load.Ref)
		if err != nil {
			return script.Yield{}, fmt.Errorf("open the result of step %d: %w", n.pos, err)
		}
		out.Value = body
		if n.Load.Text {
			if out.Value, err = json.Marshal(strings.ToValidUTF8(string(body), "\uFFFD")); err != nil {
				return script.Yield{}, err
			}
		}
	}
	return d.session.Deliver(ctx, out)
}

// answer settles a read: the ledger has the body or not.
func (d *driver) answer(ctx context.Context, r run.Request) {
	var req struct{ Ref string }
	_ = json.Unmarshal(r.Body, &req) // a request that does not parse has failed already, and the answer is stale
	cmd := run.Answer{Pos: r.Pos}
	has, err := d.e.o.Store.HasArtifact(ctx, req.Ref)
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
	if ctx.Err() != nil {
		return
	}
	a := d.a
	d.e.inbox.put(func(t *turn) { _ = t.execute(a, cmd) }) // logged there
}

// program reads the run's pinned script.
func (d *driver) program(ctx context.Context) (p script.Program, err error) {
	p.Name = d.pinned.Program
	if p.Code, err = d.e.body(ctx, d.pinned.Script); err == nil && d.pinned.SourceMap != "" {
		p.SourceMap, err = d.e.body(ctx, d.pinned.SourceMap)
	}
	if err != nil {
		return p, fmt.Errorf("open the script: %w", err)
	}
	return p, nil
}

// body reads a whole artifact.
func (e *Engine) body(ctx context.Context, sha string) ([]byte, error) {
	r, _, err := e.o.Store.OpenArtifact(ctx, sha)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
