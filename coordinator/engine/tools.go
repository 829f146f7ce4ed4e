package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// onCoordinator is where tools run, in place of a node.
const onCoordinator = "coordinator"

// toolRun is a tool at work. It keeps its place and its resources until it has returned, wanted or not.
type toolRun struct {
	key      string
	run      *active
	id       run.AttemptID
	uses     []string
	external bool // it has an effect
	orphaned bool // its run has ended
	cancel   context.CancelFunc
}

// placeTools starts tools that are ready, while there are places and all their resources are free together. They come after the
// placement of calls, which holds resources, too.
func (t *turn) placeTools() {
	e := t.e
	type waiting struct {
		a  *active
		tk run.Ticket
	}
	var ready []waiting
	for _, a := range e.order {
		tickets, backoff := a.state.ReadyTools(t.now, e.o.MaxTools)
		a.addBackoff(backoff)
		for _, tk := range tickets {
			if a.adopting[tk.Pos] == 0 {
				ready = append(ready, waiting{a, tk})
			}
		}
	}
	slices.SortStableFunc(ready, func(x, y waiting) int {
		return cmp.Or(cmp.Compare(priority(y.a.state.Pinned.Priority), priority(x.a.state.Pinned.Priority)), x.tk.Ready.Compare(y.tk.Ready))
	})
	for _, w := range ready {
		if why := t.toolWaits(w.tk); why.Wait != "" {
			w.a.noteWait(w.tk, scheduler.Decision{Task: w.a.state.Key(w.tk.AttemptID), Why: why})
			continue
		}
		t.startTool(w.a, w.tk)
	}
}

// waitTool is what a tool waits for when all places are taken.
const waitTool scheduler.WaitFor = "tool"

// toolWaits is why a tool cannot start now, without a Wait when it can.
func (t *turn) toolWaits(tk run.Ticket) scheduler.Explanation {
	e := t.e
	if len(e.tools) >= e.o.MaxTools {
		return scheduler.Explanation{Wait: waitTool, Summary: fmt.Sprintf("%d tools run already, which is the limit", e.o.MaxTools)}
	}
	held := e.heldResources()
	for _, name := range tk.Uses {
		l := e.resources.limits[name]
		switch {
		case l.Cap > 0 && held[name] >= l.Cap:
			return scheduler.Explanation{Wait: scheduler.WaitCap, Summary: fmt.Sprintf("%s is held by %d calls, as many as may hold it", name, held[name])}
		case l.Rate > 0 && e.resources.tokens(name, t.now) < 1:
			return scheduler.Explanation{Wait: scheduler.WaitRate, Summary: fmt.Sprintf("%s was taken as often as it may be", name)}
		}
	}
	return scheduler.Explanation{}
}

// startTool gives a tool a place; it acts once that is durable.
func (t *turn) startTool(a *active, tk run.Ticket) {
	e := t.e
	effect, known := EffectNone, false
	if e.o.Tools != nil {
		effect, known = e.o.Tools.Effect(tk.Tool)
	}
	if !known {
		_ = t.execute(a, run.Reject{Pos: tk.Pos, Item: tk.Item, Failure: run.Failure{Kind: "unknown_tool", Advice: run.Never,
			Message: fmt.Sprintf("there is no tool %q", tk.Tool), Next: []string{"loopkeeper tools"}}}) // logged there
		return
	}
	if t.held(a, tk) {
		return
	}
	external := effect != EffectNone
	_ = t.execute(a, run.Place{AttemptID: tk.AttemptID, Node: onCoordinator, External: external, Why: "tools run there"}) // logged there
	if !a.state.Flying(tk.AttemptID) {
		return
	}
	e.resources.taken(tk.Uses, t.now)
	t.runTool(a, tk.AttemptID, tk.Uses, external)
}

