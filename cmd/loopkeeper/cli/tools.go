package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newTools(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "tools", Short: "List what steps may do on the coordinator's machine", Args: cobra.NoArgs,
		Long: "List what a step may do on the coordinator's machine with tool(name, input), and the folders that it may use, which are those\n" +
			"under `workspaces` in the settings. With -o json the schemas of what goes in and comes out are there, too.",
		Example: "  loopkeeper tools\n  loopkeeper tools -o json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.withClient(cmd.Context(), a.listTools) },
	}
}

func (a *app) listTools(ctx context.Context, c *client) error {
	r, err := c.ListTools(ctx, &coordinatorv1.ListToolsRequest{})
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	style := a.style(a.stdout)
	t := ui.Table{Width: style.Width, Columns: ui.Columns("TOOL", "EFFECT", "~ABOUT")}
	for _, tool := range r.GetTools() {
		about := tool.GetSummary()
		if tool.GetUndoable() {
			about += " It can be undone."
		}
		if tool.GetSimulated() {
			about = strings.TrimSuffix(about, ".") + ", simulated."
		}
		t.Add(tool.GetName(), tool.GetEffect(), ui.Line(about))
	}
	if err := a.printText(t.String()); err != nil {
		return err
	}
	if len(r.GetWorkspaces()) == 0 {
		a.next("loopkeeper config example  # shows how folders are named under `workspaces`")
		return a.printText("No folder may be used.\n")
	}
	w := ui.Table{Width: style.Width, Columns: ui.Columns("WORKSPACE", "/FOLDER", "MAY", "LARGEST FILE")}
	for _, one := range r.GetWorkspaces() {
		may := "read"
		if one.GetWrite() {
			may = "read, write"
		}
		w.Add(one.GetName(), ui.Line(one.GetDir()), may, configs.Size(one.GetMaxBytes()).String())
	}
	return a.printText("\n" + w.String())
}
