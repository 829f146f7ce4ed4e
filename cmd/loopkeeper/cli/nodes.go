package cli

import (
	"context"
	"slices"
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
		Use: "nodes [NODE]", Short: "Show the machines and what is loaded; drain, pause, resume them", Args: cobra.MaximumNArgs(1),
		Long: "Show the machines, their memory, what is loaded and what waits; with the name of one, its page.\n\n" +
			"Memory: MODELS is what loaded models hold, OTHERS what other programs use, RESERVE what is kept free; AVAILABLE is left for\n" +
			"another model. BUSY counts the calls that run on a model, of those that it takes at once.",
		Example: "  loopkeeper nodes\n  loopkeeper nodes den\n  loopkeeper nodes pause den --for 2h\n  loopkeeper nodes --up 2 --timeout 1m   # wait until two are there",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := waitForNodes(ctx, c, up, patience)
				if err != nil {
					return err
				}
				if len(args) == 1 {
					return a.printNode(cmd, r, args[0])
				}
				return a.printNodes(c, r)
			})
		},
	}
	c.Flags().IntVar(&up, "up", 0, "wait until `N` of nodes is up")
	c.Flags().DurationVar(&patience, "timeout", 30*time.Second, "`TIME` that --up waits at most")
	c.AddCommand(newDrain(a), newPause(a), newResume(a))
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
				WithNext("loopkeeper nodes  # says what is wrong with the others", "loopkeeper up --worker HOST:PORT  # when they are not found")
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

// printNode shows the page of one machine.
func (a *app) printNode(cmd *cobra.Command, r *coordinatorv1.ListNodesResponse, name string) error {
	n, err := nodeNamed(r, name)
	if err != nil {
		var commands []string
		for _, near := range cmd.SuggestionsFor(name) {
			commands = append(commands, cmd.CommandPath()+" "+near+" NODE")
		}
		e := apierr.As(err)
		if e.Code == apierr.NotFound && len(commands) == 0 {
			e = apierr.As(meant(err, name, nodeNames(r)))
		}
		e.Next = append(commands, e.Next...)
		return e
	}
	if a.json() {
		return a.printJSON(ui.Plain(n))
	}
	s := a.style(a.stdout)
	about := slices.DeleteFunc(slices.Clone(r.GetFindings()), func(f *coordinatorv1.Finding) bool { return f.GetNode() != n.GetName() && f.GetNode() != n.GetId() })
	return a.printText(ui.Node(s, n, time.Now()) + ui.Findings(s, about))
}

// nodeNamed is the machine with an id or else a name.
func nodeNamed(r *coordinatorv1.ListNodesResponse, name string) (*coordinatorv1.Node, error) {
	var found []*coordinatorv1.Node
	for _, n := range r.GetNodes() {
		if n.GetId() == name {
			return n, nil
		}
		if n.GetName() == name {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, apierr.New(apierr.NotFound, "no machine is named %s", name).WithNext("loopkeeper nodes")
	default:
		return nil, apierr.New(apierr.InvalidArgument, "%d machines are named %s: give the id of one", len(found), name).WithNext("loopkeeper nodes -o json")
	}
}
