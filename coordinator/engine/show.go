package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// summary is the part of a view that lists show; a run's row carries it.
type summary struct {
	Error        string     `json:"error,omitempty"`
	Items        run.Counts `json:"items"`
	Coverage     float64    `json:"coverage"`
	PromptTokens int64      `json:"prompt_tokens,omitempty"`
	OutputTokens int64      `json:"output_tokens,omitempty"`
	Calls        int64      `json:"calls,omitempty"`
	Simulated    bool       `json:"simulated,omitempty"`
	Script       string     `json:"script"`
	Seed         int64      `json:"seed"`
	Outputs      []string   `json:"outputs,omitempty"`
	CancelReason string     `json:"cancel_reason,omitempty"`

	Priority run.Priority `json:"priority,omitempty"`
	Weight   float64      `json:"weight,omitempty"`

	Active   int64  `json:"active,omitempty"` // nanoseconds
	Waits    int    `json:"waits,omitempty"`
	Parent   string `json:"parent,omitempty"`
	Base     string `json:"base,omitempty"`
	ParkedBy string `json:"parked_by,omitempty"`
	ByCode   int    `json:"by_code,omitempty"`
	BuiltIn  bool   `json:"built_in,omitempty"`
	Handled  int    `json:"handled,omitempty"`
}

func summarise(s *run.State, now time.Time) summary {
	out := summary{Items: s.Counts, Coverage: s.Counts.Coverage(), PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens,
		Calls: s.Calls, Simulated: s.Simulated, Script: s.Pinned.Script, Seed: s.Pinned.Seed, BuiltIn: s.Pinned.BuiltIn,
		Priority: s.Pinned.Priority, Weight: s.Pinned.Weight, Active: int64(s.Active(now))}
	if s.Status == run.Suspended {
		out.ParkedBy = s.Reason
	} else {
		out.CancelReason = s.Reason
	}
	if p := s.Pinned.Parent; p != nil {
		out.Parent = p.Run
	}
	if b := s.Pinned.Base; b != nil {
		out.Base = b.Run
	}
	out.Waits = len(waitsOf(s, nil))
	out.Error, _ = endError(s)
	if s.End != nil {
		out.Handled = handledItems(s)
		if s.End.Acceptance != nil {
			out.ByCode = s.End.Acceptance.ByCode
		}
	}
	for _, o := range s.Outputs {
		out.Outputs = append(out.Outputs, o.Name)
	}
	return out
}

// handledItems counts the failed items that do not count against an ended run.
func handledItems(s *run.State) (n int) {
	if s.Counts.Failed == 0 {
		return 0
	}
	forgiven := s.Forgiven()
	for _, st := range s.Requests {
		for _, i := range st.Failed {
			if forgiven(st.Pos, i) {
				n++
			}
		}
	}
	return n
}

// listView is the view of a row.
func listView(r ledger.RunRow) (View, error) {
	var s summary
	if err := json.Unmarshal(r.Summary, &s); err != nil {
		return View{}, fmt.Errorf("the summary of run %s: %w", r.ID, err)
	}
	return View{ID: r.ID, Workflow: r.Workflow, Status: run.Status(r.State), Created: r.Created, Started: r.Started, Ended: r.Ended,
		Key: r.Key, Error: s.Error, Items: s.Items, Coverage: s.Coverage, PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens,
		Calls: s.Calls, Simulated: s.Simulated, Script: s.Script, Seed: s.Seed, Outputs: s.Outputs, CancelReason: s.CancelReason,
		Priority: cmp.Or(s.Priority, run.Normal), Weight: s.Weight, Active: time.Duration(s.Active), Waits: s.Waits, Parent: s.Parent,
		Base: s.Base, ParkedBy: s.ParkedBy, ByCode: s.ByCode, Handled: s.Handled, BuiltIn: s.BuiltIn}, nil
}

