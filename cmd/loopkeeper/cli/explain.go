package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newExplain(a *app) *cobra.Command {
	var tokens int32
	var step string
	c := &cobra.Command{
		Use: "explain RUN|MODEL", Short: "Say why work is placed where it is, and why not elsewhere", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper explain qwen3:32b --context 16384\n  loopkeeper explain 7f3k",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.explain(ctx, c, args[0], step, tokens) })
		},
	}
	c.Flags().Int32Var(&tokens, "context", 0, "with a model: context in `tokens` per slot")
	c.Flags().StringVar(&step, "step", "", "with a run: one `step` of it")
	return c
}

// explain takes a subject for a run when there is such a run, else for a model.
func (a *app) explain(ctx context.Context, c *client, subject, step string, tokens int32) error {
	r := &coordinatorv1.ExplainRequest{Context: tokens, Step: step}
	found, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: subject})
	switch code := codeOf(err); {
	case err == nil:
		r.Subject = &coordinatorv1.ExplainRequest_RunId{RunId: found.GetRun().GetId()}
	case code == apierr.NotFound || code == apierr.InvalidArgument:
		r.Subject = &coordinatorv1.ExplainRequest_Model{Model: subject}
	default:
		return err
	}
	e, err := c.Explain(ctx, r)
	if r.GetModel() != "" && codeOf(err) == apierr.NotFound {
		return apierr.Wrap(apierr.FromStatus(err), apierr.NotFound, "no run and no model is named %s", subject).
			WithNext("loopkeeper runs")
	}
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(e))
	}
	if len(e.GetExplanations()) == 0 {
		a.next("loopkeeper show " + found.GetRun().GetId())
		return a.printText("Nothing of the run is on a machine, and nothing waits for one.\n")
	}
	for _, one := range e.GetExplanations() {
		if err := a.printText(ui.Explain(a.style(a.stdout), one)); err != nil {
			return err
		}
	}
	return nil
}
