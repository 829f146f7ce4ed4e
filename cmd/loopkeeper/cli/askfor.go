package cli

import (
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type askOptions struct {
	run        runFlags
	model      string
	among      []string
	yes, write bool
}

func newAsk(a *app) *cobra.Command {
	var o askOptions
	c := &cobra.Command{
		Use: "ask --model MODEL REQUEST", Short: "Have a model choose a workflow for what you want, and start it", Args: cobra.ExactArgs(1),
		Long: "Have a model choose one of the workflows for what you want and fill in its parameters, in one call. The choice is checked and\n" +
			"shown, and starts when you say so. The model may name the models of the fleet and the files of this folder.\n\n" +
			"What starts is a workflow like any other: the model that chose takes no further part in it.",
		Example: "  loopkeeper ask --model qwen3:8b 'Summarise each of the texts in docs in three points, with llama3.2:3b'\n" +
			"  loopkeeper ask --model qwen3:8b --among map --yes 'Sum up every letter in inbox'",
		RunE: func(cmd *cobra.Command, args []string) error { return a.ask(cmd.Context(), o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`MODEL` that chooses")
	f.StringArrayVar(&o.among, "among", nil, "choose only among this `WORKFLOW`; may be repeated")
	f.BoolVar(&o.yes, "yes", false, "start what was chosen without asking")
	f.BoolVar(&o.write, "write", false, "have a script written instead; not possible yet")
	o.run.register(c)
	return c
}

// choice is what the workflow ask returns.
type choice struct {
	Workflow string         `json:"workflow"`
	Input    map[string]any `json:"input"`
}

// ask has a workflow chosen, shows it, and starts it.
func (a *app) ask(ctx context.Context, o askOptions, request string) error {
	switch {
	case o.write:
		return apierr.New(apierr.InvalidArgument, "a script that a model wrote may only run where it can do no harm, and this loopkeeper cannot shut one in yet: nothing was asked").
			WithNext(a.commandWithout([]string{"--write"})+"  # chooses among the workflows there are", "loopkeeper types  # to write a script yourself")
	case o.model == "":
		return usageError{usagef("--model is missing"), []string{"loopkeeper models"}}
	}
	if err := o.run.check(); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	known, err := askable(ctx, c, o.among)
	if err != nil {
		return err
	}
	chosen, failed, err := a.choose(ctx, c, o, request, known)
	if err != nil || failed {
		return err
	}
	return a.startChosen(ctx, c, o, chosen)
}

// chooser is the workflow that chooses; it is none that can be chosen.
const chooser = "ask"

// askable are the workflows that can be chosen.
func askable(ctx context.Context, c *client, among []string) ([]map[string]any, error) {
	r, err := c.ListWorkflows(ctx, &coordinatorv1.ListWorkflowsRequest{})
	if err != nil {
		return nil, err
	}
	names := workflowNames(r)
	for _, name := range among {
		if !slices.Contains(names, name) || name == chooser {
			return nil, meant(apierr.New(apierr.NotFound, "no workflow that can be chosen is named %q", name).WithNext("loopkeeper workflows"), name, names)
		}
	}
	var known []map[string]any
	for _, w := range r.GetWorkflows() {
		if w.GetName() == chooser || len(among) > 0 && !slices.Contains(among, w.GetName()) {
			continue
		}
		one := map[string]any{"name": w.GetName(), "about": w.GetDescription()}
		if len(w.GetParamsSchemaJson()) > 0 {
			one["params"] = json.RawMessage(w.GetParamsSchemaJson())
		}
		known = append(known, one)
	}
	return known, nil
}

// choose runs the workflow that chooses. failed says that it did not, and that what is to be said of it was said.
func (a *app) choose(ctx context.Context, c *client, o askOptions, request string, known []map[string]any) (chosen choice, failed bool, err error) {
	nodes, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return chosen, false, err
	}
	in := map[string]any{"request": request, "model": o.model, "workflows": known, "models": modelNames(nodes)}
	if files := filesHere(request); files != nil {
		in["files"] = files
	}
	id, err := a.start(ctx, c, job{builtIn: chooser, input: in, models: []string{o.model}, place: o.run.place}, runFlags{wait: true})
	if err != nil {
		return chosen, false, err
	}
	r, err := a.follow(ctx, c, id, nil, destination{})
	if err != nil {
		return chosen, false, err
	}
	if r.GetState() != "completed" {
		return chosen, true, a.showOutputs(ctx, c, r, "")
	}
	result, err := c.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: id})
	if err != nil {
		return chosen, false, err
	}
	for _, out := range result.GetOutputs() {
		raw := out.GetValueJson()
		if out.GetRef() != nil {
			text, err := fetch(ctx, c, out.GetRef().GetSha256())
			if err != nil {
				return chosen, false, err
			}
			raw = []byte(text)
		}
		if out.GetName() == mainOutput {
			err = decode(raw, &chosen)
		}
	}
	if err == nil && chosen.Workflow == "" {
		err = apierr.New(apierr.Internal, "run %s chose nothing", id).WithNext("loopkeeper show " + id)
	}
	return chosen, false, err
}

// mostFilesNamed is how many files the model is told of: with more it would hardly look at each, and it may name any.
const mostFilesNamed = 500

// filesHere are the paths of the files in this folder and below; nil when the request speaks of files elsewhere, or there are too many.
func filesHere(request string) []string {
	for _, word := range strings.Fields(request) {
		if filepath.IsAbs(strings.Trim(word, `"'`)) || strings.Contains(word, "..") || strings.HasPrefix(word, "~") {
			return nil
		}
	}
	files := []string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != "." && hidden(p):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			if files = append(files, filepath.ToSlash(p)); len(files) > mostFilesNamed {
				return fs.SkipAll
			}
		}
		return nil
	})
	if err != nil || len(files) > mostFilesNamed {
		return nil
	}
	return files
}

