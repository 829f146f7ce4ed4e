package cli

import (
	"context"

	"github.com/spf13/cobra"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type resultOptions struct {
	items       bool
	out, outDir string
}

func newResult(a *app) *cobra.Command {
	var o resultOptions
	c := &cobra.Command{
		Use: "result RUN", Short: "Print a run's results, coverage and failures", Args: cobra.ExactArgs(1),
		Long:    "Print a run's results, coverage and failures, and exit by its state. Of a run under way: what is final so far.",
		Example: "  loopkeeper result 7ex9\n  loopkeeper result 7ex9 --out out.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.result(ctx, c, args[0], o) })
		},
	}
	c.Flags().BoolVar(&o.items, "items", false, "print the items of the first batch instead of the outputs")
	c.Flags().StringVar(&o.out, "out", "", "write the batch's results to this `file`")
	c.Flags().StringVar(&o.outDir, "out-dir", "", "write a file per input into this `folder`")
	return c
}

func (a *app) result(ctx context.Context, c *client, id string, o resultOptions) error {
	r, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
	if err != nil {
		return err
	}
	run := r.GetRun()
	if !o.items && o.out == "" && o.outDir == "" && !isMap(run) {
		return a.showOutputs(ctx, c, run)
	}
	results, err := a.sinkFor(o.out, o.outDir)
	if err != nil {
		return err
	}
	items := &collector{c: c, run: run.GetId(), sink: results}
	if run.GetEnded() != nil {
		err = items.rest(ctx, run)
	} else {
		err = items.advance(ctx, run)
	}
	if err := firstError(err, results.flush(), results.close()); err != nil {
		return err
	}
	return a.summarise(run, heldItems(results))
}

// isMap says whether a run's result is its items: it is one of the built-in workflow map.
func isMap(r *coordinatorv1.Run) bool { return r.GetWorkflow() == "map" }
