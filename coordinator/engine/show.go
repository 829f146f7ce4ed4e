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
}

func summarise(s *run.State) summary {
	out := summary{Items: s.Counts, Coverage: s.Counts.Coverage(), PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens,
		Calls: s.Calls, Simulated: s.Simulated, Script: s.Pinned.Script, Seed: s.Pinned.Seed}
	out.Error, _ = endError(s)
	for _, o := range s.Outputs {
		out.Outputs = append(out.Outputs, o.Name)
	}
	return out
}

// listView is the view of a row.
func listView(r ledger.RunRow) (View, error) {
	var s summary
	if err := json.Unmarshal(r.Summary, &s); err != nil {
		return View{}, fmt.Errorf("the summary of run %s: %w", r.ID, err)
	}
	return View{ID: r.ID, Workflow: r.Workflow, Status: run.Status(r.State), Created: r.Created, Started: r.Started, Ended: r.Ended,
		Key: r.Key, Error: s.Error, Items: s.Items, Coverage: s.Coverage, PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens,
		Calls: s.Calls, Simulated: s.Simulated, Script: s.Script, Seed: s.Seed, Outputs: s.Outputs}, nil
}

// stateView is the part of a view that follows from the state alone.
func stateView(s *run.State, name func(string) string) View {
	sum := summarise(s)
	v := View{ID: s.Pinned.ID, Workflow: s.Pinned.Workflow, Status: s.Status, Created: s.Born, Started: s.Started, Ended: s.Ended,
		Key: s.Pinned.Key, Error: sum.Error, Items: sum.Items, Coverage: sum.Coverage, PromptTokens: sum.PromptTokens,
		OutputTokens: sum.OutputTokens, Calls: sum.Calls, Simulated: sum.Simulated, Script: sum.Script, Seed: sum.Seed,
		Outputs: sum.Outputs, Logs: slices.Clone(s.Logs)}
	_, v.ErrorStack = endError(s)
	for _, st := range s.Requests {
		v.Steps = append(v.Steps, stepView(st, name))
	}
	for id, share := range s.Shares {
		v.Nodes = append(v.Nodes, NodeShare{NodeID: id, Name: name(id), Items: share.Items, FailedTries: share.FailedTries,
			OutputTokens: share.OutputTokens, OutputTime: time.Duration(share.OutputNanos), Simulated: share.Simulated})
	}
	slices.SortFunc(v.Nodes, func(a, b NodeShare) int { return strings.Compare(a.NodeID, b.NodeID) })
	v.Failures = failureGroups(s)
	return v
}

func stepView(st *run.Step, name func(string) string) StepView {
	v := StepView{Pos: st.Pos, Kind: st.Kind, Label: st.Label, Status: st.Status, Model: st.Model, Items: st.Counts,
		Started: st.Began, Ended: st.Ended}
	if v.Started.IsZero() {
		v.Started = st.Requested
	}
	if st.Failure != nil {
		v.Error = st.Failure.Kind + ": " + st.Failure.Message
	}
	if len(st.Items) == 1 && st.Kind != run.KindBatch {
		it := &st.Items[0]
		v.Node = name(it.Node)
		if it.Flight != nil {
			v.Node = name(it.Flight.Node)
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
		if e.File != "" && e.Line > 0 {
			message = fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
		}
	case len(end.Shortfalls) > 0 && s.Status == run.TimedOut:
		message = end.Shortfalls[0]
	}
	return message, stack
}

// failureGroups gathers what failed by kind, in the order in which the kinds appear; every failure is in exactly one. A step
// whose failure the script collected goes by the name that the script gave its part.
func failureGroups(s *run.State) []FailureGroup {
	var g groups
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
			g.add(label, *st.Items[i].Failure)
		}
		if len(st.Failed) == 0 && st.Failure != nil {
			g.add(label, *st.Failure)
		}
	}
	for _, c := range s.Collected {
		for _, f := range c.Failures {
			if s.Of(f) == nil {
				g.add(f.Key, run.Failure{Kind: cmp.Or(f.Kind, "collected"), Message: f.Message, Advice: run.Never})
			}
		}
	}
	return g
}

type groups []FailureGroup

func (g *groups) add(label string, f run.Failure) {
	i := slices.IndexFunc(*g, func(known FailureGroup) bool { return known.Kind == f.Kind })
	if i < 0 {
		i = len(*g)
		*g = append(*g, FailureGroup{Kind: f.Kind})
	}
	group := &(*g)[i]
	group.Message, group.Next = f.Message, f.Next
	group.RetryHelps = group.RetryHelps || f.Advice != run.Never
	group.Items = append(group.Items, label)
}

func stepLabel(st *run.Step) string {
	if st.Label != "" {
		return st.Label
	}
	return fmt.Sprintf("step %d", st.Pos)
}

// view is a run's view with what only the loop knows: progress and reasons for waiting.
func (e *Engine) view(a *active) View {
	name := e.names()
	v := stateView(a.state, name)
	for f := range a.state.Flights {
		in := InFlight{Step: f.Pos, Item: f.Item, Node: name(f.Node), Model: f.Model, Attempt: f.Number, Judging: f.Phase == run.Judge,
			Since: f.Since, Phase: "sent", Label: a.state.Requests[f.Pos].ItemKey(f.Item)}
		if known := e.flights[a.state.Key(f.AttemptID)]; known != nil && known.progress.Phase != "" {
			in.Tokens, in.TokensPerSecond, in.Phase = known.progress.Tokens, known.progress.TokensPerSecond, known.progress.Phase
		}
		v.InFlight = append(v.InFlight, in)
	}
	e.addWaits(a, &v)
	return v
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
		n := st.Items.Waiting
		if st.Status.Ended() || n == 0 {
			continue
		}
		w := a.waits[st.Pos]
		what, why := string(w.why.Wait), w.why.Summary
		if what == "" {
			what, why = "slot", "every slot that could take it is busy"
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

// names returns a function from node ids to names; an id without one stays.
func (e *Engine) names() func(string) string {
	names := map[string]string{}
	for _, n := range e.fleet.Nodes() {
		names[n.ID] = n.Name
	}
	return func(id string) string {
		if n := names[id]; n != "" {
			return n
		}
		return id
	}
}