// stateView is the part of a view that follows from the state alone.
func stateView(s *run.State, known roster, now time.Time) View {
	sum := summarise(s, now)
	v := View{ID: s.Pinned.ID, Workflow: s.Pinned.Workflow, Status: s.Status, Created: s.Born, Started: s.Started, Ended: s.Ended,
		Key: s.Pinned.Key, Error: sum.Error, Items: sum.Items, Coverage: sum.Coverage, PromptTokens: sum.PromptTokens,
		OutputTokens: sum.OutputTokens, Calls: sum.Calls, Simulated: sum.Simulated, Script: sum.Script, Seed: sum.Seed,
		Outputs: sum.Outputs, Logs: slices.Clone(s.Logs), CancelReason: sum.CancelReason, Priority: cmp.Or(sum.Priority, run.Normal), Weight: sum.Weight,
		Active: time.Duration(sum.Active), Waits: sum.Waits, Parent: sum.Parent, Base: sum.Base, ParkedBy: sum.ParkedBy, ByCode: sum.ByCode, Handled: sum.Handled, BuiltIn: sum.BuiltIn}
	v.Limits, v.Acceptance, v.Phases, v.Children = limitViews(s, now), acceptanceOf(s), phaseViews(s), childrenOf(s)
	v.Roles, v.Prompts, v.Judges = s.Pinned.Roles, s.Pinned.Prompts, s.Pinned.Judges
	_, v.ErrorStack = endError(s)
	if s.Status.Ended() {
		retry := retryOf(s)
		v.Retry = &retry
	}
	for _, st := range s.Requests {
		v.Steps = append(v.Steps, stepView(st, known))
	}
	for id, share := range s.Shares {
		v.Nodes = append(v.Nodes, NodeShare{NodeID: id, Name: known.name(id), Items: share.Items, FailedTries: share.FailedTries,
			OutputTokens: share.OutputTokens, OutputTime: time.Duration(share.OutputNanos), Simulated: share.Simulated || known[id].Simulated})
	}
	slices.SortFunc(v.Nodes, func(a, b NodeShare) int { return strings.Compare(a.NodeID, b.NodeID) })
	v.Failures = failureGroups(s, known)
	v.Simulated = simulated(s, v.Failures)
	return v
}

// simulated says that a result of a run, of its children or a failure of it came from a stand-in.
func simulated(s *run.State, failures []FailureGroup) bool {
	return s.Simulated || slices.ContainsFunc(failures, func(g FailureGroup) bool { return g.Simulated })
}

func stepView(st *run.Step, known roster) StepView {
	v := StepView{Pos: st.Pos, Kind: st.Kind, Label: st.Label, Status: st.Status, Model: st.Used(), Models: slices.Concat(st.Models, st.Judges), Items: st.Counts,
		Started: st.Began, Ended: st.Ended}
	if v.Started.IsZero() {
		v.Started = st.Requested
	}
	v.WaitingFor, v.Until = string(st.WaitingFor()), st.Due
	if st.Child != nil {
		v.Child = st.Child.Run
	}
	if st.Failure != nil {
		v.Error = st.Failure.Kind + ": " + st.Failure.Message
	}
	if len(st.Items) == 1 && st.Kind != run.KindBatch {
		it := &st.Items[0]
		v.Node = known.name(it.Node)
		if it.Flight != nil {
			v.Node = known.name(it.Flight.Node)
		}
		if st.Kind == run.KindEvaluate {
			v.Verdict = it.Result.Value
		}
	}
	return v
}

// endError is why a run failed or diverged.
func endError(s *run.State) (message, stack string) {
	switch end := s.End; {
	case end == nil:
	case end.Divergence != nil:
		d := end.Divergence
		message = fmt.Sprintf("the replay asked for something else at position %d: expected %s, got %s", d.Pos, d.Expected, d.Got)
	case end.Error != nil:
		e := end.Error
		message, stack = e.Message, e.Stack
		switch {
		case e.File != "" && e.Line > 0:
			message = fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
		case e.File != "": // one that has no line, such as too much memory
			message = e.File + ": " + e.Message
		}
	case len(end.Shortfalls) > 0 && (s.Status == run.TimedOut || s.Status == run.Exhausted):
		message = end.Shortfalls[0]
	}
	return message, stack
}

