package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type runOptions struct {
	run    runFlags
	input  string
	sets   []string
	models []string
	params bool
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use: "run SCRIPT|WORKFLOW", Short: "Run a script, or a built-in workflow", Args: cobra.ExactArgs(1),
		Long: "Run a script in TypeScript or JavaScript, or a built-in workflow by its name.\n\n" +
			"Parameters come from --input, a JSON file, and from --set. `--set rules=@rules.md` uploads a file, `--set 'files=@docs/*.md'`\n" +
			"several; in the JSON file \"@path\" does the same, relative to that file.",
		Example: "  loopkeeper run examples/review.ts --set rules=@rules.md --set 'files=@docs/*.md'\n" +
			"  loopkeeper run examples/review.ts --input input.json\n  loopkeeper run examples/review.ts --params",
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.input, "input", "", "JSON `FILE` with the parameters")
	f.StringArrayVar(&o.sets, "set", nil, "one parameter, `NAME=VALUE`; @path is a file; may be repeated")
	f.StringArrayVar(&o.models, "model", nil, "check before the start that this `MODEL` fits; may be repeated")
	f.BoolVar(&o.params, "params", false, "show the parameters and start nothing")
	o.run.register(c)
	return c
}

// run runs a script or a built-in workflow.
func (a *app) run(ctx context.Context, o runOptions, name string) error {
	if err := o.run.check(); err != nil {
		return err
	}
	j, err := workflow(name)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	described, err := describe(ctx, c, j)
	if err != nil {
		return err
	}
	if o.params {
		return a.printParams(described)
	}
	reader := &paramReader{a: a, c: c}
	if raw := described.GetParamsSchemaJson(); len(raw) > 0 {
		if err := json.Unmarshal(raw, &reader.schema); err != nil {
			return apierr.Wrap(err, apierr.InvalidArgument, "read the parameters that %s declares", name)
		}
	}
	if j.input, err = reader.read(ctx, o.input, o.sets); err != nil {
		return err
	}
	j.models, j.key, j.limit, j.limits, j.place = o.models, o.run.key, o.run.limit, o.run.limits, o.run.place
	return a.runJob(ctx, c, j, o.run)
}

// runJob runs a job to its end and prints its outputs.
func (a *app) runJob(ctx context.Context, c *client, j job, f runFlags) error {
	id, err := a.start(ctx, c, j, f)
	if err != nil || id == "" {
		return err
	}
	r, err := a.follow(ctx, c, id, nil, j.to)
	if err != nil {
		return err
	}
	return a.showOutputs(ctx, c, r, j.to.out)
}

// workflow finds what name means: a file, else a workflow that is built in or was added.
func workflow(name string) (job, error) {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		if _, err := readText(name); err != nil { // the bundler would read what never ends
			return job{}, err
		}
		return bundled(name)
	}
	if !strings.ContainsAny(name, "./\\") { // the coordinator knows which names there are
		return job{builtIn: name}, nil
	}
	return job{}, apierr.New(apierr.NotFound, "there is no script %s and no built-in workflow of that name", name).
		WithNext("loopkeeper workflows", "check the path of the script")
}

// bundled makes a script ready to run. Its faults name file, line and column.
func bundled(path string) (job, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return job{}, apierr.New(apierr.NotFound, "there is no script %s", path).WithNext("check the path", "ls "+quote(filepath.Dir(path)))
	}
	p, err := script.Bundle(path)
	var fault *script.Failure
	if errors.As(err, &fault) {
		return job{}, apierr.New(apierr.InvalidArgument, "%s", fault.Error()).WithNext("repair the script")
	}
	if err != nil {
		return job{}, apierr.Wrap(err, apierr.InvalidArgument, "bundle the script")
	}
	return job{bundle: &coordinatorv1.Bundle{Name: p.Name, Code: p.Code, SourceMap: p.SourceMap}}, nil
}

func describe(ctx context.Context, c *client, j job) (*coordinatorv1.DescribeWorkflowResponse, error) {
	r := &coordinatorv1.DescribeWorkflowRequest{}
	if j.bundle != nil {
		r.Workflow = &coordinatorv1.DescribeWorkflowRequest_Bundle{Bundle: j.bundle}
	} else {
		r.Workflow = &coordinatorv1.DescribeWorkflowRequest_BuiltIn{BuiltIn: j.builtIn}
	}
	return c.DescribeWorkflow(ctx, r)
}

// printParams shows what a workflow takes.
func (a *app) printParams(d *coordinatorv1.DescribeWorkflowResponse) error {
	if a.json() {
		return a.printJSON(ui.Plain(d))
	}
	text := d.GetName()
	if d.GetDescription() != "" {
		text += "  " + d.GetDescription()
	}
	var s paramSchema
	if raw := d.GetParamsSchemaJson(); len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return a.printText(text + "\nIt declares no parameters: any JSON object will do.\n")
	}
	return a.printText(text + "\n" + paramTable(s))
}

func paramTable(s paramSchema) string {
	t := ui.Table{Columns: ui.Columns("PARAMETER", "TYPE", "NEEDED", "ABOUT")}
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	for _, name := range sorted(s.Properties) {
		p, needed := s.Properties[name], "no"
		if required[name] {
			needed = "yes"
		}
		about := p.Description
		if p.Default != nil {
			about = strings.TrimSpace(fmt.Sprintf("%s (default %v)", about, p.Default))
		}
		t.Add(name, p.kind(), needed, about)
	}
	return t.String()
}

// kind says in a few words what a parameter takes.
func (s paramSchema) kind() string {
	switch {
	case s.files():
		return "files"
	case s.file():
		return "file"
	case len(s.Enum) > 0:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", "|"), "[]")
	case s.is("array") && s.Items != nil:
		return "list of " + s.Items.kind()
	case s.Format != "":
		return s.Format
	case s.Type == nil:
		return "any"
	default:
		return fmt.Sprint(s.Type)
	}
}
