package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// job is a run to be submitted.
type job struct {
	builtIn string
	bundle  *coordinatorv1.Bundle // instead of builtIn
	input   map[string]any
	models  []string // known to be needed
	key     string
	limit   time.Duration // of active time; 0: the default
	limits  map[string]int64
	place   precedence
	to      destination
	long    *tooLong // what a dry run found too long, nil for nothing
}

// precedence says which runs go first. The zero value is like most.
type precedence struct {
	priority string
	weight   float64
}

// runFlags are those of every command that starts a run.
type runFlags struct {
	key    string
	limit  time.Duration
	limits map[string]int64 // by name, 0 for none
	detach bool
	dryRun bool
	wait   bool
	place  precedence
}

func (f *runFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "key", "", "idempotency `KEY`: the same key names the same run, whatever happens in between")
	registerLimits(c, &f.limit, &f.limits, "as the workflow says")
	c.Flags().BoolVar(&f.detach, "detach", false, "start the run and return at once")
	c.Flags().StringVar(&f.place.priority, "priority", "normal", "`PRIORITY` of its calls on every machine: interactive goes before normal, that before batch")
	c.Flags().Float64Var(&f.place.weight, "weight", 1, "share `N` of the machines beside other runs of the same priority")
	registerWait(c, &f.wait)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "check everything, say where each model fits, and start nothing")
}

func registerWait(c *cobra.Command, wait *bool) {
	c.Flags().BoolVar(wait, "wait", true, "go on watching while the run waits for a person; --wait=false ends then, with exit code 16")
}

// check refuses what makes no sense, such as a time that would mean no limit: the coordinator counts whole seconds.
func (f *runFlags) check() error {
	if err := limitTime(f.limit); err != nil {
		return err
	}
	if p := f.place; p.priority != "interactive" && p.priority != "normal" && p.priority != "batch" {
		return usagef("--priority %q: want interactive, normal or batch", p.priority)
	} else if !(p.weight > 0 && p.weight <= 1000) { // NaN too
		return usagef("--weight %g: want more than 0, at most 1000", p.weight)
	}
	return nil
}

// submit sends a job. Everything that can be known to fail fails here.
func (a *app) submit(ctx context.Context, c *client, j job, dry bool) (*coordinatorv1.SubmitResponse, error) {
	raw, err := json.Marshal(j.input)
	if err != nil {
		return nil, fmt.Errorf("write the input as JSON: %w", err)
	}
	r := &coordinatorv1.SubmitRequest{InputJson: raw, Key: j.key, DryRun: dry, Models: distinct(j.models), TimeLimitSeconds: int64(j.limit / time.Second), Limits: j.limits,
		Priority: j.place.priority, Weight: j.place.weight}
	if j.bundle != nil {
		r.Workflow = &coordinatorv1.SubmitRequest_Bundle{Bundle: j.bundle}
	} else {
		r.Workflow = &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: j.builtIn}
	}
	a.submitting = !dry
	done := a.slow("submitting the run")
	out, err := c.Submit(ctx, r)
	done()
	a.submitting = err != nil && ctx.Err() != nil
	if err != nil {
		return nil, nearModels(ctx, c, j.models, err)
	}
	return out, nil
}

// slow says what is being done once that lasts longer than a second; call what it returns when it is done.
func (a *app) slow(what string) (done func()) {
	if a.json() {
		return func() {}
	}
	timer := time.AfterFunc(time.Second, func() { a.note("%s ...", what) })
	return func() { timer.Stop() }
}

func distinct(names []string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// start submits a job and says what it became. It returns the run's id, or "" when there is nothing to watch.
func (a *app) start(ctx context.Context, c *client, j job, f runFlags) (string, error) {
	a.giveUp = !f.wait
	r, err := a.submit(ctx, c, j, f.dryRun)
	if err != nil {
		return "", err
	}
	if f.dryRun {
		return "", a.printDryRun(j, r)
	}
	if !a.json() {
		for _, n := range r.GetNotes() {
			a.note("%s", ui.Line(n))
		}
		if r.GetExisting() {
			a.note("run %s has this key already", r.GetRunId())
		}
	}
	if !f.detach {
		return r.GetRunId(), nil
	}
	return "", a.printDetached(ctx, c, r, j.to)
}

// printDetached says which run goes on by itself. As JSON it has the form of a run that was watched.
func (a *app) printDetached(ctx context.Context, c *client, s *coordinatorv1.SubmitResponse, to destination) error {
	if a.json() {
		r, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: s.GetRunId()})
		if err != nil {
			return err
		}
		return a.printJSON(map[string]any{"run": ui.Plain(r.GetRun()), "existing": s.GetExisting(), "notes": append([]string{}, s.GetNotes()...), "exit_code": exitOK})
	}
	if !to.empty() {
		a.note("%s is not written yet: %s does that", to.name(), to.again(s.GetRunId()))
	}
	next := []string{to.again(s.GetRunId())}
	if watch := "loopkeeper watch " + s.GetRunId(); to.text {
		next = append([]string{watch}, next...)
	} else {
		next = append(next, "loopkeeper result "+s.GetRunId())
	}
	a.next(next...)
	return a.printText(s.GetRunId() + "\n")
}

func (a *app) printDryRun(j job, r *coordinatorv1.SubmitResponse) error {
	if a.json() {
		plain := ui.Plain(r)
		if j.long != nil {
			plain["too_long"] = j.long
		}
		return a.printJSON(plain)
	}
	for _, f := range r.GetFits() {
		if err := a.printText(ui.Explain(a.style(a.stdout), f.GetExplanation(), time.Now())); err != nil {
			return err
		}
	}
	if len(distinct(j.models)) == 0 {
		a.note("models are not checked; name them with --model")
	}
	if j.long != nil {
		a.note("%s %s", a.style(a.stderr).Warn("warning:"), j.long.text())
		a.next("loopkeeper fit "+quote(j.long.Model)+"  # says how large a context each machine has room for; models.contexts in the settings sets it",
			"loopkeeper workflows show partition  # takes a long text in parts")
		return a.printText("dry run: nothing was started\n")
	}
	return a.printText("dry run: all is well, nothing was started\n")
}
