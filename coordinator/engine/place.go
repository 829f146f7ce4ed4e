package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// wait is why a step's items are not placed, as of the last placement.
type wait struct {
	why     scheduler.Explanation
	subject string // key of the attempt it was said of
	item    int    // of that attempt
	backoff int    // items whose backoff has not ended
}

// candidate is a waiting item that a task of a snapshot stands for.
type candidate struct {
	run    *active
	ticket run.Ticket
}

// waiting lists what could start now, oldest first, with a candidate for each key, and what is in backoff. It changes nothing.
func (e *Engine) waiting(now time.Time, nodes []scheduler.Node) ([]scheduler.Task, map[string]candidate, map[*active]run.Backoff) {
	tasks := make([]scheduler.Task, 0, e.waited)
	candidates, backoffs := make(map[string]candidate, e.waited), map[*active]run.Backoff{}
	contexts, window := e.contexts(nodes, now), e.window(nodes)
	for _, a := range e.order {
		tickets, backoff := a.state.Ready(now, window(a))
		backoffs[a] = backoff
		for _, tk := range tickets {
			if a.adopting[tk.Pos] > 0 {
				continue
			}
			key := a.state.Key(tk.AttemptID)
			candidates[key] = candidate{a, tk}
			contexts.want(a.uses(tk.Model), tk.Context)
			tasks = append(tasks, e.task(a, key, tk))
		}
	}
	e.waited = len(tasks)
	for i := range tasks {
		tasks[i].Context = contexts.of(tasks[i].Model)
	}
	slices.SortStableFunc(tasks, func(a, b scheduler.Task) int { return a.Ready.Compare(b.Ready) })
	return tasks, candidates, backoffs
}

// task is a waiting attempt as the scheduler sees it, but for its context.
func (e *Engine) task(a *active, key string, tk run.Ticket) scheduler.Task {
	model := a.uses(tk.Model)
	return scheduler.Task{Key: key, Run: a.state.Pinned.ID, Model: model, Digest: a.state.Digests[tk.Model], Ready: tk.Ready, Avoid: tk.Avoid, Embed: tk.Embed,
		Priority: priority(a.state.Pinned.Priority), Weight: a.state.Pinned.Weight, Work: scheduler.Work(tk.Effort), Affinity: tk.Affinity,
		Resources: e.resources.of(tk.Uses, model)}
}

// uses is the model that a run uses where its script asks for one.
func (a *active) uses(model string) string {
	return cmp.Or(a.state.Pinned.Models[model], a.instead[model], model)
}

func priority(p run.Priority) scheduler.Priority {
	switch p {
	case run.Interactive:
		return scheduler.PriorityInteractive
	case run.Batch:
		return scheduler.PriorityBatch
	default:
		return scheduler.PriorityNormal
	}
}

// snapshot is what a placement sees.
func (e *Engine) snapshot(now time.Time, nodes []scheduler.Node, tasks []scheduler.Task, shown map[string]candidate) scheduler.Snapshot {
	return scheduler.Snapshot{Now: now, Nodes: nodes, Waiting: tasks, Resources: e.resources.snapshot(e.heldResources(), e.behind(shown), now),
		Received: e.received.snapshot(now)}
}

// noteBackoff starts a placement's notes of what waits with what waits for time alone.
func (a *active) noteBackoff(b run.Backoff) {
	a.retry = b.Next
	clear(a.waits)
	for pos, n := range b.Items {
		a.waits[pos] = wait{backoff: n}
	}
}

// addBackoff adds to them.
func (a *active) addBackoff(b run.Backoff) {
	a.retry = earliest(a.retry, b.Next)
	for pos, n := range b.Items {
		a.waits[pos] = wait{backoff: n}
	}
}

// shown is how many items of one model a snapshot shows at least, over all steps that ask for it: as many as a load may be worth
// beginning for (the scheduler's sums grow no more from there). Were it only what could start soon, a machine would stay empty beside
// hundreds that wait; were it all of every step, a decision would cost what waits in all runs.
const shown = 500

// window says how many items of each step and phase of a run a snapshot shows: more than could start at once, and not all that wait.
func (e *Engine) window(nodes []scheduler.Node) func(*active) int {
	least := 8
	for _, n := range nodes {
		least += 4 * max(1, n.Slots)
	}
	steps := map[string]int{} // that wait, by model
	for _, a := range e.order {
		for model := range a.models {
			steps[model]++
		}
	}
	return func(a *active) int {
		most := least
		for model := range a.models {
			most = max(most, (shown+steps[model]-1)/steps[model])
		}
		return most
	}
}

// models are those that a run's open steps ask for.
func (a *active) models(yield func(model string) bool) {
	for _, st := range a.state.Requests {
		if st.Counts.Waiting > 0 && st.Model != "" && !yield(tagged(a.uses(st.First()))) {
			return
		}
	}
}