// held says whether a call may not act now: it is refused, or a person is asked first.
func (t *turn) held(a *active, tk run.Ticket) bool {
	call, err := toolCall(a.state, tk.AttemptID)
	if err != nil {
		return false // it fails as a call that cannot be made
	}
	switch ruling := t.e.o.Rule(call); {
	case ruling.Refuse != nil:
		_ = t.execute(a, run.Reject{Pos: tk.Pos, Item: tk.Item, Failure: *ruling.Refuse}) // logged there
	case ruling.Ask != nil && !tk.Permitted:
		_ = t.execute(a, run.Ask{Pos: tk.Pos, Item: tk.Item, Question: *ruling.Ask}) // logged there
	default:
		return false
	}
	return true
}

// runTool lets a tool that has a place act, after the commit.
func (t *turn) runTool(a *active, id run.AttemptID, uses []string, external bool) {
	e := t.e
	ctx, cancel := context.WithCancel(e.ctx)
	c := &toolRun{key: a.state.Key(id), run: a, id: id, uses: uses, external: external, cancel: cancel}
	e.tools[c.key] = c
	call, err := toolCall(a.state, id)
	t.then(func() {
		e.wg.Go(func() {
			defer cancel()
			var out ToolOutcome
			if err == nil {
				out, err = e.o.Tools.Run(ctx, call)
			}
			e.inbox.put(func(t *turn) { t.toolEnded(c, call, out, err) })
		})
	})
}

