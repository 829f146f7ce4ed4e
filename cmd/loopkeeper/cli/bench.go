package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func newBench(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "bench", Short: "Measure on your own models what this is good for", Args: cobra.NoArgs,
		Example: "  loopkeeper bench loop --model qwen3:8b\n  loopkeeper bench judge --model qwen3:8b",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newBenchLoop(a), newBenchJudge(a))
	return c
}

type benchOptions struct {
	model, ollama, out  string
	sizes               []int
	families, arms      []string
	tasks, seeds, slots int
	context             int
}

func newBenchLoop(a *app) *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use: "loop --model MODEL", Short: "Measure whether jobs end better when code keeps the loop", Args: cobra.NoArgs,
		Long: "Measure with one of your models whether jobs end better when code keeps the loop than when the model does.\n\n" +
			"Workers that are code give numbers nobody can guess; a task says whom to ask and what to report, and the workers' own log says " +
			"what was done. Four arms do the same tasks: A the loop in the model, B in code with one plan by the model, C in the model with the " +
			"right plan given, D in code with the right plan. Families: F fan-out, C chain, D graph with a join, B branch, W workers that " +
			"refuse, P replies that talk to the reader, Z a ledger.\n\n" +
			"It uses the Ollama of the settings (OLLAMA_HOST) and no coordinator. Arms A and C need a model that can call tools. Ctrl-C " +
			"ends it and shows what was done until then.",
		Example: "  loopkeeper bench loop --model qwen3:8b --sizes 3,5 --families F,C --tasks 5\n  loopkeeper bench loop --model qwen3:8b --out loop.md\n" +
			"  loopkeeper bench loop --model qwen3:8b --arms B,D --seeds 5 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.benchLoop(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`MODEL` to measure, such as qwen3:8b")
	f.IntSliceVar(&o.sizes, "sizes", []int{3, 5, 8}, "`NUMBERS` of calls that a task needs")
	f.StringSliceVar(&o.families, "families", names(relay.Families), "`FAMILIES` of tasks")
	f.StringSliceVar(&o.arms, "arms", names(relay.Arms), "`ARMS` that do them")
	f.IntVar(&o.tasks, "tasks", 20, "`N` tasks of each family and size")
	f.IntVar(&o.seeds, "seeds", 1, "do each task `N` times, with other seeds of the model; from 5 on the table says how many end well each time")
	f.IntVar(&o.slots, "slots", 0, "`N` tasks at once (default the slots of the settings)")
	f.IntVar(&o.context, "ctx", relay.DefaultContext, "`TOKENS` of context, the same in all arms")
	f.StringVar(&o.ollama, "ollama", "", "`URL` of the Ollama (default that of the settings)")
	f.StringVar(&o.out, "out", "", "write the page to this `FILE`")
	return c
}

func names[T ~string](all []T) (out []string) {
	for _, one := range all {
		out = append(out, string(one))
	}
	return out
}

// chosen reads names of a flag; case does not count.
func chosen[T ~string](flag string, said []string, all []T) (out []T, err error) {
	for _, s := range said {
		one := T(strings.ToUpper(strings.TrimSpace(s)))
		if !slices.Contains(all, one) {
			return nil, usagef("--%s %q: want some of %s", flag, s, strings.Join(names(all), ","))
		}
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		return nil, usagef("--%s is empty: want some of %s", flag, strings.Join(names(all), ","))
	}
	return out, nil
}

// Bounds of a task: fewer calls have no graph, and no plan has more steps.
const (
	fewestCalls = 3
	mostCalls   = 40
)

func (o benchOptions) options(a *app) (r relay.Options, err error) {
	if o.model == "" {
		return r, usagef("--model is missing: name the model to measure")
	}
	for _, n := range o.sizes {
		if n < fewestCalls || n > mostCalls {
			return r, usagef("--sizes %d: want %d to %d calls", n, fewestCalls, mostCalls)
		}
	}
	if len(o.sizes) == 0 || o.tasks < 1 || o.seeds < 1 || o.slots < 0 || o.context < 1024 {
		return r, usagef("want at least one of --sizes, --tasks and --seeds, and --ctx of 1024 or more")
	}
	r = relay.Options{Model: o.model, Sizes: slices.Compact(slices.Sorted(slices.Values(o.sizes))), Tasks: o.tasks, Tries: o.seeds, Context: o.context}
	if r.Families, err = chosen("families", o.families, relay.Families); err != nil {
		return r, err
	}
	if r.Arms, err = chosen("arms", o.arms, relay.Arms); err != nil {
		return r, err
	}
	return a.benchAt(r, o.ollama, o.slots)
}

func (a *app) benchLoop(ctx context.Context, o benchOptions) error {
	r, err := o.options(a)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.Dir) //nolint:errcheck // a folder for temporary files
	runs, calls := relay.Jobs(r)
	a.note("%s with %s: at least %s of the model; how long that takes is told as soon as one task is done", ui.Plural(int64(runs), "run", "runs"), o.model,
		ui.Plural(int64(calls), "call", "calls"))
	r.Done = a.benchProgress(len(r.Arms), r.Parallel, time.Now())
	result, ran := relay.Run(ctx, r)
	if len(result.Records) == 0 {
		return ran
	}
	return firstError(a.benchResult(r, result, o.out), ran)
}

// benchProgress tells how far it is: after the first task of all arms, and then at most every ten seconds.
func (a *app) benchProgress(arms, parallel int, began time.Time) func(relay.Record, int, int) {
	const pause = 10 * time.Second
	var told time.Time
	return func(r relay.Record, done, of int) {
		if r.Error != "" {
			a.note("%s%d-%d, arm %s: %s", r.Family, r.Size, r.Task, r.Arm, ui.Line(r.Error))
		}
		if first := told.IsZero() && done >= max(arms, parallel); first || !told.IsZero() && time.Since(told) >= pause || done == of {
			told = time.Now()
			left := time.Duration(float64(time.Since(began)) / float64(done) * float64(of-done))
			a.note("%d of %d runs, about %s left", done, of, ui.Duration(left))
		}
	}
}

func (a *app) benchResult(o relay.Options, r relay.Result, out string) error {
	s := relay.Sum(o, r)
	if out != "" {
		if err := os.WriteFile(out, []byte(s.Page(benchMade(o, r), "")), 0o644); err != nil {
			return apierr.Wrap(err, apierr.Unavailable, "write the page %s", out)
		}
		a.note("wrote %s", out)
	}
	if a.json() {
		return a.printJSON(map[string]any{"summary": s, "runs": r.Records})
	}
	return a.printText(s.Text())
}

// benchMade says how a page came about, and what an interruption left out.
func benchMade(o relay.Options, r relay.Result) string {
	runs, _ := relay.Jobs(o)
	text := fmt.Sprintf("Written by `loopkeeper bench loop --model %s`, version %s, on %s.", o.Model, release, time.Now().Format(time.DateOnly))
	if r.Simulated {
		text += " **A stand-in answered, and no model: all of this is simulated.**"
	}
	if len(r.Records) < runs {
		text += fmt.Sprintf(" It was ended after %d of %d runs.", len(r.Records), runs)
	}
	return text
}
