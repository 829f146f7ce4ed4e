package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// endedRuns keeps the few ended runs that were looked at last; their states do not change, so readers share them.
type endedRuns struct {
	mu     sync.Mutex
	states []*run.State // newest last
}

// endedKept is how many ended runs stay in memory: enough for someone who pages through one and looks at another.
const endedKept = 4

// state returns an ended run, read from the ledger when it is not at hand.
func (c *endedRuns) state(ctx context.Context, s ledger.Store, id string) (*run.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.states {
		if st.Pinned.ID == id {
			return st, nil
		}
	}
	st, err := load(ctx, s, id)
	if err != nil {
		return nil, err
	}
	if st.Seq == 0 {
		return nil, notFound(id)
	}
	if st.Status.Ended() {
		if len(c.states) == endedKept {
			c.states = append(c.states[:0:0], c.states[1:]...)
		}
		c.states = append(c.states, st)
	}
	return st, nil
}

func notFound(id string) error {
	return apierr.New(apierr.NotFound, "no run is named %s", id).WithNext("loopkeeper runs")
}

// Resolve returns the id of the run that id names exactly, or of the only one that it begins. NotFound, InvalidArgument.
func (e *Engine) Resolve(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", apierr.New(apierr.InvalidArgument, "no run is named").WithNext("loopkeeper runs")
	}
	rows, err := e.o.Store.Runs(ctx, ledger.RunFilter{Prefix: id})
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		if r.ID == id {
			return id, nil
		}
	}
	switch len(rows) {
	case 0:
		return "", notFound(id)
	case 1:
		return rows[0].ID, nil
	default:
		return "", apierr.New(apierr.InvalidArgument, "%d runs begin with %s", len(rows), id).WithNext("loopkeeper runs")
	}
}

// with gives f the run's state while nobody changes it: on the loop while the run goes on, else from the ledger; a is nil
// then. Only what is durable is shown.
func with[T any](ctx context.Context, e *Engine, id string, f func(s *run.State, a *active) (T, error)) (T, error) {
	var none T
	id, err := e.Resolve(ctx, id)
	if err != nil {
		return none, err
	}
	type found struct {
		live  bool
		value T
	}
	got, err := ask(ctx, e, func(*turn) func() (found, error) {
		a := e.runs[id]
		if a == nil {
			return reply(found{}, nil)
		}
		return func() (found, error) {
			v, err := f(a.state, a)
			return found{true, v}, err
		}
	})
	if err != nil || got.live {
		return got.value, err
	}
	s, err := e.ended.state(ctx, e.o.Store, id)
	if err != nil {
		return none, err
	}
	return f(s, nil)
}

// Run returns one run with its steps; a unique prefix of the id will do.
func (e *Engine) Run(ctx context.Context, id string) (View, error) {
	return with(ctx, e, id, func(s *run.State, a *active) (View, error) {
		if a != nil {
			return e.view(a), nil
		}
		return stateView(s, e.roster(), e.clock.now()), nil
	})
}

// Runs returns runs without steps, newest first.
func (e *Engine) Runs(ctx context.Context, f Filter) ([]View, error) {
	filter := ledger.RunFilter{Limit: f.Limit}
	if filter.Limit == 0 {
		filter.Limit = 50
	}
	for _, s := range f.States {
		filter.States = append(filter.States, string(s))
	}
	rows, err := e.o.Store.Runs(ctx, filter)
	if err != nil {
		return nil, err
	}
	views := make([]View, 0, len(rows))
	for _, r := range rows {
		v, err := listView(r)
		if err != nil {
			return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "list the runs")
		}
		views = append(views, v)
	}
	return views, nil
}

// Items returns up to limit items (0: 100) of a step from index from; step -1 is the first batch.
func (e *Engine) Items(ctx context.Context, id string, step, from, limit int) (ItemsPage, error) {
	if limit <= 0 {
		limit = 100
	}
	type part struct {
		page   ItemsPage
		id     string
		bodies []run.Content // by item of the page
		events map[int]int64 // of items whose results only their events have, by place on the page
	}
	got, err := with(ctx, e, id, func(s *run.State, _ *active) (part, error) {
		st := s.Step(step)
		if step < 0 {
			st = firstBatch(s)
		}
		if st == nil || st.Note {
			return part{}, apierr.New(apierr.NotFound, "run %s has no such step", s.Pinned.ID).WithNext("loopkeeper show " + s.Pinned.ID)
		}
		known := e.roster()
		p := part{id: s.Pinned.ID, events: map[int]int64{}, page: ItemsPage{Step: st.Pos, Total: len(st.Items), FinalPrefix: st.FinalPrefix()}}
		for i := max(0, from); i < len(st.Items) && len(p.bodies) < limit; i++ {
			p.page.Items = append(p.page.Items, itemView(st, i, known))
			if it := &st.Items[i]; it.Status == run.StepSucceeded && it.Result.Empty() {
				p.events[len(p.bodies)] = it.Event
			}
			p.bodies = append(p.bodies, st.Items[i].Result)
		}
		return p, nil
	})
	if err == nil && len(got.events) > 0 {
		results, err := e.resultsAt(ctx, got.id, slices.Sorted(maps.Values(got.events)))
		if err != nil {
			return ItemsPage{}, err
		}
		for i, seq := range got.events {
			got.bodies[i] = results[seq]
		}
	}
	for i, c := range got.bodies {
		if err := e.fillBody(ctx, &got.page.Items[i], c); err != nil {
			return ItemsPage{}, err
		}
	}
	return got.page, err
}

