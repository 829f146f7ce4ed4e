package cli

import (
	"context"

	"github.com/spf13/cobra"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newWatch(a *app) *cobra.Command {
	var to destination
	var wait bool
	c := &cobra.Command{
		Use: "watch RUN", Short: "Follow a run until it ends", Args: cobra.ExactArgs(1),
		Long:    "Follow a run until it ends, and exit by its state. Ctrl-C ends the watching, not the run.",
		Example: "  loopkeeper watch 7f3k\n  loopkeeper watch 7f3k --out out.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.giveUp = !wait
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.watch(ctx, c, args[0], to) })
		},
	}
	c.Flags().StringVar(&to.out, "out", "", "write the batch's results to this `FILE`, from the first one on")
	registerWait(c, &wait)
	c.Flags().StringVar(&to.dir, "out-dir", "", "write a file per input into this `FOLDER`")
	return c
}

// watch follows a run; with a destination its results are written again from the first one.
func (a *app) watch(ctx context.Context, c *client, id string, to destination) error {
	r, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id}) // a prefix becomes the id, and a typing error no empty file
	if err != nil {
		return err
	}
	id = r.GetRun().GetId()
	if to.empty() {
		last, err := a.follow(ctx, c, id, nil, to)
		if err != nil {
			return err
		}
		return a.summarise(last, nil)
	}
	if err := needBatch(r.GetRun()); err != nil {
		return err
	}
	if err := keepsInputsOf(ctx, c, r.GetRun(), to); err != nil {
		return err
	}
	results, err := a.sinkFor(to)
	if err != nil {
		return err
	}
	if err := results.begin(); err != nil {
		return unwrittenOf(r.GetRun(), id, err)
	}
	last, err := a.follow(ctx, c, id, &collector{c: c, run: id, sink: results}, to)
	if err == nil {
		err = results.flush()
	}
	if err := unwrittenOf(last, id, firstError(err, results.close())); err != nil {
		return err
	}
	return a.conclude(conclusion{runs: []*coordinatorv1.Run{last}, extra: heldItems(results), wrote: results.written()})
}
