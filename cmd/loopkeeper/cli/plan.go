package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

type planOptions struct {
	run                   runFlags
	planner, model, judge string
	files                 []string
	maxSteps              int
	out                   string
}

func newPlan(a *app) *cobra.Command {
	var o planOptions
	c := &cobra.Command{
		Use: "plan [--planner MODEL] --model MODEL GOAL", Short: "Have a model plan a goal, then carry the plan out step by step", Args: cobra.ExactArgs(1),
		Long: "Have a model plan a goal, then carry the plan out step by step.\n\n" +
			"The plan is a graph: steps run in parallel where it allows. Each step is evaluated, sent back with the reasons when it\n" +
			"does not hold, and the whole is evaluated at the end. --out keeps the text of the result.",
		Example: "  loopkeeper plan --planner qwen3:32b --model qwen3:8b 'Write release notes from these commits' --file commits.txt --out notes.md",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.plan(cmd.Context(), o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.planner, "planner", "", "`MODEL` that plans (default --model)")
	f.StringVar(&o.model, "model", "", "`MODEL` that does the steps")
	f.StringVar(&o.judge, "judge", "", "`MODEL` that judges the results (default the planner)")
	f.StringArrayVar(&o.files, "file", nil, "`FILE` that the steps may use; may be repeated")
	f.IntVar(&o.maxSteps, "max-steps", 0, "the plan has at most `N` steps")
	f.StringVar(&o.out, "out", "", "write the text of the result to this `FILE`")
	o.run.register(c)
	return c
}

// plan runs the built-in workflow plan.
func (a *app) plan(ctx context.Context, o planOptions, goal string) error {
	switch {
	case o.model == "":
		return usageError{error: errors.New("--model is missing"), next: []string{"loopkeeper models"}}
	case o.maxSteps < 0:
		return usagef("--max-steps must not be negative")
	}
	if err := o.run.check(); err != nil {
		return err
	}
	if o.out != "" {
		if err := mayWrite(o.out); err != nil {
			return err
		}
	}
	if o.planner == "" {
		o.planner = o.model
	}
	in := map[string]any{"goal": goal, "planner": o.planner, "model": o.model}
	if o.judge != "" {
		in["judge"] = o.judge
	}
	if o.maxSteps > 0 {
		in["max_steps"] = o.maxSteps
	}
	var files []input
	if len(o.files) > 0 {
		var err error
		if files, _, err = inputs(ctx, o.files, ""); err != nil {
			return err
		}
		if err := (destination{out: o.out}).keepsInputs(sources(files)); err != nil {
			return err
		}
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if len(files) > 0 {
		if in["context"], err = a.bodies(ctx, c, files); err != nil {
			return err
		}
	}
	return a.runJob(ctx, c, job{builtIn: "plan", input: in, models: []string{o.planner, o.model, o.judge}, key: o.run.key, limit: o.run.limit, limits: o.run.limits, place: o.run.place,
		to: destination{out: o.out, text: true}}, o.run)
}
