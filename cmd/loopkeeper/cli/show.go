package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a run with its steps and nodes", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper show 7f3k",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: args[0]})
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(ui.Plain(r.GetRun()))
				}
				a.next(a.afterwards(r.GetRun())...)
				return a.printText(ui.Show(a.style(a.stdout), r.GetRun(), time.Now()))
			})
		},
	}
}
