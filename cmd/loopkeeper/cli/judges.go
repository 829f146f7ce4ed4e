package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// judges is what the coordinator knows of prompts and judges.
func (c *client) judges() coordinatorv1.JudgeServiceClient {
	return coordinatorv1.NewJudgeServiceClient(c.conn)
}

func newJudges(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "judges", Short: "Say what the word of models that judge is worth, and measure it", Args: cobra.NoArgs,
		Long: "Say what the word of models that judge is worth, and measure it.\n\n" +
			"A judge is asked about texts of which the right answer is known: good ones, and ones into which code has put a defect. What comes out\n" +
			"holds for that model's digest, for these prompts and for that version of Ollama; new runs take it into account.",
		Example: "  loopkeeper judges list\n  loopkeeper judges calibrate\n  loopkeeper judges calibrate --judge qwen3:8b --judge llama3.1:8b --type coverage",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newJudgesList(a), newCalibrate(a))
	return c
}

func newJudgesList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what is known of judges, and whether it still holds", Args: cobra.NoArgs,
		Example: "  loopkeeper judges list\n  loopkeeper judges list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), a.listJudges)
		},
	}
}

func (a *app) listJudges(ctx context.Context, c *client) error {
	r, err := c.judges().ListJudges(ctx, &coordinatorv1.ListJudgesRequest{})
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	style := a.style(a.stdout)
	text := "Nothing is known of any judge.\n"
	if len(r.GetJudges()) > 0 {
		text = ui.Judges(style, r.GetJudges(), time.Now()) + ui.JudgePairs(style, r.GetPairs())
	}
	if missing := r.GetUncalibrated(); len(missing) > 0 {
		text += "Uncalibrated, of the role judge: " + ui.Line(strings.Join(missing, ", ")) + "\n"
	}
	switch missing := r.GetUncalibrated(); {
	case len(missing) > 0:
		a.next("loopkeeper judges calibrate --judge " + judgeList(missing))
	case len(r.GetJudges()) == 0:
		a.next("loopkeeper judges calibrate --judge MODEL", "loopkeeper models")
	default:
		var stale []string
		for _, j := range r.GetJudges() {
			if j.GetStale() != "" {
				stale = append(stale, j.GetModel())
			}
		}
		if stale = distinct(stale); len(stale) > 0 {
			a.next("loopkeeper judges calibrate --judge " + judgeList(stale))
		}
	}
	return a.printText(text)
}

// judgeList is what stands behind --judge.
func judgeList(models []string) string {
	quoted := make([]string, len(models))
	for i, m := range models {
		quoted[i] = quote(m)
	}
	return strings.Join(quoted, " --judge ")
}
