package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
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
	skip                              int
	only                              string
	to                                destination
	left                              leftOut
}

func newMap(a *app) *cobra.Command {
	var o mapOptions
	c := &cobra.Command{
		Use: "map --model MODEL --prompt TEXT FILE|GLOB|FOLDER...", Short: "Do the same with every file, on all machines",
		Long: "Do the same with every file, or with every line of a file, on all machines that can hold the model.\n\n" +
			"{{item}} in the prompt stands for the file's text; without it the text follows the prompt. Globs in quotes are expanded\n" +
			"here, ** too. Empty files are left out, with a warning. An image that is named, or that a glob such as '*.jpg' asks for,\n" +
			"is shown to the model, and {{item}} is its name. Results come in input order: one JSON object per line in --out, a file\n" +
			"per input in --out-dir, else on stdout. A run that lacks an item is never called completed; --only does the items that\n" +
			"`loopkeeper result RUN --failed-to FILE` wrote down.",
		Example: "  loopkeeper map --model qwen3:8b --prompt 'Summarise in three points.' --out out.jsonl 'docs/*.md'\n" +
			"  loopkeeper map --model qwen3:8b --prompt-file task.txt --schema summary.json --first 3 docs\n" +
			"  loopkeeper map --model qwen3:8b --prompt 'Sentiment of: {{item}}' --each line reviews.jsonl\n" +
			"  loopkeeper map --model qwen2.5vl:7b --prompt 'Describe {{item}} in one sentence.' 'photos/*.jpg'",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.temperatureSet = cmd.Flags().Changed("temperature")
			return a.mapFiles(cmd.Context(), o, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`MODEL` to ask, such as qwen3:8b")
	f.StringVar(&o.prompt, "prompt", "", "`TEXT` of the task for each item")
	f.StringVar(&o.promptFile, "prompt-file", "", "`FILE` with the task")
	f.StringVar(&o.schema, "schema", "", "`FILE` with the JSON Schema of each result")
	f.StringVar(&o.system, "system", "", "`TEXT` of the system prompt")
	f.StringArrayVar(&o.context, "context", nil, "`FILE` that every item is seen with; may be repeated")
	f.StringVar(&o.criteria, "criteria", "", "`TEXT` that says what must hold of each result, judged by --judge")
	f.StringVar(&o.judge, "judge", "", "`MODEL` that judges the results by --criteria")
	f.IntVar(&o.attempts, "attempts", 0, "`N` tries of one item in all (default 3)")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "`N` tokens of one answer at most")
	f.Float64Var(&o.temperature, "temperature", 0, "sampling temperature `T`")
	f.StringVar(&o.each, "each", "file", "what an item is: `file|line`")
	f.StringVar(&o.to.out, "out", "", "write results to this `FILE`, one JSON object per line")
	f.StringVar(&o.to.dir, "out-dir", "", "write a file per input into this `FOLDER`")
	f.IntVar(&o.first, "first", 0, "try the first `N` items, show them, then ask")
	f.BoolVar(&o.yes, "yes", false, "go on after --first without asking")
	f.IntVar(&o.skip, "skip", 0, "leave out the first `N` items")
	f.StringVar(&o.only, "only", "", "do only the items whose keys stand in this `FILE`, one per line; without inputs they are what it names")
	o.run.register(c)
	return c
}

// mapFiles runs the built-in workflow map.
func (a *app) mapFiles(ctx context.Context, o mapOptions, args []string) error {
	if err := firstError(o.run.check(), o.complete()); err != nil {
		return err
	}
	items, left, err := o.items(ctx, args)
	o.left = left
	if err != nil {
		return err
	}
	base, err := o.input()
	if err != nil {
		return err
	}
	var shared []input
	if len(o.context) > 0 {
		if shared, err = textInputs(ctx, o.context); err != nil {
			return err
		}
	}
	if err := o.to.keepsInputs(append(sources(append(shared, items...)), o.promptFile, o.schema, o.only)); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	a.announce(o, items)
	if len(shared) > 0 {
		if base["context"], err = a.bodies(ctx, c, shared); err != nil {
			return err
		}
	}
	if o.first == 0 || o.first >= len(items) || o.run.dryRun {
		return a.mapAll(ctx, c, o, base, items)
	}
	return a.mapFirst(ctx, c, o, base, items)
}

// announce says what will be done, and warns of what will not.
func (a *app) announce(o mapOptions, items []input) {
	if a.json() {
		return
	}
	a.note("%s%s, model %s", ui.Plural(int64(len(items)), "item", "items"), o.left.text(), o.model)
	if empty := o.left.files["empty"]; len(empty) > 0 {
		a.note("%s %s left out: %s", a.style(a.stderr).Warn("warning:"), ui.Plural(int64(len(empty)), "empty file is", "empty files are"), some(empty))
	}
}

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
		return usageError{error: errors.New("--model is missing"), next: []string{"loopkeeper models"}}
	case strings.TrimSpace(o.prompt) == "":
		return usagef("--prompt or --prompt-file is missing")
	case o.each != "file" && o.each != "line":
		return usagef("--each %q: want file or line", o.each)
	case (o.criteria == "") != (o.judge == ""):
		return usagef("--criteria and --judge belong together")
	case o.attempts < 0 || o.maxTokens < 0 || o.first < 0 || o.skip < 0:
		return usagef("--attempts, --max-tokens, --first and --skip must not be negative")
	}
	if found := run.UnknownPlaceholder(o.prompt); found != "" {
		return apierr.New(apierr.InvalidArgument, "the prompt has the placeholder %s; only {{item}} is known", found).
			WithNext("write {{item}} where the item's text belongs")
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

// sources are the files that inputs are from.
func sources(items []input) []string {
	var out []string
	for _, i := range items {
		if len(out) == 0 || out[len(out)-1] != i.source { // the lines of a file follow each other
			out = append(out, i.source)
		}
	}
	return out
}
