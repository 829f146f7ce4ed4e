package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// traceOptions say what of a run's events is shown.
type traceOptions struct {
	follow bool
	full   bool   // with what was asked and answered
	item   string // of this item alone

	tree, timeline bool // another view of all of it
}

func newTrace(a *app) *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use: "trace RUN", Short: "Print a run's events in the order in which they happened", Args: cobra.ExactArgs(1),
		Long: "Print a run's events in the order in which they happened, a line each; -o jsonl has all that the ledger knows of them.\n" +
			"With --full the prompt and the reply of every attempt follow, and what a judge concluded on which quotes.\n\n" +
			"--tree is the run with its phases and branches, their steps, items and tries, and the runs that it started. --timeline is a lane for each " +
			"machine and each kind of waiting, with loads.",
		Example: "  loopkeeper trace 7f3k\n  loopkeeper trace 7f3k --tree\n  loopkeeper trace 7f3k --item docs/errors.md\n  loopkeeper trace 7f3k --follow -o jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (o.tree || o.timeline) && (o.tree == o.timeline || o.follow || o.full || o.item != "") {
				return usagef("--tree and --timeline are views of all of a run: each stands alone")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.trace(ctx, c, args[0], o) })
		},
	}
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the run ends")
	c.Flags().BoolVar(&o.full, "full", false, "open the prompt and the reply of every attempt")
	c.Flags().BoolVar(&o.tree, "tree", false, "as a tree: phases, branches, steps, items, tries, children")
	c.Flags().BoolVar(&o.timeline, "timeline", false, "over time: a lane for each machine, waits and loads")
	c.Flags().StringVar(&o.item, "item", "", "only this `item`, by its key such as a file name, or this step, by its label or as 'step 3 generate'; in full")
	return c
}

func (a *app) trace(ctx context.Context, c *client, id string, o traceOptions) error {
	switch {
	case o.tree:
		return a.traceTree(ctx, c, id)
	case o.timeline:
		return a.traceTimeline(ctx, c, id)
	}
	nodes, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return err
	}
	t := &tracer{a: a, c: c, o: o, trace: ui.Trace{Style: a.style(a.stdout), Names: map[string]string{}}}
	for _, n := range nodes.GetNodes() {
		t.trace.Names[n.GetId()] = n.GetName()
	}
	stream, err := c.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id, Follow: o.follow})
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return t.end(id)
		}
		if err == nil {
			err = t.take(ctx, e)
		}
		if err != nil {
			return err
		}
	}
}

// tracer prints events as they come.
type tracer struct {
	a     *app
	c     *client
	o     traceOptions
	trace ui.Trace
	list  []any // for -o json
	any   bool  // something was shown
}

func (t *tracer) take(ctx context.Context, raw *coordinatorv1.GetTraceResponse) error {
	e := t.trace.Add(raw)
	if t.o.item != "" && e.Item != t.o.item && e.About != t.o.item {
		return nil
	}
	t.any = true
	var prompt, reply string
	if t.o.full || t.o.item != "" {
		var err error
		if prompt, err = t.body(ctx, e.Prompt); err != nil {
			return err
		}
		if reply, err = t.body(ctx, e.Reply); err != nil {
			return err
		}
	}
	if !t.a.json() {
		return t.a.printText(t.trace.Line(e) + "\n" + ui.Asked(e, prompt, reply, t.o.full || t.o.item != ""))
	}
	m := ui.Plain(raw)
	if prompt != "" || reply != "" {
		m["prompt"], m["reply"] = prompt, reply
	}
	if t.a.flags.output == "json" {
		t.list = append(t.list, m)
		return nil
	}
	return t.a.printJSON(m)
}

// body opens what was asked or answered, "" for nothing.
func (t *tracer) body(ctx context.Context, sha string) (string, error) {
	if sha == "" {
		return "", nil
	}
	return fetch(ctx, t.c, sha)
}

func (t *tracer) end(id string) error {
	if t.o.item != "" && !t.any {
		return apierr.New(apierr.NotFound, "nothing of run %s is about an item named %s", id, t.o.item).WithNext("loopkeeper result " + id + " --items  # lists the items")
	}
	if t.a.flags.output == "json" {
		return t.a.printList("events", append([]any{}, t.list...))
	}
	return nil
}
