package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newNodes(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "nodes", Short: "Show the machines, their memory and what is loaded", Args: cobra.NoArgs,
		Example: "  loopkeeper nodes\n  loopkeeper nodes -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer c.close()
			r, err := c.ListNodes(cmd.Context(), &coordinatorv1.ListNodesRequest{})
			if err != nil {
				return err
			}
			if a.json() {
				return a.printNodes(r)
			}
			return a.printText(ui.Nodes(a.style(a.stdout), r, c.info.GetDiscovery(), time.Now()))
		},
	}
}

func (a *app) printNodes(r *coordinatorv1.ListNodesResponse) error {
	if a.flags.output == "json" {
		return a.printJSON(ui.Plain(r))
	}
	for _, n := range r.GetNodes() {
		if err := a.printJSON(ui.Plain(n)); err != nil {
			return err
		}
	}
	return nil
}
