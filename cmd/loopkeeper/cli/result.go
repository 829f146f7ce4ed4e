package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type resultOptions struct {
	items  bool
	to     destination
	print  string
	failed string
}

func newResult(a *app) *cobra.Command {
	var o resultOptions
	c := &cobra.Command{
		Use: "result RUN", Short: "Print a run's results, coverage and failures", Args: cobra.ExactArgs(1),
		Long: "Print a run's results, coverage and failures, and exit by its state. Of a run under way: what is final so far, and exit\n" +
			"code 17.",
		Example: "  loopkeeper result 7f3k\n  loopkeeper result 7f3k --out out.jsonl\n  loopkeeper result 7f2a --print result --out notes.md\n" +
			"  loopkeeper result 7f3k --failed-to failed.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.result(ctx, c, args[0], o) })
		},
	}
	c.Flags().BoolVar(&o.items, "items", false, "print the items of the first batch instead of the outputs")
	c.Flags().StringVar(&o.to.out, "out", "", "write the batch's results to this `FILE`; with --print that output's text")
	c.Flags().StringVar(&o.to.dir, "out-dir", "", "write a file per input into this `FOLDER`")
	c.Flags().StringVar(&o.print, "print", "", "print only the output of this `NAME`; what a script returns is called result")
	c.Flags().StringVar(&o.failed, "failed-to", "", "write the keys of the items that failed to this `FILE`, one per line")
	return c
}

func (a *app) result(ctx context.Context, c *client, id string, o resultOptions) error {
	if o.print != "" && (o.items || o.to.dir != "" || o.failed != "") || o.failed != "" && (o.items || !o.to.empty()) {
		return usagef("--print, --failed-to and the results of a batch are three different things: ask for one")
	}
	r, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
	if err != nil {
		return err
	}
	run := r.GetRun()
	for _, out := range []string{o.to.out, o.failed} {
		if err := keepsInputsOf(ctx, c, run, destination{out: out, dir: o.to.dir}); err != nil {
			return err
		}
	}
	switch {
	case o.print != "":
		return a.printOutput(ctx, c, run, o)
	case o.failed != "":
		return a.writeFailed(ctx, c, run, o.failed)
	case !o.items && o.to.empty() && !isMap(run):
		return a.showOutputs(ctx, c, run, "")
	}
	if err := needBatch(run); err != nil {
		return err
	}
	results, err := a.sinkFor(o.to)
	if err == nil {
		err = unwrittenOf(run, run.GetId(), results.begin())
	}
	if err != nil {
		return err
	}
	items := &collector{c: c, run: run.GetId(), sink: results}
	if run.GetEnded() != nil {
		err = items.rest(ctx, run)
	} else {
		err = items.advance(ctx, run)
	}
	if err := unwrittenOf(run, run.GetId(), firstError(err, results.flush(), results.close())); err != nil {
		return err
	}
	return a.conclude(conclusion{runs: []*coordinatorv1.Run{run}, extra: heldItems(results), wrote: results.written()})
}

// isMap says whether a run's result is its items: it is one of the built-in workflow map.
func isMap(r *coordinatorv1.Run) bool { return r.GetWorkflow() == "map" }

// needBatch refuses what only the items of a batch can answer. One of the workflow map has a batch as soon as it runs.
func needBatch(r *coordinatorv1.Run) error {
	if hasBatch(r) || isMap(r) {
		return nil
	}
	e := apierr.New(apierr.InvalidArgument, "run %s (%s) has no batch, so there are no results by item", r.GetId(), r.GetWorkflow())
	if r.GetEnded() == nil {
		e.Message += " yet"
		return e.WithNext("loopkeeper watch " + r.GetId())
	}
	return e.WithNext("loopkeeper result "+r.GetId()+" --print "+mainOutput+" --out FILE", "loopkeeper result "+r.GetId())
}

// printOutput prints or writes the text of one output.
func (a *app) printOutput(ctx context.Context, c *client, r *coordinatorv1.Run, o resultOptions) error {
	result, err := c.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: r.GetId()})
	if err != nil {
		return err
	}
	outputs, err := a.outputs(ctx, c, result)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(outputs, func(one output) bool { return one.Name == o.print })
	end := conclusion{runs: []*coordinatorv1.Run{result.GetRun()}}
	switch {
	case i < 0 && result.GetRun().GetEnded() == nil:
		return a.conclude(end)
	case i < 0:
		return noOutput(r, o.print, outputs)
	case o.to.out != "":
		end.wrote = []string{o.to.out + ": the output " + o.print}
		err = saveText(o.to.out, outputs[i].text())
	case a.json():
	case terminal(a.stdout):
		err = a.printText(ui.Text(outputs[i].text()))
	default:
		err = a.printText(outputs[i].text())
	}
	if err := unwrittenOf(end.runs[0], r.GetId(), err); err != nil {
		return err
	}
	if a.json() {
		end.extra = map[string]any{"outputs": outputs[i : i+1]}
	}
	return a.conclude(end)
}

func noOutput(r *coordinatorv1.Run, name string, outputs []output) error {
	e := apierr.New(apierr.NotFound, "run %s has no output %s", r.GetId(), name)
	for _, o := range outputs {
		e.Next = append(e.Next, "loopkeeper result "+r.GetId()+" --print "+quote(o.Name))
	}
	return e.WithNext("loopkeeper show " + r.GetId())
}
