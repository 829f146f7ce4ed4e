package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newReplay(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "replay RUN", Short: "Run a run's script again over what is recorded, and compare", Args: cobra.ExactArgs(1),
		Long: "Run a run's script again over what is recorded, and compare everything that it asks for. No model is called and nothing is written. " +
			"The exit code is 14 when the script asks for something else than is recorded.",
		Example: "  loopkeeper replay 7f3k",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.replay(ctx, c, args[0]) })
		},
	}
}

func (a *app) replay(ctx context.Context, c *client, id string) error {
	done := a.slow("replaying")
	r, err := c.records().ReplayRun(ctx, &coordinatorv1.ReplayRunRequest{RunId: id})
	done()
	if err != nil {
		return err
	}
	if a.json() {
		err = a.printJSON(ui.Plain(r))
	} else {
		err = a.printText(a.replayed(id, r))
	}
	if err == nil && r.GetDiverged() != "" {
		return exitWith(exitDiverged)
	}
	return err
}

func (a *app) replayed(id string, r *coordinatorv1.ReplayRunResponse) string {
	l := &labelled{width: a.style(a.stdout).Width}
	compared := ui.Plural(int64(r.GetSteps()), "request", "requests") + " compared in " + ui.Duration(time.Duration(r.GetNanos()))
	switch {
	case r.GetDiverged() != "":
		l.add("", "diverged", r.GetDiverged())
		l.add("  ", "expected", r.GetExpected())
		l.add("  ", "got", r.GetGot())
		l.add("", "until then", compared)
		a.next("loopkeeper trace "+id, "loopkeeper show "+id)
	case r.GetSteps() == 0 && r.GetState() == "queued":
		l.text("the run has not started: there is nothing to compare\n")
	default:
		l.add("", "same", compared+"; the run is "+r.GetState())
	}
	return l.String()
}
