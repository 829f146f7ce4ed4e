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

func newWorkflows(a *app) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return a.withClient(cmd.Context(), a.listWorkflows) }
	c := &cobra.Command{
		Use: "workflows", Short: "List the workflows that have a name, and give names to your own", Args: cobra.NoArgs,
		Long: "List the workflows that have a name: the built-in ones and those that were added. A name can be used in `loopkeeper run`,\n" +
			"in schedules, in `loopkeeper ask`, and by scripts with spawn.",
		Example: "  loopkeeper workflows\n  loopkeeper workflows add review.ts\n  loopkeeper run review --params",
		RunE:    list,
	}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List the workflows that have a name", Args: cobra.NoArgs, Example: "  loopkeeper workflows list -o json", RunE: list},
		newWorkflowsAdd(a), newWorkflowsShow(a), newWorkflowsRemove(a))
	return c
}

func newWorkflowsAdd(a *app) *cobra.Command {
	var name string
	var replace bool
	c := &cobra.Command{
		Use: "add FILE", Short: "Keep a script under a name", Args: cobra.ExactArgs(1),
		Long: "Keep a script under a name. What is kept is the script with all that it imports, as it is now: editing the file changes\n" +
			"nothing. Adding it again with --replace changes what starts from then on; a run under way keeps the script that it began with.",
		Example: "  loopkeeper workflows add review.ts\n  loopkeeper workflows add flows/nightly.ts --name nightly-review --replace",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := bundled(args[0])
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.AddWorkflow(ctx, &coordinatorv1.AddWorkflowRequest{Name: name, Bundle: j.bundle, Replace: replace})
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(ui.Plain(r))
				}
				w, what := r.GetWorkflow(), " is kept"
				if r.GetReplaced() {
					what = " is another script from now on; runs under way keep theirs"
				}
				a.next("loopkeeper run " + w.GetName() + " --params")
				return a.printText(w.GetName() + what + "  (" + w.GetScriptSha256()[:12] + ")\n")
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME`, of a-z 0-9 - _ (default the file's, without its ending)")
	c.Flags().BoolVar(&replace, "replace", false, "put this script in the place of the one that has the name")
	return c
}

func newWorkflowsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show what a workflow does and takes", Args: cobra.ExactArgs(1), Example: "  loopkeeper workflows show map",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.ListWorkflows(ctx, &coordinatorv1.ListWorkflowsRequest{})
				if err != nil {
					return err
				}
				i := slices.IndexFunc(r.GetWorkflows(), func(w *coordinatorv1.Workflow) bool { return w.GetName() == args[0] })
				if i < 0 {
					return meant(apierr.New(apierr.NotFound, "no workflow is named %q", args[0]).WithNext("loopkeeper workflows"), args[0], workflowNames(r))
				}
				w := r.GetWorkflows()[i]
				if a.json() {
					return a.printJSON(ui.Plain(w))
				}
				if !w.GetBuiltIn() {
					a.note("added %s, script %s", ui.Clock(w.GetAdded().AsTime(), time.Now()), w.GetScriptSha256()[:12])
				}
				return a.printParams(&coordinatorv1.DescribeWorkflowResponse{Name: w.GetName(), Description: w.GetDescription(), ParamsSchemaJson: w.GetParamsSchemaJson()})
			})
		},
	}
}

func newWorkflowsRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a name", Args: cobra.ExactArgs(1), Example: "  loopkeeper workflows remove review",
		Long: "Forget the name of a workflow that was added. Runs under way go on; a schedule that names it is paused when it would fire next.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				if _, err := c.RemoveWorkflow(ctx, &coordinatorv1.RemoveWorkflowRequest{Name: args[0]}); err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(map[string]any{"removed": args[0]})
				}
				return a.printText(args[0] + " is forgotten\n")
			})
		},
	}
}

func workflowNames(r *coordinatorv1.ListWorkflowsResponse) []string {
	var names []string
	for _, w := range r.GetWorkflows() {
		names = append(names, w.GetName())
	}
	return names
}

func (a *app) listWorkflows(ctx context.Context, c *client) error {
	r, err := c.ListWorkflows(ctx, &coordinatorv1.ListWorkflowsRequest{})
	if err != nil {
		return err
	}
	style := a.style(a.stdout)
	t := ui.Table{Width: style.Width, Columns: ui.Columns("WORKFLOW", "~ABOUT", "FROM")}
	list := []any{}
	for _, w := range r.GetWorkflows() {
		list = append(list, ui.Plain(w))
		from := "built in"
		if !w.GetBuiltIn() {
			from = ui.Clock(w.GetAdded().AsTime(), time.Now())
		}
		t.Add(w.GetName(), ui.Line(w.GetDescription()), from)
	}
	if a.json() {
		return a.printList("workflows", list)
	}
	a.next("loopkeeper run WORKFLOW --params", "loopkeeper workflows add FILE")
	return a.printText(t.String())
}
