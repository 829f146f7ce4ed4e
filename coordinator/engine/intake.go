package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// inlineLimit is the size in bytes up to which a value stays in its event, where a person and a replay read it at once.
const inlineLimit = 16 << 10

// flight is an attempt in flight.
type flight struct {
	key      string
	run      *active
	id       run.AttemptID
	node     string
	model    string
	digest   string
	context  int
	seed     int64
	try      int
	since    time.Time
	sent     bool // false after a restart, until its node is there
	begun    bool
	progress Progress
	effort   run.Effort
	uses     []string // limited resources that it holds
	shared   int      // calls of ours that ran on its model at once, at most, itself included
}

func (f *flight) holding() holding {
	return holding{Call: scheduler.Call{Run: f.run.state.Pinned.ID, Since: f.since, Work: scheduler.Work(f.effort)},
		node: f.node, digest: f.digest, model: f.model, uses: f.uses}
}

// orphan is an attempt that nobody waits for; what comes back is kept as evidence. Until then it keeps its slot and what else it
// holds: a model reads a prompt to its end whether anybody still wants the answer or not.
type orphan struct {
	holding
	run   *active
	id    run.AttemptID
	since time.Time
}

// orphanAge is how long an orphan's result is waited for.
const orphanAge = 10 * time.Minute

func (t *turn) orphan(f *flight) {
	delete(t.e.flights, f.key)
	t.e.orphans[f.key] = orphan{f.holding(), f.run, f.id, t.now}
	t.e.received.add(f.run.state.Pinned.ID, t.now.Sub(f.since), t.now)
}

// Finished implements Sink.
func (e *Engine) Finished(r Result) {
	finish, bodies := intake(r)
	e.inbox.put(func(t *turn) {
		if f := e.flights[r.Key]; f != nil {
			delete(e.flights, r.Key)
			e.moves.used(f.node, f.digest, t.now)
			e.received.add(f.run.state.Pinned.ID, t.now.Sub(f.since), t.now)
			t.judge(f, r.Report, finish.Failure)
			finish.AttemptID, finish.Node = f.id, f.node
			t.store(bodies)
			_ = t.execute(f.run, finish) // logged there
			return
		}
		if o, ok := e.orphans[r.Key]; ok {
			delete(e.orphans, r.Key)
			e.moves.used(o.node, o.digest, t.now)
			t.place = true
			finish.AttemptID, finish.Node = o.id, o.node
			t.keepLate(o, finish, bodies)
		}
	})
}

// intake splits a result into what goes into events and what is stored beside them.
func intake(r Result) (run.Finish, []ledger.Body) {
	var bodies []ledger.Body
	body := func(name, text string) string {
		if text == "" {
			return ""
		}
		bodies = append(bodies, ledger.Body{Name: name, Data: []byte(text)})
		return ledger.Digest([]byte(text))
	}
	f := run.Finish{Failure: r.Failure}
	f.Evidence = run.Evidence{Prompt: body("prompt", r.Prompt), Raw: body("reply", r.Raw), Thinking: body("thinking", r.Thinking), Report: r.Report}
	switch {
	case r.Failure != nil:
		f.Rejected = rejected(r.Value)
	case r.Value == nil:
		f.Result = run.Content{Ref: ledger.Digest([]byte(r.Text)), Bytes: int64(len(r.Text)), Text: true}
		bodies = append(bodies, ledger.Body{Name: "text", Data: []byte(r.Text)})
	case !json.Valid(r.Value):
		f.Failure = &run.Failure{Kind: run.KindBadVerdict, Message: "the worker's value is not JSON", Advice: run.Again}
	case len(r.Value) <= inlineLimit, r.Kind == CallEvaluate, strings.Contains(r.Key, "/"+string(run.Judge)+"/"): // the state machine reads judgements
		f.Result = run.Content{Value: r.Value}
	default:
		f.Result = run.Content{Ref: body("value", string(r.Value)), Bytes: int64(len(r.Value))}
	}
	return f, bodies
}

// maxRejected bounds the plan that a repair is asked for with, and each list of its faults; a plan within the bounds of its schema is smaller.
const maxRejected = 64 << 10

// rejected reads the plan that a failed call gave, nil when it gave none.
func rejected(value json.RawMessage) *run.RejectedPlan {
	var was struct {
		Rejected json.RawMessage `json:"rejected"`
		Reasons  []string        `json:"reasons"`
	}
	if len(value) > maxRejected || json.Unmarshal(value, &was) != nil || len(was.Rejected) == 0 || len(was.Reasons) == 0 {
		return nil
	}
	return &run.RejectedPlan{Plan: was.Rejected, Reasons: was.Reasons}
}

