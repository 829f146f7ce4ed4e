package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newRuns(a *app) *cobra.Command {
	var limit int32
	var states []string
	c := &cobra.Command{
		Use: "runs", Short: "List the runs, newest first", Args: cobra.NoArgs,
		Example: "  loopkeeper runs\n  loopkeeper runs --state incomplete --state failed -o jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.ListRuns(ctx, &coordinatorv1.ListRunsRequest{Limit: limit, States: states})
				if err != nil {
					return err
				}
				if !a.json() {
					return a.printText(ui.Runs(a.style(a.stdout), r.GetRuns(), time.Now()))
				}
				list := []any{}
				for _, one := range r.GetRuns() {
					list = append(list, ui.Plain(one))
				}
				return a.printList("runs", list)
			})
		},
	}
	c.Flags().Int32Var(&limit, "limit", 0, "at most `N` (default 50)")
	c.Flags().StringArrayVar(&states, "state", nil, "only runs in this `STATE`; may be repeated")
	return c
}

// withClient runs a command that talks to the coordinator.
func (a *app) withClient(ctx context.Context, do func(context.Context, *client) error) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return do(ctx, c)
}
