package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

type planOptions struct {
	run                   runFlags
	planner, model, judge string
	files                 []string
	maxSteps              int
}

func newPlan(a *app) *cobra.Command {
	var o planOptions
	c := &cobra.Command{
		Use: "plan --planner MODEL --model MODEL GOAL", Short: "Have a model plan a goal, then carry the plan out step by step", Args: cobra.ExactArgs(1),
		Long: "Have a model plan a goal, then carry the plan out step by step.\n\n" +
			"The plan is a graph: steps run in parallel where it allows. Each step is evaluated, sent back with the reasons when it\n" +
			"does not hold, and the whole is evaluated at the end.",
		Example: "  loopkeeper plan --planner qwen3:32b --model qwen3:8b 'Write release notes from these commits' --file commits.txt",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.plan(cmd.Context(), o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.planner, "planner", "", "`model` that plans (default --model)")
	f.StringVar(&o.model, "model", "", "`model` that does the steps")
	f.StringVar(&o.judge, "judge", "", "`model` that judges the results (default the planner)")
	f.StringArrayVar(&o.files, "file", nil, "`file` that the steps may use; may be repeated")
	f.IntVar(&o.maxSteps, "max-steps", 0, "most `steps` of the plan")
	o.run.register(c)
	return c
}

// plan runs the built-in workflow plan.
func (a *app) plan(ctx context.Context, o planOptions, goal string) error {
	switch {
	case o.model == "":
		return usagef("--model is missing")
	case strings.TrimSpace(goal) == "":
		return usagef("the goal is empty")
	case o.maxSteps < 0:
		return usagef("--max-steps must not be negative")
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
		if files, _, err = inputs(o.files); err != nil {
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
	return a.runJob(ctx, c, job{builtIn: "plan", input: in, models: []string{o.planner, o.model, o.judge}, key: o.run.key, limit: o.run.limit}, o.run)
}