// failureGroups gathers what failed by kind, in the order in which the kinds appear; every failure is in exactly one. A step
// whose failure the script collected goes by the name that the script gave its part.
func failureGroups(s *run.State, known roster) []FailureGroup {
	var g groups
	forgiven := s.Forgiven()
	names := map[*run.Step]string{}
	for _, c := range s.Collected {
		for _, f := range c.Failures {
			if st := s.Of(f); st != nil {
				names[st] = f.Key
			}
		}
	}
	for _, st := range s.Requests {
		label := cmp.Or(names[st], stepLabel(st))
		for _, i := range st.Failed {
			if st.Kind == run.KindBatch {
				label = st.ItemKey(i)
			}
			g.add(label, *st.Items[i].Failure, known[st.Items[i].Node].Simulated, forgiven(st.Pos, i))
		}
		if len(st.Failed) == 0 && st.Failure != nil {
			g.add(label, *st.Failure, false, forgiven(st.Pos, -1))
		}
	}
	for _, c := range s.Collected {
		for _, f := range c.Failures {
			if s.Of(f) == nil {
				g.add(f.Key, run.Failure{Kind: cmp.Or(f.Kind, "collected"), Message: f.Message, Advice: run.Never}, false, false)
			}
		}
	}
	return g
}

type groups []FailureGroup

func (g *groups) add(label string, f run.Failure, simulated, handled bool) {
	i := slices.IndexFunc(*g, func(known FailureGroup) bool { return known.Kind == f.Kind })
	if i < 0 {
		i = len(*g)
		*g = append(*g, FailureGroup{Kind: f.Kind})
	}
	group := &(*g)[i]
	group.Message, group.Next = f.Message, f.Next
	group.RetryHelps = group.RetryHelps || f.Advice != run.Never
	group.Items = append(group.Items, label)
	if handled {
		group.Handled++
	}
	group.Simulated = group.Simulated || simulated
}

// stepLabel names a step for people: by its label, else by kind and position.
func stepLabel(st *run.Step) string {
	if st.Label != "" {
		return st.Label
	}
	return fmt.Sprintf("%s, step %d", st.Kind, st.Pos)
}

// view is a run's view with what only the loop knows: progress and reasons for waiting.
func (e *Engine) view(a *active) View {
	known := e.roster()
	v := stateView(a.state, known, e.clock.now())
	v.Simulated = v.Simulated || len(a.state.Shares) == 0 && known.allSimulated()
	for f := range a.state.Flights {
		if f.Node == onCoordinator {
			v.InFlight = append(v.InFlight, InFlight{Step: f.Pos, Item: f.Item, Node: onCoordinator, NodeState: scheduler.NodeUp, Attempt: f.Number,
				Since: f.Since, Phase: "running", Label: flightLabel(a.state.Requests[f.Pos], f.Item)})
			continue
		}
		in := InFlight{Step: f.Pos, Item: f.Item, Node: known.name(f.Node), NodeState: known.state(f.Node), Model: f.Model, Attempt: f.Number, Judging: f.Phase == run.Judge,
			Since: f.Since, Phase: "sent", Label: flightLabel(a.state.Requests[f.Pos], f.Item)}
		if known := e.flights[a.state.Key(f.AttemptID)]; known != nil && known.progress.Phase != "" {
			in.Tokens, in.TokensPerSecond, in.Phase = known.progress.Tokens, known.progress.TokensPerSecond, known.progress.Phase
		}
		v.InFlight = append(v.InFlight, in)
	}
	e.addBelow(a, &v)
	a.notYet(&v)
	e.addWaits(a, &v)
	return v
}

