package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

type mapOptions struct {
	run                               runFlags
	model, prompt, promptFile, schema string
	system, criteria, judge, each     string
	context                           []string
	attempts, maxTokens, first        int
	temperature                       float64
	temperatureSet, yes               bool
	out, outDir                       string
}

func newMap(a *app) *cobra.Command {
	var o mapOptions
	c := &cobra.Command{
		Use: "map --model MODEL --prompt TEXT FILE|GLOB|FOLDER...", Short: "Do the same with every file, on all machines",
		Long: "Do the same with every file, or with every line of a file, on all machines that can hold the model.\n\n" +
			"{{item}} in the prompt stands for the file's text; without it the text follows the prompt. Globs in quotes are expanded\n" +
			"here, ** too. Results come in input order: one JSON object per line in --out, a file per input in --out-dir, else on\n" +
			"stdout. A run that lacks an item is never called completed.",
		Example: "  loopkeeper map --model qwen3:8b --prompt 'Summarise in three points.' --out out.jsonl 'docs/*.md'\n" +
			"  loopkeeper map --model qwen3:8b --prompt-file task.txt --schema summary.json --first 3 docs\n" +
			"  loopkeeper map --model qwen3:8b --prompt 'Sentiment of: {{item}}' --each line reviews.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.temperatureSet = cmd.Flags().Changed("temperature")
			return a.mapFiles(cmd.Context(), o, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`model` to ask, such as qwen3:8b")
	f.StringVar(&o.prompt, "prompt", "", "the `task` for each item")
	f.StringVar(&o.promptFile, "prompt-file", "", "`file` with the task")
	f.StringVar(&o.schema, "schema", "", "`file` with the JSON Schema of each result")
	f.StringVar(&o.system, "system", "", "system `prompt`")
	f.StringArrayVar(&o.context, "context", nil, "`file` that every item is seen with; may be repeated")
	f.StringVar(&o.criteria, "criteria", "", "what must hold of each result, a `sentence` judged by --judge")
	f.StringVar(&o.judge, "judge", "", "`model` that judges the results by --criteria")
	f.IntVar(&o.attempts, "attempts", 0, "tries of one item in all (default 3)")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "most tokens of one answer")
	f.Float64Var(&o.temperature, "temperature", 0, "sampling temperature")
	f.StringVar(&o.each, "each", "file", "what an item is: `file or line`")
	f.StringVar(&o.out, "out", "", "write results to this `file`, one JSON object per line")
	f.StringVar(&o.outDir, "out-dir", "", "write a file per input into this `folder`")
	f.IntVar(&o.first, "first", 0, "try the first `N` items, show them, then ask")
	f.BoolVar(&o.yes, "yes", false, "go on after --first without asking")
	o.run.register(c)
	return c
}

// mapFiles runs the built-in workflow map.
func (a *app) mapFiles(ctx context.Context, o mapOptions, args []string) error {
	if err := o.complete(); err != nil {
		return err
	}
	items, skipped, err := inputs(args)
	if err == nil && o.each == "line" {
		items, err = lines(items)
	}
	if err != nil {
		return err
	}
	base, err := o.input()
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if !a.json() {
		a.note("%d items%s, model %s", len(items), skipped, o.model)
	}
	if err := a.addContext(ctx, c, base, o.context); err != nil {
		return err
	}
	return a.mapItems(ctx, c, o, base, items)
}

// placeholder is what a worker would replace; a body's own braces are never expanded.
var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// complete reads the prompt and refuses what makes no sense.
func (o *mapOptions) complete() error {
	if o.promptFile != "" && o.prompt == "" {
		text, err := readText(o.promptFile)
		if err != nil {
			return err
		}
		o.prompt = text
	}
	switch {
	case o.model == "":
		return usagef("--model is missing; `loopkeeper nodes -o json` lists the models")
	case strings.TrimSpace(o.prompt) == "":
		return usagef("--prompt or --prompt-file is missing")
	case o.each != "file" && o.each != "line":
		return usagef("--each %q: want file or line", o.each)
	case (o.criteria == "") != (o.judge == ""):
		return usagef("--criteria and --judge belong together")
	case o.attempts < 0 || o.maxTokens < 0 || o.first < 0:
		return usagef("--attempts, --max-tokens and --first must not be negative")
	}
	for _, p := range placeholder.FindAllStringSubmatch(o.prompt, -1) {
		if strings.TrimSpace(p[1]) != "item" {
			return apierr.New(apierr.InvalidArgument, "the prompt has the placeholder %s; only {{item}} is known", p[0]).
				WithNext("write {{item}} where the item's text belongs")
		}
	}
	if !strings.Contains(o.prompt, "{{item}}") {
		o.prompt = strings.TrimRight(o.prompt, "\n") + "\n\n{{item}}"
	}
	return nil
}

// input is the workflow's input without items and context.
func (o *mapOptions) input() (map[string]any, error) {
	in := map[string]any{"model": o.model, "prompt": o.prompt}
	if o.system != "" {
		in["system"] = o.system
	}
	if o.judge != "" {
		in["evaluate"] = map[string]any{"criteria": o.criteria, "model": o.judge}
	}
	if o.attempts > 0 {
		in["retry"] = map[string]any{"attempts": o.attempts}
	}
	if o.maxTokens > 0 {
		in["max_tokens"] = o.maxTokens
	}
	if o.temperatureSet {
		in["temperature"] = o.temperature
	}
	if o.schema != "" {
		schema, err := readSchema(o.schema)
		if err != nil {
			return nil, err
		}
		in["schema"] = schema
	}
	return in, nil
}

// addContext uploads the files that every item is seen with.
func (a *app) addContext(ctx context.Context, c *client, in map[string]any, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	files, _, err := inputs(paths)
	if err != nil {
		return err
	}
	in["context"], err = a.bodies(ctx, c, files)
	return err
}

// mapItems runs the items in one run, or the first few and then the rest.
func (a *app) mapItems(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input) error {
	out, err := a.sinkFor(o.out, o.outDir)
	if err != nil {
		return err
	}
	if o.first == 0 || o.first >= len(items) || o.run.dryRun {
		return firstError(a.mapRun(ctx, c, o, base, items, out), out.close())
	}
	return firstError(a.mapFirst(ctx, c, o, base, items, out), out.close())
}

// mapFirst runs the first few items, shows them and goes on with the rest when the user says so.
func (a *app) mapFirst(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input, out sink) error {
	shown := sinks{out}
	if (o.out != "" || o.outDir != "") && !a.json() {
		shown = append(shown, &blockSink{w: a.stderr, style: a.style(a.stderr)})
	}
	trial := o
	trial.run.detach = false
	if o.run.key != "" {
		trial.run.key += fmt.Sprintf("-first-%d", o.first)
	}
	err := a.mapRun(ctx, c, trial, base, items[:o.first], shown)
	if err != nil && !isEnd(err) {
		return err
	}
	rest := len(items) - o.first
	switch {
	case o.yes:
	case !terminal(a.stdin) || !terminal(a.stderr):
		a.note("%d of %d items tried, %d are left", o.first, len(items), rest)
		a.next("the same command with --yes goes on after the first " + fmt.Sprint(o.first))
		return err
	case !a.askYes(ctx, fmt.Sprintf("Go on with the other %d?", rest)):
		return err
	}
	return worse(err, a.mapRun(ctx, c, o, base, items[o.first:], out))
}

// isEnd says whether an error is just how a run ended.
func isEnd(err error) bool {
	with, ok := err.(exitWith)
	return ok && with != exitInterrupted
}

// worse is the outcome of two runs that belong together.
func worse(a, b error) error {
	if b != nil {
		return b
	}
	return a
}

// mapRun runs some items to the end.
func (a *app) mapRun(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input, out sink) error {
	bodies, err := a.bodies(ctx, c, items)
	if err != nil {
		return err
	}
	in := map[string]any{"items": bodies}
	for k, v := range base {
		in[k] = v
	}
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = item.key
	}
	in["keys"] = keys
	id, err := a.start(ctx, c, job{builtIn: "map", input: in, models: []string{o.model, o.judge}, key: o.run.key, limit: o.run.limit}, o.run)
	if err != nil || id == "" {
		return err
	}
	r, err := a.follow(ctx, c, id, &collector{c: c, run: id, sink: out})
	if err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	return a.summarise(r, heldItems(out))
}

// heldItems are the items for the one JSON object of -o json.
func heldItems(s sink) map[string]any {
	if all, ok := s.(sinks); ok && all.held() != nil {
		return map[string]any{"items": all.held()}
	}
	return nil
}
