package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newNodes(a *app) *cobra.Command {
	var up int
	var patience time.Duration
	c := &cobra.Command{
		Use: "nodes", Short: "Show the machines, their memory and what is loaded", Args: cobra.NoArgs,
		Example: "  loopkeeper nodes\n  loopkeeper nodes --up 2 --timeout 1m   # wait until two are there",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := waitForNodes(ctx, c, up, patience)
				if err != nil {
					return err
				}
				return a.printNodes(c, r)
			})
		},
	}
	c.Flags().IntVar(&up, "up", 0, "wait until `N` of nodes is up")
	c.Flags().DurationVar(&patience, "timeout", 30*time.Second, "`TIME` that --up waits at most")
	return c
}

// askAgain is how often the coordinator is asked for its nodes while somebody waits for one.
const askAgain = 100 * time.Millisecond

// waitForNodes returns the nodes once so many are up.
func waitForNodes(ctx context.Context, c *client, up int, patience time.Duration) (*coordinatorv1.ListNodesResponse, error) {
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
		if err != nil || nodesUp(r) >= up {
			return r, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			return nil, apierr.New(apierr.Unavailable, "%d of %d nodes are up after %s", nodesUp(r), up, patience).
				WithNext("loopkeeper nodes says what is wrong with the others", "loopkeeper up --worker HOST:PORT when they are not found")
		}
	}
}

func nodesUp(r *coordinatorv1.ListNodesResponse) int {
	n := 0
	for _, node := range r.GetNodes() {
		if node.GetState() == "up" {
			n++
		}
	}
	return n
}

func (a *app) printNodes(c *client, r *coordinatorv1.ListNodesResponse) error {
	switch a.flags.output {
	case "json":
		return a.printJSON(ui.Plain(r))
	case "jsonl":
		for _, n := range r.GetNodes() {
			if err := a.printJSON(ui.Plain(n)); err != nil {
				return err
			}
		}
		return nil
	default:
		return a.printText(ui.Nodes(a.style(a.stdout), r, c.info.GetDiscovery(), time.Now()))
	}
}
