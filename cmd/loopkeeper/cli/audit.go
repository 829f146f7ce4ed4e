package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newAudit(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "audit RUN", Short: "Look for what a run's record should show and does not", Args: cobra.ExactArgs(1),
		Long: "Look for what a run's record should show and does not: rows of like requests that one batch would have saved, branches side by side that write the same place, " +
			"failures that cannot be replayed, outputs without a step that succeeded, what is not covered, claims that nothing stands behind, and events " +
			"that are not what was written. No model is called. The exit code is 1 when something was found.",
		Example: "  loopkeeper audit 7f3k\n  loopkeeper audit 7f3k -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.audit(ctx, c, args[0]) })
		},
	}
}

func (a *app) audit(ctx context.Context, c *client, id string) error {
	r, err := c.records().Audit(ctx, &coordinatorv1.AuditRequest{RunId: id})
	if err != nil {
		return err
	}
	found := 0
	for _, check := range r.GetChecks() {
		found += len(check.GetFindings())
	}
	if a.json() {
		err = a.printJSON(ui.Plain(r))
	} else {
		err = a.printText(a.audited(r, found))
	}
	if err == nil && found > 0 {
		return exitWith(exitError)
	}
	return err
}

func (a *app) audited(r *coordinatorv1.AuditResponse, found int) string {
	s := a.style(a.stdout)
	l := &labelled{width: s.Width}
	for _, check := range r.GetChecks() {
		mark := "completed"
		if !check.GetPassed() {
			mark = "incomplete"
		}
		l.text(s.Mark(mark) + " ")
		l.add("", fmt.Sprintf("%-13s ", check.GetCode()), check.GetQuestion()+" "+check.GetAnswer())
		for _, f := range check.GetFindings() {
			l.add("    ", "found", f)
		}
	}
	if found == 0 {
		l.text("nothing found\n")
	}
	return l.String()
}
