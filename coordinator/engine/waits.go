package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// The kinds of a Wait.
const (
	WaitApprove  = run.KindApprove
	WaitQuestion = run.KindQuestion
	WaitUnknown  = "unknown" // an external write of which nobody knows whether it happened
)

// What became of an external write whose outcome was unknown, as an Answer's Outcome.
const (
	Happened    = "happened"
	NotHappened = "not_happened"
)

// Wait is a step that waits for a person.
type Wait struct {
	Run       string
	Workflow  string
	Step      int
	Item      int    // of an external write in a step of several
	Kind      string // approve, question or unknown
	Label     string
	Title     string // what is asked
	Text      string
	Will      string            // what happens after a yes
	Show      []json.RawMessage // bodies to look at first
	Choices   []string          // of a question
	Schema    json.RawMessage   // of a question's answer
	Since     time.Time
	Until     time.Time       // when it is answered by itself; zero: never
	OnTimeout json.RawMessage // how, then
}

// Answer is what a person says to a Wait.
type Answer struct {
	Outcome string          // approved or rejected; of an unknown write Happened or NotHappened
	Value   json.RawMessage // of a question; of an unknown write that happened its value, if known
	Comment string
	By      string
}

// Waits returns every step that waits for a person, the oldest first: of one run, or of all with run "".
func (e *Engine) Waits(ctx context.Context, id string) ([]Wait, error) {
	if id != "" {
		var err error
		if id, err = e.Resolve(ctx, id); err != nil {
			return nil, err
		}
	}
	return ask(ctx, e, func(*turn) func() ([]Wait, error) {
		return func() ([]Wait, error) {
			out := []Wait{}
			for _, a := range e.order {
				if id == "" || a.state.Pinned.ID == id {
					out = append(out, waitsOf(a.state, a.looks)...)
				}
			}
			slices.SortStableFunc(out, func(a, b Wait) int { return a.Since.Compare(b.Since) })
			return out, nil
		}
	})
}

// waitsOf lists what in a run waits for a person. A write that its tool still looks for does not yet.
func waitsOf(s *run.State, looks map[int]look) []Wait {
	var out []Wait
	if s.Status.Ended() {
		return nil
	}
	for st := range s.Open {
		if seen := looks[st.Pos]; st.WaitingFor() == run.WaitHuman && !seen.underWay {
			out = append(out, waitOf(s, st, seen))
		}
	}
	return out
}

// waitOf reads what is asked from the step's request.
func waitOf(s *run.State, st *run.Step, seen look) Wait {
	w := Wait{Run: s.Pinned.ID, Workflow: s.Pinned.Workflow, Step: st.Pos, Kind: st.Kind, Label: st.Label, Since: st.Requested, Until: st.Due}
	var asked struct {
		Title     string            `json:"title"`
		Text      string            `json:"text"`
		Will      string            `json:"will"`
		Show      []json.RawMessage `json:"show"`
		Choices   []string          `json:"choices"`
		Schema    json.RawMessage   `json:"schema"`
		OnTimeout json.RawMessage   `json:"on_timeout"`
		Name      string            `json:"name"`
		Input     json.RawMessage   `json:"input"`
	}
	_ = json.Unmarshal(st.Body, &asked) // it was checked when it became a step
	w.Title, w.Text, w.Will, w.Show = asked.Title, asked.Text, asked.Will, asked.Show
	w.Choices, w.Schema, w.OnTimeout = asked.Choices, asked.Schema, asked.OnTimeout
	switch st.Kind {
	case run.KindQuestion:
		w.Title, w.Text = asked.Text, ""
	case run.KindTool:
		if q := st.Question(); q != nil {
			w.Kind, w.Title, w.Text, w.Will = WaitApprove, q.Title, q.Text, q.Will
			if q.Show != nil {
				w.Show = []json.RawMessage{q.Show}
			}
			return w
		}
		w.Kind, w.Since = WaitUnknown, cmp.Or(st.Began, st.Requested)
		w.Title = fmt.Sprintf("did %s happen? It was interrupted, and is not done again before that is known", asked.Name)
		if f := st.Items[0].Failure; f != nil {
			w.Text = f.Message
		}
		if seen.saw != "" {
			w.Text += "; " + asked.Name + " looked: " + seen.saw
		}
		w.Show = []json.RawMessage{asked.Input}
	}
	return w
}

