package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel RUN", Short: "End a run; what is in flight is cancelled too", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper cancel 7f3k --reason 'wrong model'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.CancelRun(ctx, &coordinatorv1.CancelRunRequest{RunId: args[0], Reason: reason})
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(ui.Plain(r.GetRun()))
				}
				return a.printText(fmt.Sprintf("run %s  %s%s\n", r.GetRun().GetId(), a.style(a.stdout).State(r.GetRun().GetState()), ui.Simulated(r.GetRun().GetSimulated())))
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "cancelled at the command line", "`TEXT` that says why; the trace keeps it")
	return c
}