// placeAttempts asks the scheduler once and carries out what it decides.
func (t *turn) placeAttempts() {
	e := t.e
	maps.DeleteFunc(e.orphans, func(_ string, o orphan) bool { return t.now.Sub(o.since) > orphanAge })
	nodes := e.nodes(t.now)
	t.noteVanished(nodes)
	tasks, candidates, backoffs := e.waiting(t.now, nodes)
	for a, b := range backoffs {
		a.noteBackoff(b)
	}
	for _, d := range e.o.Place(e.snapshot(t.now, nodes, tasks, candidates)).Decisions {
		c, known := candidates[d.Task]
		t.carryOut(d, c, known)
	}
	t.placeTools()
	t.tend(nodes, tasks)
	e.countBusy()
}

// carryOut does what the scheduler decided; known says that the task is one that waits.
func (t *turn) carryOut(d scheduler.Decision, c candidate, known bool) {
	e := t.e
	switch d.Action {
	case scheduler.Load:
		if !e.moves.begin(d, t.now) {
			return
		}
		t.then(func() { e.dispatch.Load(d.Node, d) })
	case scheduler.Unload:
		if !e.moves.begin(d, t.now) {
			return
		}
		t.then(func() { e.dispatch.Unload(d.Node, d) })
	case scheduler.Start:
		if !known || !e.circuits.Start(d.Node, d.Digest, t.now) {
			return // of a node that failed a moment ago one call is let through to see
		}
		t.start(c, d)
	case scheduler.Impossible, scheduler.Wait:
		if !known {
			return
		}
		if kind := hopeless(d); kind != "" && !t.mayAppear(c.run) {
			t.reject(c, d, kind)
		} else {
			c.run.noteWait(c.ticket, d)
		}
	}
	if known {
		t.recordDecision(c.run, c.ticket.Pos, c.ticket.Item, d)
	}
}

// noteWait keeps what a step's items wait for, for views.
func (a *active) noteWait(tk run.Ticket, d scheduler.Decision) {
	w := a.waits[tk.Pos]
	w.why, w.subject, w.item = d.Why, d.Task, tk.Item
	a.waits[tk.Pos] = w
	a.stale = true
}

// hopeless is the failure kind of an attempt that waiting does not help: its model fits nowhere, or machines are up and
// none that could hold it has it.
func hopeless(d scheduler.Decision) string {
	switch {
	case d.Action == scheduler.Impossible:
		return run.KindCannotFit
	case d.Why.Wait == scheduler.WaitModel:
		return run.KindModelMissing
	default:
		return ""
	}
}

// grace says that the engine started so recently that nodes may be missing that it knew before.
func (t *turn) grace() bool { return t.now.Sub(t.e.started) < t.e.o.ReattachGrace }

// freshGrace is how long after a start a run of this life waits for machines that may still appear. It was submitted to the
// fleet as it is, so it does not wait as long for what an earlier life knew.
const freshGrace = 3 * time.Second

// mayAppear says that a machine may be about to appear that the run could use.
func (t *turn) mayAppear(a *active) bool {
	fresh := !a.state.Born.Before(t.e.started)
	return t.grace() && !(fresh && t.now.Sub(t.e.started) >= freshGrace)
}

func (t *turn) start(c candidate, d scheduler.Decision) {
	e, s := t.e, c.run.state
	if began := s.Digests[c.ticket.Model]; began != "" && began != d.Digest {
		t.then(e.placeAgain) // a call that this plan started before it settled which model of the name the run uses
		return
	}
	id := c.ticket.AttemptID
	before := s.InFlight()
	cmd := run.Place{AttemptID: id, Node: d.Node, Model: d.Model, Digest: d.Digest, Context: d.Context, Why: d.Why.Summary}
	if err := t.execute(c.run, cmd); err != nil || s.InFlight() == before {
		return
	}
	placed := s.Requests[id.Pos].Items[id.Item].Flight
	f := newFlight(c.run, placed)
	f.sent, f.effort, f.uses = true, c.ticket.Effort, e.resources.of(c.ticket.Uses, c.run.uses(c.ticket.Model))
	e.flights[f.key] = f
	e.moves.used(f.node, f.digest, t.now)
	e.moves.of(f.node).warmed(f.digest, c.ticket.Affinity)
	e.resources.taken(f.uses, t.now)
	e.share(f)
	t.send(f)
}

// share notes how many calls run on a model at once.
func (e *Engine) share(f *flight) {
	var beside []*flight
	for _, o := range e.flights {
		if o.node == f.node && o.digest == f.digest {
			beside = append(beside, o)
		}
	}
	for _, o := range beside {
		o.shared = max(o.shared, len(beside))
	}
}

