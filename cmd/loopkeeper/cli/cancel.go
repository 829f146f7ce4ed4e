package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel RUN", Short: "End a run, what it has in flight, and the runs that it started", Args: cobra.ExactArgs(1),
		Long:    "End a run, what it has in flight, and every run that it has started and not detached, all at one moment.",
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
	if err != nil {
		return err
	}
	tree, err := below(ctx, c, run, 1)
	switch {
	case err != nil:
		return err
	case a.json():
		m, all := ui.Plain(run), []any{}
		for _, d := range tree {
			all = append(all, ui.Plain(d.run))
		}
		m["tree"] = all
		return a.printJSON(m)
	}
	text := fmt.Sprintf("run %s  %s%s%s\n", run.GetId(), a.style(a.stdout).State(run.GetState()), before, ui.Simulated(ui.SimulatedRun(run)))
	for _, d := range tree {
		text += fmt.Sprintf("%srun %s  %s  %s\n", strings.Repeat("  ", d.depth), d.run.GetId(), ui.Line(d.run.GetWorkflow()), a.style(a.stdout).State(d.run.GetState()))
	}
	return a.printText(text)
}

// descendant is a run that another one started, and how far below.
type descendant struct {
	run   *coordinatorv1.Run
	depth int
}

// mostBelow bounds how many runs are looked up for one answer.
const mostBelow = 500

// below lists the runs that a run has started, and those that they have.
func below(ctx context.Context, c *client, r *coordinatorv1.Run, depth int) (out []descendant, err error) {
	for _, id := range r.GetChildren() {
		if len(out) >= mostBelow {
			break
		}
		child, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
		if err != nil {
			return nil, err
		}
		out = append(out, descendant{child.GetRun(), depth})
		more, err := below(ctx, c, child.GetRun(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}
