package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel RUN", Short: "End a run; what is in flight is cancelled too", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper cancel 7f3k --reason 'wrong model'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				return a.cancel(ctx, c, args[0], reason)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "cancelled at the command line", "`TEXT` that says why; the trace keeps it")
	return c
}

// cancel ends a run. One that was cancelled before is as it was wanted.
func (a *app) cancel(ctx context.Context, c *client, id, reason string) error {
	r, err := c.CancelRun(ctx, &coordinatorv1.CancelRunRequest{RunId: id, Reason: reason})
	run, before := r.GetRun(), ""
	if codeOf(err) == apierr.Conflict {
		found, e := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
		if e == nil && found.GetRun().GetState() == "cancelled" {
			run, before, err = found.GetRun(), ", it had ended already", nil
		}
	}
	switch {
	case err != nil:
		return err
	case a.json():
		return a.printJSON(ui.Plain(run))
	}
	return a.printText(fmt.Sprintf("run %s  %s%s%s\n", run.GetId(), a.style(a.stdout).State(run.GetState()), before, ui.Simulated(run.GetSimulated())))
}
