package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Read the whole ledger and report what is not as it was written", Args: cobra.NoArgs,
		Long: "Read the whole ledger and report what is not as it was written: events that were changed, taken out or added, and bodies that are damaged " +
			"or missing. Runs go on meanwhile. The exit code is 1 when something was found.",
		Example: "  loopkeeper verify",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.verify(ctx, c) })
		},
	}
}

func (a *app) verify(ctx context.Context, c *client) error {
	done := a.slow("reading everything")
	r, err := c.records().VerifyLedger(ctx, &coordinatorv1.VerifyLedgerRequest{})
	done()
	if err != nil {
		return err
	}
	if a.json() {
		err = a.printJSON(ui.Plain(r))
	} else {
		text := fmt.Sprintf("%s, %s, %s of %s bytes", ui.Plural(r.GetRuns(), "run", "runs"), ui.Plural(r.GetEvents(), "event", "events"),
			ui.Plural(r.GetArtifacts(), "body", "bodies"), ui.Count(r.GetArtifactBytes()))
		if n := r.GetPruned(); n > 0 {
			text += ", " + ui.Count(n) + " dropped"
		}
		l := &labelled{width: a.style(a.stdout).Width}
		for _, p := range r.GetProblems() {
			l.add("", "problem", p.GetSubject()+": "+p.GetDetail())
		}
		if len(r.GetProblems()) == 0 {
			text = "all as it was written: " + text
		}
		err = a.printText(l.String() + text + "\n")
	}
	if err == nil && len(r.GetProblems()) > 0 {
		a.note("restore a backup: stop loopkeeper up, and put the backup's folder in the place of ledger in the data folder")
		return exitWith(exitError)
	}
	return err
}
