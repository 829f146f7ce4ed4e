package relay

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

//go:embed relay.ts reports.ts
var files embed.FS

// input of the workflow.
type input struct {
	World    string         `json:"world"`
	Goal     string         `json:"goal"`
	Model    string         `json:"model"`
	Workers  []string       `json:"workers"`
	Accounts []string       `json:"accounts"`
	Named    string         `json:"named"`
	Gold     []Step         `json:"gold,omitempty"`
	Options  map[string]any `json:"options"`
}

// run lets code keep the loop: one run of loopkeeper.
func (f *floor) run(ctx context.Context, j job, o Options) (Outcome, error) {
	world := NewWorld(j.task)
	name := fmt.Sprintf("%s/%s/%d", j.arm, j.task.Name(), j.try)
	f.worlds.put(name, world)
	defer f.worlds.drop(name)
	in := input{World: name, Goal: j.task.Goal, Model: o.Model, Workers: j.task.names(), Accounts: append([]string{}, j.task.accounts()...),
		Named: Named, Options: map[string]any{}}
	if j.arm.gold() {
		in.Gold = j.task.Gold()
	}
	id, view, err := f.carryOut(ctx, f.program, in)
	out := Outcome{Log: world.Log(), Ended: view.Status.Ended()}
	if err != nil {
		return out, err
	}
	if err = f.count(ctx, id, &out); err != nil {
		return out, err
	}
	if view.Error != "" {
		return out, fmt.Errorf("the run %s: %s", view.Status, view.Error)
	}
	if out.Cost.Calls == 0 && len(view.Failures) > 0 { // no model was ever asked
		return out, fmt.Errorf("the run %s: %s", view.Status, view.Failures[0].Message)
	}
	var result struct{ Report map[string]int }
	err = f.output(ctx, id, "result", &result)
	out.Report = result.Report
	return out, err
}

// carryOut is one run of a program, from its submission to its end.
func (f *floor) carryOut(ctx context.Context, p script.Program, in any) (id string, last engine.View, err error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return "", last, err
	}
	if raw, err = script.Canonical(raw); err != nil {
		return "", last, err
	}
	if id, _, err = f.engine.Submit(ctx, engine.Submission{Workflow: p.Name, Program: p, Input: raw}); err != nil {
		return "", last, err
	}
	last, err = f.end(ctx, id)
	return id, last, err
}

func (t Task) names() []string {
	var out []string
	for i := range len(t.Workers) {
		out = append(out, name(i))
	}
	return out
}

// end follows a run to its end; when nobody wants it any more it is cancelled.
func (f *floor) end(ctx context.Context, id string) (last engine.View, err error) {
	views, err := f.engine.Watch(ctx, id)
	if err != nil {
		return last, err
	}
	for last = range views {
	}
	if ctx.Err() != nil {
		_, _ = f.engine.Cancel(context.WithoutCancel(ctx), id, "the benchmark was interrupted")
	}
	return last, ctx.Err()
}

// count reads from the run's events what it took and what failed.
func (f *floor) count(ctx context.Context, id string, out *Outcome) error {
	out.Failures = map[string]int{}
	for e, err := range ledger.All(ctx, f.store, id, 0) {
		if err != nil {
			return err
		}
		event, err := run.Decode(e.Seq, e.Time, e.Kind, e.Payload)
		if err != nil {
			return err
		}
		switch p := event.Data.(type) {
		case *run.AttemptSucceeded:
			out.Cost.add(p.Evidence.Report)
		case *run.AttemptFailed:
			out.Cost.add(p.Evidence.Report)
			for _, kind := range failures(p.Cause) {
				out.Failures[kind]++
			}
		case *run.ItemChecked:
			if !p.Passed {
				out.Failures["argument"]++
			}
		}
	}
	return nil
}

func (c *Cost) add(r run.Report) {
	if r.Model == "" {
		return // a tool
	}
	c.Calls++
	c.PromptTokens += r.PromptTokens
	c.OutputTokens += r.OutputTokens
	c.PrefillMS += float64(r.PromptNanos) / float64(time.Millisecond)
}

// failures are the kinds of a failed call; of a plan the rule that it broke first.
func failures(f run.Failure) []string {
	if f.Kind != string(calls.PlanInvalid) {
		return []string{f.Kind}
	}
	_, rest, _ := strings.Cut(f.Message, "does not hold: ")
	rule, _, _ := strings.Cut(rest, ":")
	if rule == "" || strings.ContainsFunc(rule, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		rule = "other"
	}
	return slices.Clip([]string{"plan rule " + rule})
}