// waitLook is what a step waits for whose tool looks at what became of it.
const waitLook = "look"

// notYet takes what a tool still looks at out of what waits for a person.
func (a *active) notYet(v *View) {
	v.Waits = len(waitsOf(a.state, a.looks))
	for pos, seen := range a.looks {
		if seen.underWay && !v.Status.Ended() {
			v.Steps[pos].WaitingFor = waitLook
		}
	}
}

// flightLabel names what an attempt is about: an item of a batch by its key, another step by its label, else by kind and position.
func flightLabel(st *run.Step, item int) string {
	if st.Kind == run.KindBatch {
		return st.ItemKey(item)
	}
	return stepLabel(st)
}

// addWaits says what the run's open steps wait for.
func (e *Engine) addWaits(a *active, v *View) {
	add := func(what string, n int, why string) {
		if n <= 0 {
			return
		}
		i := slices.IndexFunc(v.Waiting, func(r Reason) bool { return r.WaitingFor == what })
		if i < 0 {
			v.Waiting = append(v.Waiting, Reason{WaitingFor: what, Why: why})
			i = len(v.Waiting) - 1
		}
		v.Waiting[i].Count += n
	}
	if a.state.Status == run.Queued {
		add("script", 1, fmt.Sprintf("%d scripts run already, which is the limit", e.o.MaxScripts))
	}
	for i := range v.Steps {
		st := &v.Steps[i]
		if st.WaitingFor != "" {
			add(st.WaitingFor, 1, cmp.Or(a.asksFor(st), parkedWhy[st.WaitingFor]))
			continue
		}
		n := st.Items.Waiting
		if st.Status.Ended() || n == 0 {
			continue
		}
		w := a.waits[st.Pos]
		what, why := string(w.why.Wait), w.why.Summary
		if what == "" {
			what, why = "slot", "it was asked for a moment ago, and no placement has looked at it yet"
			if a.state.Status != run.Running || a.state.Limit != nil {
				why = "the run is ending: nothing of it is placed any more"
			}
		}
		backoff := min(n, w.backoff)
		st.WaitingFor = what
		if backoff == n {
			st.WaitingFor = "retry"
		}
		add("retry", backoff, "a short pause before the next attempt")
		add(what, n-backoff, why)
	}
}

// asksFor says what a person has to do, by the kind of the step.
var asksFor = map[string]string{run.KindApprove: "a person has to approve or reject", run.KindQuestion: "a person has to answer"}

// asksFor is what a person has to do of a step that waits for one, "" when its kind does not tell.
func (a *active) asksFor(st *StepView) string {
	if s := a.state.Step(st.Pos); s != nil && s.Question() != nil {
		return asksFor[run.KindApprove]
	}
	return asksFor[st.Kind]
}

// parkedWhy says what a parked step waits for; what that is exactly is with the step.
var parkedWhy = map[string]string{
	string(run.WaitHuman): "a person has to say whether it happened", string(run.WaitTimer): "a time has to come", string(run.WaitChildren): "a child has to end",
	waitLook: "its tool looks whether it happened",
}

// roster is the nodes that the fleet knows, by id.
type roster map[string]scheduler.Node

func (e *Engine) roster() roster {
	known := roster{}
	for _, n := range e.fleet.Nodes() {
		known[n.ID] = n
	}
	return known
}

// name is a node's name; an id without one stays.
func (r roster) name(id string) string { return cmp.Or(r[id].Name, id) }

// state is a node's state, lost for one that is not known.
func (r roster) state(id string) scheduler.NodeState { return cmp.Or(r[id].State, scheduler.NodeLost) }

// allSimulated says that whatever a run will be given comes from stand-ins, as far as that can be known.
func (r roster) allSimulated() bool {
	for _, n := range r {
		if !n.Simulated {
			return false
		}
	}
	return len(r) > 0
}
