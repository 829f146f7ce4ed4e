package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type explainOptions struct {
	tokens int32
	step   string
	all    bool
}

func newExplain(a *app) *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use: "explain RUN[/STEP]|MODEL", Short: "Say why work is placed where it is, and why not elsewhere", Args: cobra.ExactArgs(1),
		Long: "Say why work is placed where it is, and why not elsewhere.\n\n" +
			"Of a run, or one step of it: the decisions as they were taken, with the numbers of that moment, and how it is now. Of a model:\n" +
			"where a call of it would go now, what was decided on calls of it in open runs, and what happened to it.\n" +
			"Sizes are GiB. ENDS IN is when a call would end on a machine, an estimate from what was measured.",
		Example: "  loopkeeper explain qwen3:32b --context 16384\n  loopkeeper explain 7f3k\n  loopkeeper explain 7f3k/3 --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("context") && o.tokens < 1 {
				return usagef("--context %d: want 1 token or more", o.tokens)
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.explain(ctx, c, args[0], o) })
		},
	}
	c.Flags().Int32Var(&o.tokens, "context", 0, "with a model: context in `TOKENS` per slot")
	c.Flags().StringVar(&o.step, "step", "", "with a run: one `STEP` of it")
	c.Flags().BoolVar(&o.all, "all", false, "with a run: every decision that was kept, and not just the newest few")
	return c
}

// explain takes a subject for a run when there is such a run, else for a model.
func (a *app) explain(ctx context.Context, c *client, subject string, o explainOptions) error {
	r := &coordinatorv1.ExplainRequest{Context: o.tokens, Step: o.step}
	name, step, parts := strings.Cut(subject, "/")
	if _, err := strconv.Atoi(step); parts && err != nil {
		name, step = subject, "" // of a model, whose name may have a folder
	}
	found, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: name})
	switch code := codeOf(err); {
	case err == nil:
		if step != "" {
			r.Step = step
		}
		r.Subject = &coordinatorv1.ExplainRequest_RunId{RunId: found.GetRun().GetId()}
	case code == apierr.NotFound || code == apierr.InvalidArgument:
		r.Subject = &coordinatorv1.ExplainRequest_Model{Model: subject}
	default:
		return err
	}
	e, err := c.Explain(ctx, r)
	if r.GetModel() != "" && codeOf(err) == apierr.NotFound {
		return nearModels(ctx, c, []string{subject}, apierr.New(apierr.NotFound, "no run is named %s, and no machine has a model named %s", subject, subject).
			WithNext("loopkeeper runs"))
	}
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(e))
	}
	if r.GetModel() != "" {
		return a.printText(a.explainedModel(e))
	}
	return a.explainedRun(found.GetRun().GetId(), e, o)
}

// explainedModel is how it is now, what was decided, and what happened.
func (a *app) explainedModel(e *coordinatorv1.ExplainResponse) string {
	s, now := a.style(a.stdout), time.Now()
	var b strings.Builder
	for _, one := range e.GetExplanations() {
		b.WriteString(ui.Explain(s, one, now))
	}
	b.WriteString(ui.Findings(s, e.GetFindings()))
	b.WriteString(ui.Suggestions(s, e.GetSuggestions()))
	for _, d := range e.GetDecisions() {
		b.WriteString("\nrun " + d.GetRunId() + ", as decided\n" + ui.Explain(s, d, now))
	}
	if len(e.GetIncidents()) > 0 {
		b.WriteString("\n" + ui.Incidents(s, e.GetIncidents(), now))
	}
	return b.String()
}

// decisionsShown is how many decisions of a run are shown without --all.
const decisionsShown = 3

func (a *app) explainedRun(id string, e *coordinatorv1.ExplainResponse, o explainOptions) error {
	s, now := a.style(a.stdout), time.Now()
	taken := e.GetDecisions()
	if left := len(taken) - decisionsShown; left > 0 && !o.all {
		a.note("%s before: --all shows them", ui.Plural(int64(left), "decision was taken", "decisions were taken"))
		taken = taken[left:]
	}
	var b strings.Builder
	if len(taken) > 0 {
		b.WriteString("as decided\n" + ui.Decisions(s, taken, now))
	}
	if len(e.GetExplanations()) > 0 {
		b.WriteString("now\n")
	}
	for _, one := range e.GetExplanations() {
		b.WriteString(ui.Explain(s, one, now))
	}
	if b.Len() == 0 {
		a.next("loopkeeper show " + id)
		b.WriteString("Nothing of the run is on a machine, and nothing waits for one.\n")
	}
	return a.printText(b.String())
}
