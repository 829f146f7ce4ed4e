package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// again are the flags of both commands that make a new run of an ended one.
type again struct {
	ask    *coordinatorv1.ForkRunRequest
	to     destination
	models []string
	sets   []string
	limit  time.Duration // of active time; 0: that of the run it is made of
	detach bool
	wait   bool
}

func (o *again) register(c *cobra.Command) {
	o.ask = &coordinatorv1.ForkRunRequest{}
	f := c.Flags()
	f.StringArrayVar(&o.models, "model", nil, "use another model: `OLD=NEW`; may be repeated")
	registerLimits(c, &o.limit, &o.ask.Limits, "as the other run's")
	f.StringVar(&o.ask.Key, "key", "", "idempotency `KEY`: the same key names the same run")
	f.BoolVar(&o.detach, "detach", false, "start the run and return at once")
	f.BoolVar(&o.ask.DryRun, "dry-run", false, "check everything, say what would be taken over, and start nothing")
	f.StringVar(&o.to.out, "out", "", "write the batch's results to this `FILE`")
	f.StringVar(&o.to.dir, "out-dir", "", "write a file per input into this `FOLDER`")
	registerWait(c, &o.wait)
}

func newRetry(a *app) *cobra.Command {
	var o again
	var failed bool
	c := &cobra.Command{
		Use: "retry RUN", Short: "Do what failed in a run again, as a new run", Args: cobra.ExactArgs(1),
		Long: "Do what failed or is missing in a run again, as a new run with the same script and input: what succeeded is taken over and costs\n" +
			"nothing. A write to the outside is done again only when it is known that it did not happen.",
		Example: "  loopkeeper retry 7f3k --failed\n  loopkeeper retry 7f3k --failed --limit tokens=2000000 --time-limit 4h\n  loopkeeper retry 7f3k --failed --model qwen3:8b=qwen3:14b --out out.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !failed {
				return usageError{usagef("--failed=false would leave nothing to do again"), []string{"loopkeeper fork " + quote(args[0]) + " --from STEP"}}
			}
			if err := limitTime(o.limit); err != nil {
				return err
			}
			o.ask.RunId, o.ask.Failed = args[0], true
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.fork(ctx, c, o) })
		},
	}
	o.register(c)
	c.Flags().BoolVar(&failed, "failed", true, "what failed or is missing, which is all that there is to do again")
	return c
}

func newFork(a *app) *cobra.Command {
	var o again
	c := &cobra.Command{
		Use: "fork RUN --from STEP", Short: "Start a new run that takes over a run's first steps", Args: cobra.ExactArgs(1),
		Long: "Start a new run that takes over what succeeded in an ended one before STEP, and does the rest anew. With --set and --model the rest\n" +
			"has other parameters or models; without --from everything is taken over that is asked for in the same way.",
		Example: "  loopkeeper fork 7f3k --from 12\n  loopkeeper fork 7f3k --set rules=@rules.md\n  loopkeeper fork 7f3k --from 3 --model qwen3:8b=qwen3:14b",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ask.RunId = args[0]
			if o.ask.From == "" && len(o.sets) == 0 && len(o.models) == 0 && len(o.ask.Limits) == 0 && o.limit == 0 {
				return usagef("say where it forks, or what is different: --from, --set, --model, --limit or --time-limit")
			}
			if err := limitTime(o.limit); err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.fork(ctx, c, o) })
		},
	}
	o.register(c)
	c.Flags().StringVar(&o.ask.From, "from", "", "first `STEP` that is done anew; loopkeeper show lists them")
	c.Flags().StringArrayVar(&o.sets, "set", nil, "another parameter, `NAME=VALUE`; @path is a file; may be repeated")
	return c
}

// fork starts a run on the base of another one and shows it like any other.
func (a *app) fork(ctx context.Context, c *client, o again) error {
	var err error
	if o.ask.Models, err = pairs(o.models); err != nil {
		return err
	}
	o.ask.TimeLimitSeconds = int64(o.limit / time.Second)
	if len(o.sets) > 0 {
		if o.ask.SetJson, err = a.forkSets(ctx, c, o); err != nil {
			return err
		}
	}
	r, err := c.ForkRun(ctx, o.ask)
	if err != nil {
		return nearModels(ctx, c, values(o.ask.Models), err)
	}
	taken := fmt.Sprintf("takes over what succeeded in %s of run %s", ui.Plural(int64(r.GetSteps()), "step", "steps"), o.ask.GetRunId())
	if o.ask.DryRun {
		if a.json() {
			return a.printJSON(ui.Plain(r))
		}
		return a.printText("dry run: it " + taken + "; nothing was started\n")
	}
	if !a.json() {
		for _, n := range r.GetNotes() {
			a.note("%s", ui.Line(n))
		}
		if r.GetExisting() {
			taken = "has this key already"
		}
		a.note("run %s %s", r.GetRunId(), taken)
	}
	if o.detach {
		return a.printDetached(ctx, c, &coordinatorv1.SubmitResponse{RunId: r.GetRunId(), Existing: r.GetExisting(), Notes: r.GetNotes()}, o.to)
	}
	a.giveUp = !o.wait
	if _, err := a.follow(ctx, c, r.GetRunId(), nil, o.to); err != nil {
		return err
	}
	return a.result(ctx, c, r.GetRunId(), resultOptions{to: o.to})
}

// forkSets reads --set with the parameters that the run's script declares.
func (a *app) forkSets(ctx context.Context, c *client, o again) ([]byte, error) {
	d, err := c.DescribeWorkflow(ctx, &coordinatorv1.DescribeWorkflowRequest{Workflow: &coordinatorv1.DescribeWorkflowRequest_RunId{RunId: o.ask.GetRunId()}})
	if err != nil {
		return nil, err
	}
	reader := &paramReader{a: a, c: c}
	if raw := d.GetParamsSchemaJson(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &reader.schema); err != nil {
			return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the parameters of run %s", o.ask.GetRunId())
		}
	}
	in, err := reader.read(ctx, "", o.sets)
	if err != nil {
		return nil, err
	}
	return json.Marshal(in)
}

// pairs reads OLD=NEW.
func pairs(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range list {
		old, now, ok := strings.Cut(p, "=")
		switch {
		case !ok || old == "" || now == "":
			return nil, usagef("--model %q: want OLD=NEW", p)
		case out[old] != "":
			return nil, usagef("--model %s is given twice: which one is meant?", old)
		}
		out[old] = now
	}
	return out, nil
}

func values(m map[string]string) (out []string) {
	for _, name := range sorted(m) {
		out = append(out, m[name])
	}
	return out
}