// firstBatch is the first batch, or the first step with items when there is no batch.
func firstBatch(s *run.State) *run.Step {
	var first *run.Step
	for _, st := range s.Requests {
		if st.Kind == run.KindBatch {
			return st
		}
		if first == nil && len(st.Items) > 0 {
			first = st
		}
	}
	return first
}

func itemView(st *run.Step, i int, known roster) ItemView {
	it := &st.Items[i]
	v := ItemView{Index: i, Key: st.ItemKey(i), Status: it.Status, Attempts: it.Sent[0], Node: known.name(it.Node), Simulated: it.Report.Simulated || known[it.Node].Simulated}
	if it.Failure != nil && it.Status == run.StepFailed {
		v.FailureKind, v.Failure = it.Failure.Kind, it.Failure.Message
	}
	return v
}

// fillBody adds the result of an item that succeeded.
func (e *Engine) fillBody(ctx context.Context, v *ItemView, c run.Content) error {
	if v.Status != run.StepSucceeded || c.Empty() {
		return nil
	}
	if c.Ref == "" {
		v.Value = c.Value
		return nil
	}
	body, err := e.body(ctx, c.Ref)
	if err != nil {
		return apierr.Wrap(err, apierr.LedgerCorrupt, "open the result of item %d", v.Index)
	}
	if c.Text {
		v.Text = string(body)
	} else {
		v.Value = body
	}
	return nil
}

// Outputs returns a run's key results in the order in which they appeared.
func (e *Engine) Outputs(ctx context.Context, id string) ([]Output, error) {
	return with(ctx, e, id, func(s *run.State, _ *active) ([]Output, error) {
		var out []Output
		for _, o := range s.Outputs {
			view := Output{Name: o.Name, Value: o.Value, Sources: o.Sources, Inferred: o.Inferred}
			var ref Ref
			if json.Unmarshal(o.Value, &ref) == nil && params.IsDigest(ref.SHA256) {
				view.Value, view.Ref = nil, &ref
			}
			out = append(out, view)
		}
		return out, nil
	})
}

// Explain says why a run's attempts are where they are, or not placed: of one step, or of all open ones with step -1.
func (e *Engine) Explain(ctx context.Context, id string, step int) ([]Explanation, error) {
	return with(ctx, e, id, func(s *run.State, a *active) ([]Explanation, error) {
		if step >= 0 && s.Step(step) == nil {
			return nil, noSuchStep(s, step)
		}
		if a == nil {
			return explainEnded(s, step, e.roster()), nil
		}
		return e.explain(a, step), nil
	})
}

func noSuchStep(s *run.State, step int) error {
	return apierr.New(apierr.NotFound, "run %s has no step %d", s.Pinned.ID, step).WithNext("loopkeeper show " + s.Pinned.ID)
}

func (e *Engine) explain(a *active, step int) []Explanation {
	var out []Explanation
	known := e.roster()
	for f := range a.state.Flights {
		if step < 0 || f.Pos == step {
			st := a.state.Requests[f.Pos]
			summary := fmt.Sprintf("runs on %s: %s", known.name(f.Node), f.Why)
			out = append(out, Explanation{Subject: itemName(st, f.Item), Attempt: a.state.Key(f.AttemptID), Explanation: scheduler.Explanation{Summary: summary}})
		}
	}
	for _, st := range a.state.Requests {
		if w, ok := a.waits[st.Pos]; ok && (step < 0 || st.Pos == step) && st.Counts.Waiting > 0 && w.subject != "" {
			subject := itemName(st, w.item)
			if n := st.Counts.Waiting; n > 1 {
				subject = fmt.Sprintf("%s and %d more", subject, n-1)
			}
			out = append(out, Explanation{Subject: subject, Attempt: w.subject, Explanation: w.why})
		}
	}
	return out
}

// itemName is an item for people: its step and, in a batch, its key.
func itemName(st *run.Step, i int) string {
	if st.Kind == run.KindBatch {
		return fmt.Sprintf("step %d, %s", st.Pos, st.ItemKey(i))
	}
	if st.Label != "" {
		return fmt.Sprintf("step %d, %s", st.Pos, st.Label)
	}
	return fmt.Sprintf("step %d, %s", st.Pos, st.Kind)
}

// explainEnded says of a run that is over, or of one step of it, on which nodes its items ran.
func explainEnded(s *run.State, step int, known roster) []Explanation {
	on := map[string]int{}
	for _, st := range s.Requests {
		if step >= 0 && st.Pos != step {
			continue
		}
		for i := range st.Items {
			if id := st.Items[i].Node; id != "" {
				on[known.name(id)]++
			}
		}
	}
	var where []string
	for _, n := range slices.Sorted(maps.Keys(on)) {
		where = append(where, fmt.Sprintf("%d on %s", on[n], n))
	}
	subject, what := "run "+s.Pinned.ID, "nothing of it ran on a machine"
	if step >= 0 {
		subject = fmt.Sprintf("%s, step %d", subject, step)
	}
	if len(where) > 0 {
		what = "its items ran " + strings.Join(where, ", ")
	}
	return []Explanation{{Subject: subject, Explanation: scheduler.Explanation{Summary: fmt.Sprintf("has ended (%s), so nothing waits; %s", s.Status, what)}}}
}

// Snapshot returns what a placement decided now would see; submission checks and explain use it.
func (e *Engine) Snapshot(ctx context.Context) (scheduler.Snapshot, error) {
	return ask(ctx, e, func(t *turn) func() (scheduler.Snapshot, error) {
		t.place = true // reading the nodes settles what time has settled, which a placement has to see
		nodes := e.nodes(t.now)
		tasks, shown, _ := e.waiting(t.now, nodes)
		return reply(e.snapshot(t.now, nodes, tasks, shown), nil)
	})
}