// toolCall is what an attempt asks of a tool.
func toolCall(s *run.State, id run.AttemptID) (ToolCall, error) {
	call, err := s.Call(id)
	if err != nil {
		return ToolCall{}, err
	}
	var ask struct {
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(call.Request, &ask); err != nil {
		return ToolCall{}, err
	}
	if ask.Input == nil {
		ask.Input = json.RawMessage("{}")
	}
	return ToolCall{Key: s.Key(id), Tool: ask.Name, Input: ask.Input}, nil
}

// toolEnded takes in how a tool ended. What is not known of one with an effect is looked for, once.
func (t *turn) toolEnded(c *toolRun, call ToolCall, out ToolOutcome, err error) {
	e := t.e
	delete(e.tools, c.key)
	t.place = true
	if e.ctx.Err() != nil {
		return // the next life finds it in flight
	}
	if err != nil {
		out.Failure = &run.Failure{Kind: "tool_failed", Message: fmt.Sprintf("%s: %v", call.Tool, err), Advice: run.Again}
		if c.external {
			out.Failure.Kind = run.KindUnknown
		}
	}
	f, bodies := finishTool(call, out)
	f.AttemptID = c.id
	t.store(bodies)
	if c.orphaned {
		_ = t.execute(c.run, run.Late{Finish: f}) // logged there
		return
	}
	_ = t.execute(c.run, f) // logged there
	t.lookAt(c.run, c.id.Pos, c.id.Item)
}

// finishTool is a tool's outcome as the end of an attempt: facts of before and after are its evidence.
func finishTool(call ToolCall, out ToolOutcome) (run.Finish, []ledger.Body) {
	var bodies []ledger.Body
	keep := func(name string, v any) string {
		body, err := canonical(v)
		if err != nil {
			body = []byte("null") // facts that are no JSON say nothing
		}
		bodies = append(bodies, ledger.Body{Name: name, Data: body})
		return ledger.Digest(body)
	}
	f := run.Finish{Failure: out.Failure, Evidence: run.Evidence{Node: onCoordinator}}
	f.Prompt = keep("tool call", struct {
		Before json.RawMessage `json:"before,omitempty"`
		Input  json.RawMessage `json:"input"`
		Key    string          `json:"key"`
		Tool   string          `json:"tool"`
	}{out.Before, call.Input, call.Key, call.Tool})
	f.Raw = keep("tool outcome", struct {
		After   json.RawMessage `json:"after,omitempty"`
		Failure *Failure        `json:"failure,omitempty"`
		Value   json.RawMessage `json:"value,omitempty"`
	}{out.After, out.Failure, out.Value})
	switch {
	case out.Failure != nil:
	case out.Value == nil:
		f.Result = run.Content{Value: json.RawMessage("null")}
	case !json.Valid(out.Value):
		f.Failure = &run.Failure{Kind: run.KindBadVerdict, Message: call.Tool + ": its value is not JSON", Advice: run.Never}
	case len(out.Value) <= inlineLimit:
		f.Result = run.Content{Value: out.Value}
	default:
		bodies = append(bodies, ledger.Body{Name: "value", Data: out.Value})
		f.Result = run.Content{Ref: ledger.Digest(out.Value), Bytes: int64(len(out.Value))}
	}
	return f, bodies
}

// look is a tool's look at what became of a write of its own. Until it is over no person is asked.
type look struct {
	underWay bool
	saw      string // that did not settle it
}

// lookTime is how long a tool may look: it opens a file or asks a service once.
const lookTime = time.Minute

// lookAt asks a tool whether a write happened whose outcome is unknown. When it cannot say, a person has to.
func (t *turn) lookAt(a *active, pos, item int) {
	e := t.e
	st := a.state.Step(pos)
	if e.o.Tools == nil || st == nil || item >= len(st.Items) || st.Items[item].Status != run.StepUnknown || a.state.Status.Ended() {
		return
	}
	id := run.AttemptID{Pos: pos, Item: item, Phase: run.Work, Number: st.Items[item].Sent[0]}
	call, err := toolCall(a.state, id)
	if err != nil || id.Number == 0 {
		return
	}
	a.looks[pos] = look{underWay: true}
	t.then(func() {
		e.wg.Go(func() {
			ctx, cancel := context.WithTimeout(e.ctx, lookTime)
			defer cancel()
			got, err := e.o.Tools.Check(ctx, call)
			e.inbox.put(func(t *turn) { t.looked(a, id, call, got, err) })
		})
	})
}

// looked takes in what a tool saw of an earlier write.
func (t *turn) looked(a *active, id run.AttemptID, call ToolCall, got ToolChecked, err error) {
	if t.e.ctx.Err() != nil || a.state.Status.Ended() {
		return
	}
	cmd := run.Resolve{Pos: id.Pos, Item: id.Item, By: call.Tool, Comment: got.Why}
	a.looks[id.Pos] = look{saw: got.Why}
	t.touch(a)
	switch {
	case err != nil:
		a.looks[id.Pos] = look{saw: "it could not: " + err.Error()}
		t.e.o.Log.Warn("a tool could not look at what it did", "tool", call.Tool, "call", call.Key, "err", err)
		return
	case got.State == ToolDone && got.Outcome != nil && got.Outcome.Failure == nil:
		f, bodies := finishTool(call, *got.Outcome)
		if f.Failure != nil {
			return
		}
		t.store(bodies)
		cmd.Happened, cmd.Result = true, f.Result
	case got.State == ToolNotDone, got.State == ToolDone: // done with a failure: it was refused, and nothing happened
	default:
		return
	}
	delete(a.looks, id.Pos)
	_ = t.execute(a, cmd) // logged there
}

// recoverTools takes up what tools were doing when the last life ended: one without an effect runs again, of another nobody knows
// whether it acted before somebody has looked.
func (t *turn) recoverTools(a *active) {
	var flights []run.Flight
	for f := range a.state.Flights {
		if f.Node == onCoordinator {
			flights = append(flights, *f)
		}
	}
	for _, f := range flights {
		if !f.External && t.e.o.Tools != nil {
			t.runTool(a, f.AttemptID, a.state.Step(f.Pos).Uses(), false)
			continue
		}
		why := run.Failure{Kind: run.KindUnknown, Message: "the coordinator stopped while it ran", Advice: run.Again}
		_ = t.execute(a, run.Finish{AttemptID: f.AttemptID, Evidence: run.Evidence{Node: onCoordinator}, Failure: &why}) // logged there
	}
	for st := range a.state.Open {
		if st.Status == run.StepUnknown {
			t.lookAt(a, st.Pos, 0)
		}
	}
}
