package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
)

func newWorkflows(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "workflows", Short: "List the built-in workflows", Args: cobra.NoArgs,
		Example: "  loopkeeper workflows\n  loopkeeper run map --params",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), a.listWorkflows)
		},
	}
}

func (a *app) listWorkflows(ctx context.Context, c *client) error {
	t := ui.Table{Columns: ui.Columns("WORKFLOW", "ABOUT")}
	list := []any{}
	for _, name := range workflows.List() {
		d, err := describe(ctx, c, job{builtIn: name})
		if err != nil {
			return err
		}
		list = append(list, ui.Plain(d))
		t.Add(name, d.GetDescription())
	}
	if a.json() {
		return a.printList("workflows", list)
	}
	a.next("loopkeeper run WORKFLOW --params")
	return a.printText(t.String())
}