// keepLate records what came back too late, when there is something to keep.
func (t *turn) keepLate(o orphan, f run.Finish, bodies []ledger.Body) {
	if f.Result.Empty() && f.Raw == "" {
		return
	}
	t.store(bodies)
	_ = t.execute(o.run, run.Late{Finish: f}) // logged there
}

// Progressed implements Sink.
func (e *Engine) Progressed(p Progress) {
	e.inbox.put(func(t *turn) {
		f := e.flights[p.Key]
		if f == nil {
			return
		}
		f.progress = p
		f.run.stale = true
		if !f.begun && p.Phase != "queued" {
			f.begun = true
			e.begun = append(e.begun, f.key)
		}
	})
}

// Moved implements Sink.
func (e *Engine) Moved(node string, m Move) {
	e.inbox.put(func(t *turn) {
		t.place = true
		if m.Err != nil {
			e.noteFailedMove(node, m)
			e.noteLoadEnding(node, m, t.now)
		}
		if !e.moves.ended(node, m, t.now) || m.Action != scheduler.Load {
			return
		}
		if m.Err != nil {
			t.failedThere(node, m.Digest, m.Model, "load_failed", "load at "+t.now.String())
			return
		}
		if n, known := e.roster()[node]; known {
			e.limitsOf(&n).fill(&n)
			t.verifyLoad(n, m)
		}
	})
}

// noteFailedMove logs a load or unload that failed. One that fails again and again is an incident, and told once.
func (e *Engine) noteFailedMove(node string, m Move) {
	level := slog.LevelWarn
	if m.Action == scheduler.Unload && e.moves.of(node).stuck[m.Digest].times > unloadPauses {
		level = slog.LevelDebug
	}
	e.o.Log.Log(context.Background(), level, fmt.Sprintf("the %s of %s failed", m.Action, m.Model), "node", node, "err", m.Err)
}

// judge takes in what a call's end says of its node.
func (t *turn) judge(f *flight, r Report, failure *run.Failure) {
	e := t.e
	if failure == nil {
		e.circuits.Succeeded(f.node, f.digest)
		t.verifyCall(f, r)
		return
	}
	e.noteEnding(f, failure, t.now)
	if failure.Kind == run.KindOutOfMemory {
		e.moves.avoid(f.node, f.digest, t.now.Add(failedAvoid))
	}
	item := f.id
	item.Number = 0
	t.failedThere(f.node, f.digest, f.model, failure.Kind, fmt.Sprint(f.run.state.Pinned.ID, item))
}

// failedThere counts a failure against a node or a model on it, which may keep calls away for a while.
func (t *turn) failedThere(node, digest, model, kind, what string) {
	e := t.e
	s, opened := e.circuits.Failed(node, digest, kind, what, t.now)
	if !opened {
		return
	}
	until, _, _ := e.circuits.Open(s, t.now)
	subject, name := "every call", e.roster().name(node)
	if s.Digest != "" {
		subject = model
	}
	t.incident(node, IncidentOpened, model, fmt.Sprintf("%s is kept away from %s for %s: calls there failed in a row (%s)", subject, name,
		until.Sub(t.now).Round(time.Second), kind))
}

// Reported notes that a node reported what cannot be. It does not wait.
func (e *Engine) Reported(node, text string) {
	e.inbox.put(func(t *turn) {
		t.incident(node, IncidentReport, "", fmt.Sprintf("a report of %s makes no sense: %s", e.roster().name(node), text))
	})
}

// Lost implements Sink.
func (e *Engine) Lost(node string) {
	e.inbox.put(func(t *turn) {
		e.moves.lost(node)
		t.place = true
		for _, f := range e.sortedFlights() {
			// An attempt from before a restart has its grace: its node may not have been seen yet.
			if f.node == node && f.sent {
				t.lose(f, "the node is gone")
			}
		}
	})
}

// lose gives an attempt up, for another node to take its item. Dispatch is told: were the node back a moment later, it
// would join the attempt again beside the one that took its place.
func (t *turn) lose(f *flight, why string) { t.giveUp(f, run.KindNodeLost, why) }

func (t *turn) giveUp(f *flight, kind, why string) {
	t.orphan(f)
	t.then(func() { t.e.dispatch.Cancel(f.node, f.key) })
	cause := &run.Failure{Kind: kind, Message: why, Advice: run.OtherNode, Next: []string{"loopkeeper nodes " + f.node}}
	_ = t.execute(f.run, run.Finish{AttemptID: f.id, Evidence: run.Evidence{Node: f.node}, Failure: cause}) // logged there
}
