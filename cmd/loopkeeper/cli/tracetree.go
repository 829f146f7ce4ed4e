package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// events are a run's events as the coordinator streams them, asked for again each time they are gone through.
func (c *client) events(ctx context.Context, id string) answers.Events {
	return func(yield func(run.Event, error) bool) {
		stream, err := c.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id})
		for err == nil {
			var e *coordinatorv1.GetTraceResponse
			if e, err = stream.Recv(); err != nil {
				break
			}
			decoded, bad := run.Decode(e.GetSeq(), e.GetTime().AsTime(), e.GetKind(), e.GetPayloadJson())
			if bad != nil {
				err = apierr.Wrap(bad, apierr.LedgerTooNew, "read run %s", id).WithNext("loopkeeper trace "+id, "loopkeeper version  # on both sides")
			} else if !yield(decoded, nil) {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
		case codeOf(err) == apierr.NotFound:
			yield(run.Event{}, errors.Join(answers.ErrNoRun, err))
		default:
			yield(run.Event{}, err)
		}
	}
}

// nodeNames are the names of the machines by id.
func (c *client) nodeNames(ctx context.Context) (answers.Names, error) {
	r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if err != nil {
		return nil, err
	}
	names := answers.Names{}
	for _, n := range r.GetNodes() {
		names[n.GetId()] = n.GetName()
	}
	return names, nil
}

// traceTree prints a run as a tree.
func (a *app) traceTree(ctx context.Context, c *client, id string) error {
	id, names, err := c.named(ctx, id)
	if err != nil {
		return err
	}
	root, err := answers.Tree(id, func(id string) answers.Events { return c.events(ctx, id) }, names)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(root)
	}
	t := treePrinter{style: a.style(a.stdout)}
	t.print(root, "", "")
	return a.printText(t.b.String())
}

// named finds a run and the names of the machines.
func (c *client) named(ctx context.Context, id string) (string, answers.Names, error) {
	r, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
	if err != nil {
		return "", nil, err
	}
	names, err := c.nodeNames(ctx)
	return r.GetRun().GetId(), names, err
}

type treePrinter struct {
	style ui.Style
	b     strings.Builder
}

// print draws a part and what hangs under it; under is what stands before the lines of its children.
func (t *treePrinter) print(b *answers.Branch, lead, under string) {
	text := ui.Line(b.Name)
	if b.Kind == "run" || b.Kind == "phase" {
		text = b.Kind + " " + text
	}
	for _, part := range []string{t.style.State(b.State), onNode(b), took(b), ui.Line(b.Text)} {
		if part = strings.TrimSpace(part); part != "" {
			text += "  " + part
		}
	}
	line := lead + text
	if t.style.Width > 0 {
		line = ansi.Truncate(line, t.style.Width, "")
	}
	t.b.WriteString(line + "\n")
	fork, last, pipe := "|- ", "`- ", "|  "
	if t.style.Unicode {
		fork, last, pipe = "├─ ", "└─ ", "│  "
	}
	for i, c := range b.Children {
		if i == len(b.Children)-1 {
			t.print(c, under+last, under+"   ")
		} else {
			t.print(c, under+fork, under+pipe)
		}
	}
}

func onNode(b *answers.Branch) string {
	if b.Node == "" {
		return ""
	}
	return "on " + ui.Line(b.Node)
}

func took(b *answers.Branch) string {
	if b.Begin == nil || b.End == nil {
		return ""
	}
	return ui.Duration(b.End.Sub(*b.Begin))
}
