package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newSuspend(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "suspend RUN", Short: "Park a run: what is in flight ends, nothing new starts", Args: cobra.ExactArgs(1),
		Long:    "Park a run and what it has spawned: what is in flight ends, nothing new starts, and no time counts. It stays so over restarts.",
		Example: "  loopkeeper suspend 7f3k --reason 'the fans are too loud'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd.Context(), func(ctx context.Context, c *client) (*coordinatorv1.Run, error) {
				r, err := c.SuspendRun(ctx, &coordinatorv1.SuspendRunRequest{RunId: args[0], Reason: reason, By: who()})
				return already(ctx, c, args[0], r.GetRun(), err, func(r *coordinatorv1.Run) error {
					if r.GetState() == "suspended" {
						return apierr.New(apierr.Conflict, "run %s is suspended already", r.GetId()).WithNext("loopkeeper resume " + r.GetId())
					}
					return err
				})
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why; the run shows it")
	return c
}

func newResumeRun(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume RUN", Short: "Let a suspended run go on", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper resume 7f3k",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd.Context(), func(ctx context.Context, c *client) (*coordinatorv1.Run, error) {
				r, err := c.ResumeRun(ctx, &coordinatorv1.ResumeRunRequest{RunId: args[0], By: who()})
				return already(ctx, c, args[0], r.GetRun(), err, func(r *coordinatorv1.Run) error {
					if r.GetEnded() == nil {
						return apierr.New(apierr.Conflict, "run %s is not suspended: it is %s", r.GetId(), r.GetState()).WithNext(a.afterwards(r)...)
					}
					return err
				})
			})
		},
	}
}

// already says of a run that is where it was to be brought so, instead of what the coordinator's books make of it.
func already(ctx context.Context, c *client, id string, r *coordinatorv1.Run, err error, say func(*coordinatorv1.Run) error) (*coordinatorv1.Run, error) {
	if codeOf(err) != apierr.Conflict {
		return r, err
	}
	found, failed := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
	if failed != nil {
		return r, err // what went wrong first matters more
	}
	return r, say(found.GetRun())
}

func newRollback(a *app) *cobra.Command {
	q := &coordinatorv1.RollBackRequest{}
	c := &cobra.Command{
		Use: "rollback RUN PHASE --reason TEXT", Short: "Take a pipeline back to an earlier phase", Args: cobra.ExactArgs(2),
		Long: "Take a pipeline back to an earlier phase that has completed. The phase in progress ends, that one and those after it are done again,\n" +
			"and the reason is among what they are given.",
		Example: "  loopkeeper rollback 7f3k design --reason 'the interface cannot be tested'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Reason == "" {
				return usagef("--reason is missing: the phase is told why it is done again")
			}
			return a.steer(cmd.Context(), func(ctx context.Context, c *client) (*coordinatorv1.Run, error) {
				q.RunId, q.Phase, q.By = args[0], args[1], who()
				r, err := c.RollBack(ctx, q)
				return r.GetRun(), err
			})
		},
	}
	c.Flags().StringVar(&q.Reason, "reason", "", "`TEXT` that says why, for the phase and the ledger")
	c.Flags().StringVar(&q.Pipeline, "pipeline", "", "`NAME` of the pipeline (default the one in progress)")
	return c
}

// steer does something with a run and says where it stands then.
func (a *app) steer(ctx context.Context, do func(context.Context, *client) (*coordinatorv1.Run, error)) error {
	return a.withClient(ctx, func(ctx context.Context, c *client) error {
		r, err := do(ctx, c)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(ui.Plain(r))
		}
		phase := ui.PhaseNow(r)
		if phase != "" {
			phase = "  " + phase
		}
		a.next(a.afterwards(r)...)
		return a.printText(fmt.Sprintf("run %s  %s%s%s\n", r.GetId(), a.style(a.stdout).State(r.GetState()), phase, ui.Simulated(ui.SimulatedRun(r))))
	})
}
