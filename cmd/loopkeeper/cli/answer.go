package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// who is the person at this command line, as the ledger keeps it.
func who() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "the command line"
}

func newApprove(a *app) *cobra.Command {
	return newVerdict(a, "approve", "Say yes to a step that waits for it", "approved")
}

func newReject(a *app) *cobra.Command {
	return newVerdict(a, "reject", "Say no to a step that waits for a yes", "rejected")
}

func newVerdict(a *app, verb, short, outcome string) *cobra.Command {
	q := &coordinatorv1.AnswerWaitRequest{Outcome: outcome}
	c := &cobra.Command{
		Use: verb + " RUN [STEP]", Annotations: map[string]string{answersWaits: ""}, Short: short, Args: cobra.RangeArgs(1, 2),
		Long:    short + ". Without STEP it is the only one of the run that waits. The comment goes to the script, and the ledger keeps both.",
		Example: "  loopkeeper " + verb + " 7f3k\n  loopkeeper " + verb + " 7f3k 12 --comment 'the second draft'",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.RunId = args[0]
			if len(args) == 2 {
				q.Step = args[1]
			}
			return a.answerWait(cmd.Context(), q)
		},
	}
	c.Flags().StringVar(&q.Comment, "comment", "", "`TEXT` for the script and the ledger")
	return c
}

func newAnswer(a *app) *cobra.Command {
	var q coordinatorv1.AnswerWaitRequest
	var asJSON bool
	c := &cobra.Command{
		Use: "answer RUN [STEP] ANSWER", Annotations: map[string]string{answersWaits: ""}, Short: "Answer a question of a run", Args: cobra.RangeArgs(2, 3),
		Long:    "Answer a question of a run. ANSWER is a text; with --json it is any value. Without STEP it is the only one that waits.",
		Example: "  loopkeeper answer 7f3k 'the blue one'\n  loopkeeper answer 7f3k 4 --json '{\"rooms\": 3}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.RunId = args[0]
			if len(args) == 3 {
				q.Step = args[1]
			}
			text := args[len(args)-1]
			if q.AnswerJson = []byte(text); asJSON && !json.Valid(q.AnswerJson) {
				return usagef("--json %q: not JSON", text)
			} else if !asJSON {
				q.AnswerJson, _ = json.Marshal(text) // a text always marshals
			}
			return a.answerWait(cmd.Context(), &q)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "ANSWER is JSON")
	c.Flags().StringVar(&q.Comment, "comment", "", "`TEXT` for the script and the ledger")
	return c
}

func newResolve(a *app) *cobra.Command {
	var q coordinatorv1.AnswerWaitRequest
	var happened, not bool
	var value string
	c := &cobra.Command{
		Use: "resolve RUN STEP", Annotations: map[string]string{answersWaits: ""}, Short: "Say whether a write happened that was interrupted", Args: cobra.ExactArgs(2),
		Long: "Say whether a write to the outside happened that was interrupted, such as by a power cut: it is not done again before somebody\n" +
			"has looked. One that happened counts as done; one that did not is done again.",
		Example: "  loopkeeper resolve 7f3k 8 --happened\n  loopkeeper resolve 7f3k 8 --not-happened --comment 'the folder is empty'",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.RunId, q.Step, q.Outcome = args[0], args[1], "happened"
			switch {
			case happened == not:
				return usagef("say either --happened or --not-happened")
			case not && value != "":
				return usagef("--value is of a write that happened")
			case not:
				q.Outcome = "not_happened"
			case value != "":
				if q.AnswerJson = []byte(value); !json.Valid(q.AnswerJson) {
					return usagef("--value %q: not JSON", value)
				}
			}
			return a.answerWait(cmd.Context(), &q)
		},
	}
	f := c.Flags()
	f.BoolVar(&happened, "happened", false, "it happened")
	f.BoolVar(&not, "not-happened", false, "it did not happen; it is done again")
	f.StringVar(&value, "value", "", "`JSON` that the tool gave, where that is known")
	f.Int32Var(&q.Item, "item", 0, "`INDEX` of the item, in a step of several")
	f.StringVar(&q.Comment, "comment", "", "`TEXT` that says what you saw")
	return c
}

// answerWait sends a person's answer and says what it was to.
func (a *app) answerWait(ctx context.Context, q *coordinatorv1.AnswerWaitRequest) error {
	q.By = who()
	return a.withClient(ctx, func(ctx context.Context, c *client) error {
		r, err := c.AnswerWait(ctx, q)
		if err != nil {
			return unfitting(ctx, c, q, err)
		}
		if a.json() {
			return a.printJSON(ui.Plain(r))
		}
		what := map[string]string{"": "answered", "not_happened": "not happened"}[q.GetOutcome()]
		if what == "" {
			what = q.GetOutcome()
		}
		w := r.GetWait()
		for _, n := range r.GetNotes() {
			a.note("%s", ui.Line(n))
		}
		a.next(a.afterwards(r.GetRun())...)
		return a.printText(fmt.Sprintf("run %s  step %s  %s: %s\n", w.GetRunId(), w.GetStep(), what, ui.Line(w.GetTitle())))
	})
}

// unfitting adds to the refusal of an answer what would fit.
func unfitting(ctx context.Context, c *client, q *coordinatorv1.AnswerWaitRequest, err error) error {
	e := apierr.As(apierr.FromStatus(err))
	if e.Code != apierr.InvalidArgument {
		return err
	}
	r, failed := c.ListWaits(ctx, &coordinatorv1.ListWaitsRequest{RunId: q.GetRunId()})
	if failed != nil {
		return err // what went wrong first matters more
	}
	for _, w := range r.GetWaits() {
		if w.GetKind() == "question" && (q.GetStep() == w.GetStep() || q.GetStep() == "" && len(r.GetWaits()) == 1) {
			e.Next = []string{howToAnswer(w), "loopkeeper approvals " + w.GetRunId()}
		}
	}
	return e
}
