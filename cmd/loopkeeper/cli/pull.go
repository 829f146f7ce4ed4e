package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

type pullOptions struct {
	on         []string
	everywhere bool
}

func newPull(a *app) *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use: "pull MODEL", Short: "Download a model on one machine, on several or on all", Args: cobra.ExactArgs(1),
		Long: "Have machines download a model from Ollama's registry, several at once, and show how far each is. A machine that has it\n" +
			"already only looks for a newer one. Without --on and --everywhere it is the machine that is up, when there is one only.\n\n" +
			"Ctrl-C ends the downloads that nobody else asked for; what has come is kept, and the next pull goes on from there.",
		Example: "  loopkeeper models pull qwen3:8b --on den\n  loopkeeper models pull qwen3:8b --on attic --on den\n  loopkeeper models pull qwen3:8b --everywhere",
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.everywhere && len(o.on) > 0 {
				return usagef("--on and --everywhere exclude each other")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.pull(ctx, c, args[0], o) })
		},
	}
	c.Flags().StringArrayVar(&o.on, "on", nil, "`NODE` that downloads it; may be repeated")
	c.Flags().BoolVar(&o.everywhere, "everywhere", false, "every machine that is there downloads it, drained and paused ones too")
	return c
}

// pull has machines download a model and shows how that goes on.
func (a *app) pull(ctx context.Context, c *client, model string, o pullOptions) error {
	r := &coordinatorv1.PullModelRequest{Model: model, Nodes: o.on, Everywhere: o.everywhere}
	if len(o.on) == 0 && !o.everywhere {
		node, err := onlyNode(ctx, c, model)
		if err != nil {
			return err
		}
		r.Nodes = []string{node}
	}
	if o.everywhere {
		if err := a.leftOut(ctx, c); err != nil {
			return err
		}
	}
	stream, err := c.PullModel(ctx, r)
	if err != nil {
		return err
	}
	screen := &ui.Pulls{W: a.stderr, Style: a.style(a.stderr), Live: live(a.stderr)}
	newest := map[string]*coordinatorv1.PullModelResponse{} // by machine
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return a.pulled(model, newest)
		}
		if err != nil {
			if ctx.Err() != nil && !a.json() {
				a.note("ended; what has come is kept, and the next pull goes on from there")
			}
			return nearNodes(ctx, c, r.GetNodes(), err)
		}
		newest[m.GetNode()] = m
		switch {
		case a.flags.output == "table":
			screen.Add(m, time.Now())
		case a.flags.output == "jsonl":
			if err := a.printJSON(ui.Plain(m)); err != nil {
				return err
			}
		}
	}
}

// pulled is how a download ended over all machines.
func (a *app) pulled(model string, newest map[string]*coordinatorv1.PullModelResponse) error {
	var list []any
	var names, why, next []string // of those that failed
	for _, name := range sorted(newest) {
		m := newest[name]
		list = append(list, ui.Plain(m))
		if m.GetError() != "" {
			names, why, next = append(names, name), append(why, m.GetError()), append(next, m.GetNext()...)
		}
	}
	if a.flags.output == "json" {
		if err := a.printList("nodes", list); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		if !a.json() {
			a.next("loopkeeper fit " + model)
		}
		return nil
	}
	e := apierr.New(apierr.Unavailable, "%s was not downloaded on %s: %s", model, strings.Join(names, ", "), strings.Join(distinct(why), "; ")).WithNext(next...)
	e.Next = distinct(e.Next)
	return e.WithNext(fmt.Sprintf("loopkeeper models pull %s --on %s", model, names[0]))
}

// leftOut says which machines are not there to download anything, so that "everywhere" is not read as more than it is.
func (a *app) leftOut(ctx context.Context, c *client) error {
	r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return err
	}
	var names []string
	for _, n := range r.GetNodes() {
		if state := n.GetState(); state == "up" || state == "draining" || state == "paused" {
			continue
		}
		names = append(names, ui.Line(n.GetName())+" ("+n.GetState()+")")
		if a.flags.output == "jsonl" {
			if err := a.printJSON(map[string]any{"node": n.GetName(), "state": n.GetState(), "left_out": true}); err != nil {
				return err
			}
		}
	}
	if len(names) > 0 && !a.json() {
		a.note("%s left out: %s", ui.Plural(int64(len(names)), "machine is", "machines are"), strings.Join(names, ", "))
	}
	return nil
}

// onlyNode is the machine that is up, when there is one only.
func onlyNode(ctx context.Context, c *client, model string) (string, error) {
	r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return "", err
	}
	var up []string
	for _, n := range r.GetNodes() {
		if n.GetState() == "up" {
			up = append(up, n.GetName())
		}
	}
	switch len(up) {
	case 1:
		return up[0], nil
	case 0:
		return "", apierr.New(apierr.Unavailable, "no machine is up").WithNext("loopkeeper nodes")
	}
	next := []string{"loopkeeper models pull " + model + " --everywhere"}
	for _, name := range up {
		next = append(next, "loopkeeper models pull "+model+" --on "+name)
	}
	return "", usageError{error: fmt.Errorf("%d machines are up: say on which it is to be downloaded", len(up)), next: next}
}