// startChosen shows a choice, checks it, and starts it when the user says so.
func (a *app) startChosen(ctx context.Context, c *client, o askOptions, chosen choice) error {
	input, err := json.Marshal(chosen.Input)
	if err != nil {
		return apierr.Wrap(err, apierr.Internal, "show what was chosen")
	}
	if !a.json() {
		if err := a.printText("chosen  " + ui.Line(chosen.Workflow) + "\n" + ui.Text(ui.Indent(input)) + "\n"); err != nil {
			return err
		}
	}
	j := job{builtIn: chosen.Workflow, key: o.run.key, limit: o.run.limit, place: o.run.place}
	described, err := describe(ctx, c, j)
	if err != nil {
		return err
	}
	reader := &paramReader{a: a, c: c}
	if raw := described.GetParamsSchemaJson(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &reader.schema); err != nil {
			return apierr.Wrap(err, apierr.InvalidArgument, "read the parameters that %s declares", chosen.Workflow)
		}
	}
	for name, v := range chosen.Input {
		if chosen.Input[name], err = reader.resolve(ctx, v, reader.schema.Properties[name], "."); err != nil {
			return apierr.Wrap(err, codeOf(err), "what was chosen cannot be started: %s", name).WithNext("ask again, and say more exactly what is wanted")
		}
		if model, ok := v.(string); ok && reader.schema.Properties[name].Format == "model" {
			j.models = append(j.models, model)
		}
	}
	j.input = chosen.Input
	if _, err := a.submit(ctx, c, j, true); err != nil {
		return apierr.Wrap(apierr.FromStatus(err), codeOf(err), "what was chosen cannot be started").WithNext("ask again, and say more exactly what is wanted")
	}
	if o.run.dryRun || !o.yes && !a.goOn(ctx) {
		return a.printChosen(chosen, input)
	}
	return a.runJob(ctx, c, j, o.run)
}

// goOn asks whether to start what was shown; where nobody can answer it does not start.
func (a *app) goOn(ctx context.Context) bool {
	return !a.json() && terminal(a.stdin) && terminal(a.stderr) && a.askYes(ctx, "Start it?")
}

// printChosen says that nothing was started, and what would.
func (a *app) printChosen(chosen choice, input json.RawMessage) error {
	if a.json() {
		return a.printJSON(map[string]any{"chosen": map[string]any{"workflow": chosen.Workflow, "input": input}, "started": false})
	}
	a.note("nothing was started")
	a.next(runCommand(chosen.Workflow, input))
	return nil
}

// runCommand starts what was chosen and nothing else: asking again might choose something else.
func runCommand(workflow string, input json.RawMessage) string {
	var parts map[string]json.RawMessage
	_ = json.Unmarshal(input, &parts) // it was written here
	words := "loopkeeper run " + workflow
	for _, name := range sorted(parts) {
		value := string(parts[name])
		var text string
		if json.Unmarshal(parts[name], &text) == nil {
			value = text
		}
		words += " --set " + quote(name+"="+value)
	}
	return words
}