// Settle answers an approval or a question, or says what became of an external write whose outcome is unknown. NotFound: there is no
// such step. Conflict: it waits no longer. InvalidArgument: the answer does not fit.
func (e *Engine) Settle(ctx context.Context, id string, step, item int, answer Answer) (View, error) {
	return e.steer(ctx, id, func(a *active) (run.Command, error) {
		s := a.state
		st, err := waiting(s, step)
		if err != nil {
			return nil, err
		}
		switch st.Kind {
		case run.KindApprove:
			return run.Settle{Pos: step, Outcome: answer.Outcome, By: answer.By, Comment: answer.Comment}, nil
		case run.KindQuestion:
			err := suits(st, answer.Value)
			return run.Settle{Pos: step, Answer: answer.Value, By: answer.By, Comment: answer.Comment}, err
		}
		if st.Question() != nil {
			return run.Permit{Pos: step, Item: item, Outcome: answer.Outcome, By: answer.By, Comment: answer.Comment}, nil
		}
		if answer.Outcome != Happened && answer.Outcome != NotHappened {
			return nil, apierr.New(apierr.InvalidArgument, "step %d of run %s is a write whose outcome is unknown, and %q says nothing of it", step, s.Pinned.ID, answer.Outcome).
				WithNext("say " + Happened + " or " + NotHappened)
		}
		return resolve(a, step, item, answer.Outcome == Happened, answer.Value, answer.By, answer.Comment)
	})
}

// resolve says whether an external write happened whose outcome a crash hid; value is what it gave, nil when nothing is known of it. One
// that did not happen is done again.
func resolve(a *active, step, item int, happened bool, value json.RawMessage, by, comment string) (run.Command, error) {
	s := a.state
	st, err := waiting(s, step)
	if err != nil {
		return nil, err
	}
	if a.looks[step].underWay { // what it sees is a fact, and an answer now would be a guess
		return nil, apierr.New(apierr.Conflict, "the tool of step %d of run %s still looks whether it happened", step, s.Pinned.ID).
			WithNext("loopkeeper approvals " + s.Pinned.ID)
	}
	if item < 0 || item >= len(st.Items) || st.Items[item].Status != run.StepUnknown {
		return nil, apierr.New(apierr.Conflict, "the outcome of step %d of run %s is not unknown", step, s.Pinned.ID).WithNext("loopkeeper show " + s.Pinned.ID)
	}
	if value != nil && !json.Valid(value) {
		return nil, apierr.New(apierr.InvalidArgument, "the value of step %d is not JSON", step)
	}
	return run.Resolve{Pos: step, Item: item, Happened: happened, Result: run.Content{Value: value}, By: by, Comment: comment}, nil
}

// waiting returns a step that waits for a person.
func waiting(s *run.State, step int) (*run.Step, error) {
	st := s.Step(step)
	switch {
	case st == nil || st.Note:
		return nil, noSuchStep(s, step)
	case st.WaitingFor() != run.WaitHuman:
		return nil, apierr.New(apierr.Conflict, "step %d of run %s waits for nobody (it is %s)", step, s.Pinned.ID, st.Status).WithNext("loopkeeper show " + s.Pinned.ID)
	}
	return st, nil
}

// suits checks an answer against the schema that the question has.
func suits(st *run.Step, answer json.RawMessage) error {
	var asked struct{ Schema json.RawMessage }
	if err := json.Unmarshal(st.Body, &asked); err != nil || asked.Schema == nil {
		return nil // its choices are the state's to check
	}
	return params.Fits(asked.Schema, answer, fmt.Sprintf("the answer to step %d", st.Pos))
}

// SuspendRun parks a run and what it has spawned: what is in flight ends, nothing new starts. Conflict: it has ended or is suspended.
func (e *Engine) SuspendRun(ctx context.Context, id, by, reason string) (View, error) {
	return e.steerTree(ctx, id, func(t *turn, a *active) error { return t.suspendTree(a, by, reason) })
}

