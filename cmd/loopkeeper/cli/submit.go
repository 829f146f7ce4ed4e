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
}

// runFlags are those of every command that starts a run.
type runFlags struct {
	key    string
	limit  time.Duration
	detach bool
	dryRun bool
}

func (f *runFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "key", "", "idempotency `key`: the same key names the same run, whatever happens in between")
	c.Flags().DurationVar(&f.limit, "time-limit", 0, "most active `time` of the run, such as 2h")
	c.Flags().BoolVar(&f.detach, "detach", false, "start the run and return at once")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "check everything, say where each model fits, and start nothing")
}

// submit sends a job. Everything that can be known to fail fails here.
func (a *app) submit(ctx context.Context, c *client, j job, dry bool) (*coordinatorv1.SubmitResponse, error) {
	raw, err := json.Marshal(j.input)
	if err != nil {
		return nil, fmt.Errorf("write the input as JSON: %w", err)
	}
	r := &coordinatorv1.SubmitRequest{InputJson: raw, Key: j.key, DryRun: dry, Models: distinct(j.models), TimeLimitSeconds: int64(j.limit / time.Second)}
	if j.bundle != nil {
		r.Workflow = &coordinatorv1.SubmitRequest_Bundle{Bundle: j.bundle}
	} else {
		r.Workflow = &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: j.builtIn}
	}
	return c.Submit(ctx, r)
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
	r, err := a.submit(ctx, c, j, f.dryRun)
	if err != nil {
		return "", err
	}
	if f.dryRun {
		return "", a.printDryRun(r)
	}
	if !a.json() {
		for _, n := range r.GetNotes() {
			a.note("%s", n)
		}
		if r.GetExisting() {
			a.note("run %s has this key already", r.GetRunId())
		}
	}
	if !f.detach {
		return r.GetRunId(), nil
	}
	if a.json() {
		return "", a.printJSON(map[string]any{"run": r.GetRunId(), "existing": r.GetExisting(), "notes": append([]string{}, r.GetNotes()...)})
	}
	a.next("loopkeeper watch "+r.GetRunId(), "loopkeeper result "+r.GetRunId())
	return "", a.printText(r.GetRunId() + "\n")
}

func (a *app) printDryRun(r *coordinatorv1.SubmitResponse) error {
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	for _, f := range r.GetFits() {
		if err := a.printText(ui.Explain(a.style(a.stdout), f.GetExplanation())); err != nil {
			return err
		}
	}
	return a.printText("dry run: all is well, nothing was started\n")
}

// summarise says how a run ended and returns what the process exits with.
func (a *app) summarise(r *coordinatorv1.Run, extra map[string]any) error {
	end := ended(r.GetState())
	switch a.flags.output {
	case "jsonl":
		line := map[string]any{"type": "summary", "run": ui.Plain(r), "exit_code": exitCode(end)}
		for k, v := range extra {
			line[k] = v
		}
		return firstError(a.printJSON(line), end)
	case "json":
		all := map[string]any{"run": ui.Plain(r), "exit_code": exitCode(end)}
		for k, v := range extra {
			all[k] = v
		}
		return firstError(a.printJSON(all), end)
	}
	a.note("%s", trimNewline(ui.Summary(a.style(a.stderr), r, time.Now(), exitCode(end))))
	a.next(afterwards(r)...)
	return end
}

func trimNewline(s string) string {
	for len(s) > 0 && s[len(s)-1] == '\n' {
		s = s[:len(s)-1]
	}
	return s
}

// afterwards is what to look at when a run did not end as it should.
func afterwards(r *coordinatorv1.Run) []string {
	switch r.GetState() {
	case "completed":
		return nil
	case "incomplete":
		return []string{"loopkeeper result " + r.GetId(), "loopkeeper trace " + r.GetId()}
	default:
		return []string{"loopkeeper show " + r.GetId(), "loopkeeper trace " + r.GetId()}
	}
}
