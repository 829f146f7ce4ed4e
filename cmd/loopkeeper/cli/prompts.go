package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
)

// aboutPrompts says what each text is for.
var aboutPrompts = map[string]string{
	prompts.PlanRole: "opens every plan", prompts.PlanThink: "asks for free thoughts about a plan", prompts.PlanFields: "asks for the fields of a plan",
	prompts.PlanEach: "explains steps over a list", prompts.PlanFacts: "stands over what is verified", prompts.PlanLeads: "stands over what was only said",
	prompts.PlanRepair: "shows a refused plan and its faults", prompts.CheckRole: "opens every question to a judge",
	prompts.CheckAbsence: "explains a criterion about what must not be there", prompts.CheckThink: "asks a judge for its free answer",
	prompts.CheckFields: "asks a judge for the fields of its answer", prompts.CheckAgain: "asks once more where words stand nowhere",
	prompts.GenerateFeedback: "says why an answer was sent back", prompts.SchemaNote: "shows the schema of a value",
}

func newPrompts(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "prompts", Short: "List and change the texts that models are asked with", Args: cobra.NoArgs,
		Long: "List the texts that models are given beside what a run asks, with their versions.\n\n" +
			"A file NAME.txt in the folder that `prompts` in the coordinator's settings names stands in for the text of that name, from the next\n" +
			"start on. A run keeps the texts that it began with; so do its forks.",
		Example: "  loopkeeper prompts\n  loopkeeper prompts show check_think\n  loopkeeper prompts show check_think --run 7f3k\n  loopkeeper prompts export ~/prompts check_think",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.listPrompts(ctx, c, "") })
		},
	}
	c.AddCommand(newPromptsShow(a), newPromptsExport(a))
	return c
}

func newPromptsShow(a *app) *cobra.Command {
	var run string
	c := &cobra.Command{
		Use: "show [NAME]", Short: "Print a text, or with --run list those of a run", Args: cobra.MaximumNArgs(1),
		Example: "  loopkeeper prompts show plan_think\n  loopkeeper prompts show plan_think --run 7f3k\n  loopkeeper prompts show --run 7f3k",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && run == "" {
				return usageError{error: errors.New("name a text, or a run with --run"), next: []string{"loopkeeper prompts"}}
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				if len(args) == 0 {
					return a.listPrompts(ctx, c, run)
				}
				return a.showPrompt(ctx, c, args[0], run)
			})
		},
	}
	c.Flags().StringVar(&run, "run", "", "the text that this `RUN` uses")
	return c
}

func newPromptsExport(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "export FOLDER [NAME...]", Short: "Write texts to a folder as NAME.txt, to be changed there", Args: cobra.MinimumNArgs(1),
		Long: "Write all texts, or those named, to a folder as NAME.txt. Files that are there already stay as they are. It needs no coordinator.\n\n" +
			"Keep only the files that you change: a file stands in for its text in later releases, too.",
		Example: "  loopkeeper prompts export ~/prompts\n  loopkeeper prompts export ~/prompts check_think plan_think",
		RunE:    func(_ *cobra.Command, args []string) error { return a.exportPrompts(args[0], args[1:]) },
	}
}

func (a *app) listPrompts(ctx context.Context, c *client, run string) error {
	r, err := c.judges().ListPrompts(ctx, &coordinatorv1.ListPromptsRequest{RunId: run})
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	style := a.style(a.stdout)
	t := ui.Table{Width: style.Width, Columns: ui.Columns("PROMPT", "VERSION", "FROM", "~ABOUT")}
	for _, p := range r.GetPrompts() {
		from := "loopkeeper"
		switch {
		case p.GetChanged() && run != "":
			from = "the run"
		case p.GetChanged():
			from = p.GetName() + ".txt"
		}
		t.Add(ui.Line(p.GetName()), p.GetVersion(), ui.Line(from), aboutPrompts[p.GetName()])
	}
	if err := a.printText(t.String()); err != nil {
		return err
	}
	switch {
	case run != "" && !r.GetPinned():
		a.note("run %s pins no texts: it is of a release that had none, and its calls used those of their workers", run)
	case run == "" && r.GetFolder() != "":
		return a.printText("Files from " + ui.Line(r.GetFolder()) + " on the coordinator's machine\n")
	case run == "":
		a.note("texts of your own stand in a folder that the settings name under `prompts`")
		a.next("loopkeeper prompts export FOLDER")
	}
	return nil
}

func (a *app) showPrompt(ctx context.Context, c *client, name, run string) error {
	r, err := c.judges().ListPrompts(ctx, &coordinatorv1.ListPromptsRequest{RunId: run})
	if err != nil {
		return err
	}
	var names []string
	for _, p := range r.GetPrompts() {
		names = append(names, p.GetName())
	}
	i := slices.Index(names, name)
	if i < 0 {
		return meant(apierr.New(apierr.NotFound, "there is no prompt %q", name).WithNext("loopkeeper prompts"), name, names)
	}
	if p := r.GetPrompts()[i]; a.json() {
		return a.printJSON(ui.Plain(p))
	} else {
		return a.printText(ui.Text(p.GetText()) + "\n")
	}
}

// promptSet reads the folder of texts that the settings name. Its error names file and reason.
func promptSet(c configs.Config) (prompts.Set, error) {
	if c.Prompts == "" {
		return nil, nil
	}
	set, err := prompts.Load(os.DirFS(c.Prompts))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, apierr.New(apierr.InvalidArgument, "the folder of prompts %s is not there", c.Prompts).
			WithNext("loopkeeper prompts export "+quote(c.Prompts), "leave `prompts` out of the settings")
	case err != nil:
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the prompts in %s", c.Prompts).
			WithNext("repair the file, or remove it: then loopkeeper's own text is used", "loopkeeper prompts export FOLDER shows what each text must have")
	}
	return set, nil
}

func (a *app) exportPrompts(dir string, names []string) error {
	set, err := promptSet(a.config)
	if err != nil && filepath.Clean(dir) != filepath.Clean(a.config.Prompts) { // into the folder that is not there yet
		return err
	}
	for _, name := range names {
		if !slices.Contains(prompts.Names(), name) {
			return meant(apierr.New(apierr.NotFound, "there is no prompt %q", name).WithNext("loopkeeper prompts"), name, prompts.Names())
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "make the folder").WithNext("name a folder that you may write")
	}
	var wrote, kept []string
	for _, p := range set.List() {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		path := filepath.Join(dir, p.Name+".txt")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			kept = append(kept, path)
			continue
		}
		if err == nil {
			_, err = f.WriteString(p.Text + "\n")
			err = firstError(err, f.Close())
		}
		if err != nil {
			return apierr.Wrap(err, apierr.InvalidArgument, "write %s", path).WithNext("name a folder that you may write")
		}
		wrote = append(wrote, path)
	}
	if a.json() {
		return a.printJSON(map[string]any{"written": append([]string{}, wrote...), "kept": append([]string{}, kept...)})
	}
	for _, path := range wrote {
		if err := a.printText(path + "\n"); err != nil {
			return err
		}
	}
	if len(kept) > 0 {
		a.note("left as they were: %s", strings.Join(kept, ", "))
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if filepath.Clean(a.config.Prompts) != full {
		a.note("for the settings of the coordinator: `prompts: %s`", full)
	}
	a.next("loopkeeper up  # reads the files when it starts")
	return nil
}