// ResumeRun lets a suspended run go on, with what was suspended along with it. Conflict: it is not suspended.
func (e *Engine) ResumeRun(ctx context.Context, id, by string) (View, error) {
	return e.steerTree(ctx, id, func(t *turn, a *active) error { return t.resumeTree(a, by) })
}

// Rollback takes a pipeline back to an earlier phase that has completed; pipeline "" is the one in progress. InvalidArgument: there is
// no such pipeline or phase, or it was not completed.
func (e *Engine) Rollback(ctx context.Context, id, pipeline, phase, reason, by string) (View, error) {
	return e.steerTree(ctx, id, func(t *turn, a *active) error {
		for _, p := range a.state.Pipelines {
			if pipeline == "" && p.Current >= 0 {
				pipeline = p.Name
			}
		}
		if err := t.person(a, run.Rollback{Pipeline: pipeline, Phase: phase, Reason: reason, By: by}); err != nil {
			return err
		}
		t.dropStopped(a)
		t.endChildren(a, func(st *run.Step) bool { return st.Status.Ended() }, fmt.Sprintf("the pipeline %s went back to %s", pipeline, phase))
		return nil
	})
}

// dropStopped ends calls and tools of a run that are under way for steps that are over.
func (t *turn) dropStopped(a *active) {
	e := t.e
	for _, f := range e.sortedFlights() {
		if f.run == a && !a.state.Flying(f.id) {
			t.orphan(f)
			t.then(func() { e.dispatch.Cancel(f.node, f.key) })
		}
	}
	for _, c := range e.tools {
		if c.run == a && !a.state.Flying(c.id) {
			c.orphaned = true
			t.then(c.cancel)
		}
	}
}

// steer decides one command of a person on a run under way.
func (e *Engine) steer(ctx context.Context, id string, decide func(a *active) (run.Command, error)) (View, error) {
	return e.steerTree(ctx, id, func(t *turn, a *active) error {
		cmd, err := decide(a)
		if err != nil {
			return err
		}
		return t.person(a, cmd)
	})
}

// person carries out what a person wants of a run, and says what is wrong with it.
func (t *turn) person(a *active, cmd run.Command) error {
	id := a.state.Pinned.ID
	events, err := run.Execute(a.state, cmd, t.now)
	switch {
	case errors.Is(err, run.ErrStale):
		return past(a.state, cmd)
	case err != nil:
		return apierr.Wrap(err, apierr.InvalidArgument, "run %s does not take this", id).WithNext("loopkeeper show " + id)
	}
	return t.record(a, events)
}

// past says why a command comes too late or twice.
func past(s *run.State, cmd run.Command) error {
	id := s.Pinned.ID
	switch cmd.(type) {
	case run.Suspend:
		return apierr.New(apierr.Conflict, "run %s is suspended already", id).WithNext("loopkeeper resume "+id, "loopkeeper show "+id)
	case run.Resume:
		return apierr.New(apierr.Conflict, "run %s is not suspended: it is %s", id, s.Status).WithNext("loopkeeper watch " + id)
	default:
		return apierr.New(apierr.Conflict, "run %s is past this: it is %s", id, s.Status).WithNext("loopkeeper show " + id)
	}
}

// steerTree does f with a run under way; the view is of when that is durable. Conflict: the run has ended.
func (e *Engine) steerTree(ctx context.Context, id string, f func(t *turn, a *active) error) (View, error) {
	id, err := e.Resolve(ctx, id)
	if err != nil {
		return View{}, err
	}
	return ask(ctx, e, func(t *turn) func() (View, error) {
		a := e.runs[id]
		if a == nil || a.state.Status.Ended() {
			return reply(View{}, apierr.New(apierr.Conflict, "run %s has already ended", id).WithNext("loopkeeper show "+id))
		}
		if err := f(t, a); err != nil {
			return reply(View{}, err)
		}
		return func() (View, error) { return e.view(a), nil }
	})
}
