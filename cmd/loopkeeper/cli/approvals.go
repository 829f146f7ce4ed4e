package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newApprovals(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "approvals [RUN]", Short: "List what waits for a person: approvals, questions, doubts", Args: cobra.MaximumNArgs(1),
		Long: "List what waits for a person, the oldest first: approvals, questions, and writes to the outside of which a crash hid whether they\n" +
			"happened. Of one run each is shown in full, with the beginning of what there is to look at.",
		Example: "  loopkeeper approvals\n  loopkeeper approvals 7f3k",
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.approvals(ctx, c, id) })
		},
	}
}

func (a *app) approvals(ctx context.Context, c *client, id string) error {
	r, err := c.ListWaits(ctx, &coordinatorv1.ListWaitsRequest{RunId: id})
	if err != nil {
		return err
	}
	waits := r.GetWaits()
	if a.json() {
		list := []any{}
		for _, w := range waits {
			list = append(list, ui.Plain(w))
		}
		return a.printList("waits", list)
	}
	if id == "" || len(waits) == 0 {
		if len(waits) > 0 {
			a.next("loopkeeper approvals "+waits[0].GetRunId(), howToAnswer(waits[0]))
		}
		return a.printText(ui.Waits(a.style(a.stdout), waits, time.Now()))
	}
	for i, w := range waits {
		show, err := a.toShow(ctx, c, w)
		if err != nil {
			return err
		}
		text := ui.Wait(a.style(a.stdout), w, show, time.Now())
		if i > 0 {
			text = "\n" + text
		}
		if err := a.printText(text); err != nil {
			return err
		}
		a.next(howToAnswer(w))
	}
	return nil
}

// howToAnswer is the command that answers a wait. Typed as it is it says yes, or what can be said; nobody's words are put there for them.
func howToAnswer(w *coordinatorv1.Wait) string {
	at := w.GetRunId() + " " + w.GetStep()
	switch {
	case w.GetKind() == "approve":
		return "loopkeeper approve " + at + "  # or reject"
	case w.GetKind() != "question":
		return "loopkeeper resolve " + at + " --happened  # or --not-happened"
	case len(w.GetChoices()) > 0:
		var choices []string
		for _, c := range w.GetChoices() {
			choices = append(choices, quote(ui.Line(c)))
		}
		return strings.TrimSuffix("loopkeeper answer "+at+" "+choices[0]+"  # or "+strings.Join(choices[1:], ", "), "  # or ")
	case len(w.GetSchemaJson()) > 0:
		return "loopkeeper answer " + at + " --json JSON  # that fits the schema"
	default:
		return "loopkeeper answer " + at + " ''  # with your answer between the quotes"
	}
}

// toShow opens what a wait wants to be looked at.
func (a *app) toShow(ctx context.Context, c *client, w *coordinatorv1.Wait) ([]ui.Body, error) {
	var out []ui.Body
	for i, raw := range w.GetShowJson() {
		var v any
		if err := decode(raw, &v); err != nil {
			return nil, fmt.Errorf("read what step %s shows: %w", w.GetStep(), err)
		}
		body := ui.Body{Name: fmt.Sprintf("to look at, %d of %d", i+1, len(w.GetShowJson())), Text: ui.Value(v)}
		var r ref
		if json.Unmarshal(raw, &r) == nil && r.SHA256 != "" {
			text, err := fetch(ctx, c, r.SHA256)
			if err != nil {
				return nil, err
			}
			body = ui.Body{Name: r.Name, Text: text}
		}
		out = append(out, body)
	}
	return out, nil
}