func newFlight(a *active, p *run.Flight) *flight {
	return &flight{key: a.state.Key(p.AttemptID), run: a, id: p.AttemptID, node: p.Node, model: p.Model, digest: p.Digest, try: p.Try,
		context: p.Context, seed: p.Seed, since: p.Since, begun: p.Begun}
}

// send lets an attempt out after the commit.
func (t *turn) send(f *flight) {
	s := f.run.state
	call, err := s.Call(f.id)
	if err != nil { // the request was checked when it became a step
		cause := &run.Failure{Kind: run.KindCannotSend, Message: err.Error(), Advice: run.Never}
		t.then(func() { t.e.Finished(Result{Key: f.key, Failure: cause}) })
		return
	}
	a := Attempt{Line: call.Line, Key: f.key, RunID: s.Pinned.ID, Step: f.id.Pos, Item: f.id.Item, Number: f.id.Number, Try: f.try, Node: f.node,
		Kind: CallKind(call.Kind), Model: f.model, Digest: f.digest, Context: f.context, Seed: f.seed,
		Request: call.Request, Body: call.Body, Feedback: call.Feedback, Variation: call.Variation, Prompts: s.Pinned.Prompts}
	t.then(func() { t.e.dispatch.Send(a) })
}

// reject ends an item that no machine can take. A later turn takes the next ones of its step.
func (t *turn) reject(c candidate, d scheduler.Decision, kind string) {
	next := []string{"loopkeeper explain " + c.ticket.Model, "choose a smaller model or a shorter context"}
	if kind == run.KindModelMissing {
		next = []string{"loopkeeper models pull " + c.ticket.Model + " --everywhere", "loopkeeper models"}
		if !strings.Contains(c.ticket.Model, ":") {
			next = append(next, fmt.Sprintf("if %s is a role, say under roles: in the settings which models play it; runs that begin after that have it", c.ticket.Model))
		}
	}
	failure := run.Failure{Kind: kind, Message: d.Why.Summary, Advice: run.Never, Next: next}
	_ = t.execute(c.run, run.Reject{Pos: c.ticket.Pos, Item: c.ticket.Item, Failure: failure}) // logged there
	t.then(t.e.placeAgain)
}

// placeAgain asks for another placement in a turn of its own.
func (e *Engine) placeAgain() { e.inbox.put(func(t *turn) { t.place = true }) }

// resend gives attempts from before a restart back to their nodes, which joins them to the calls that still run or fetches
// the results that were kept. When the grace is over the rest goes elsewhere.
func (t *turn) resend() {
	e := t.e
	up := map[string]bool{}
	var waiting []*flight
	for _, f := range e.sortedFlights() {
		if !f.sent {
			waiting = append(waiting, f)
		}
	}
	if len(waiting) == 0 {
		return
	}
	for _, n := range e.fleet.Nodes() {
		up[n.ID] = n.State == scheduler.NodeUp || n.State == scheduler.NodeDraining
	}
	for _, f := range waiting {
		switch {
		case up[f.node]:
			f.sent = true
			t.send(f)
		case !t.grace():
			t.lose(f, "the node did not come back after the coordinator's restart")
		}
	}
}

// countBusy publishes the attempts in flight by node.
func (e *Engine) countBusy() {
	busy := map[string]int{}
	for _, f := range e.flights {
		busy[f.node]++
	}
	e.busy.Store(&busy)
}

// setAlarm wakes the loop when time alone changes something.
func (e *Engine) setAlarm(now time.Time) {
	var at, timer time.Time
	for _, a := range e.order {
		at = earliest(earliest(at, a.retry), a.state.Deadline())
		timer = earliest(timer, a.state.NextTimer())
		if a.stale && len(a.watchers) > 0 {
			at = earliest(at, a.shown.Add(viewInterval))
		}
	}
	for _, n := range e.moves.nodes {
		at = earliest(at, n.next(now))
	}
	at = earliest(at, e.circuits.Next(now))
	at = earliest(at, e.resources.next(now))
	at = earliest(at, e.nextUse(now))
	at = earliest(at, e.tendAt)
	at = earliest(at, e.beside.next())
	for _, v := range e.moves.gone {
		at = earliest(at, v.at.Add(guessAfter))
	}
	for _, grace := range []time.Duration{freshGrace, e.o.ReattachGrace} {
		if end := e.started.Add(grace); now.Before(end) && len(e.order) > 0 {
			at = earliest(at, end)
		}
	}
	for _, since := range e.missing {
		at = earliest(at, since.Add(e.o.ReattachGrace))
	}
	if !timer.IsZero() {
		at = earliest(at, earliest(timer, now.Add(clockLook)))
	}
	if at.IsZero() {
		e.alarm.Stop()
		return
	}
	e.alarm.Reset(max(0, at.Sub(now)))
}
