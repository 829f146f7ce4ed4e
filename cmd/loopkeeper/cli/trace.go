package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newTrace(a *app) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "trace RUN", Short: "Print a run's events in the order in which they happened", Args: cobra.ExactArgs(1),
		Example: "  loopkeeper trace 7ex9\n  loopkeeper trace 7ex9 --follow -o jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.trace(ctx, c, args[0], follow) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	return c
}

func (a *app) trace(ctx context.Context, c *client, id string, follow bool) error {
	stream, err := c.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id, Follow: follow})
	if err != nil {
		return err
	}
	var events []any
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch a.flags.output {
		case "json":
			events = append(events, ui.Plain(e))
		case "jsonl":
			err = a.printJSON(ui.Plain(e))
		default:
			at := e.GetTime().AsTime().Local().Format("15:04:05.000")
			err = a.printText(fmt.Sprintf("%5d  %s  %-18s  %s\n", e.GetSeq(), at, e.GetKind(), ui.Line(string(e.GetPayloadJson()))))
		}
		if err != nil {
			return err
		}
	}
	if a.flags.output == "json" {
		return a.printList("events", append([]any{}, events...))
	}
	return nil
}
