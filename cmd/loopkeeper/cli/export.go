package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newExport(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "export RUN", Short: "Write a run with all it rests on as one file", Args: cobra.ExactArgs(1),
		Long: "Write a run with all it rests on as one file, a tar.gz that another loopkeeper imports, and that common tools read: " +
			"its events, what was decided, and every body that is still there. README.txt in it says how to check it.",
		Example: "  loopkeeper export 7f3k\n  loopkeeper export 7f3k --out night.tar.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.export(ctx, c, args[0], out) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "`FILE` that is made; left out it is RUN.tar.gz in this folder")
	return c
}

func (a *app) export(ctx context.Context, c *client, id, out string) (err error) {
	run, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
	if err != nil {
		return err
	}
	id = run.GetRun().GetId()
	if out == "" {
		out = id + ".tar.gz"
	}
	if _, err := os.Lstat(out); err == nil {
		return apierr.New(apierr.Conflict, "%s exists already", out).WithNext("loopkeeper export " + id + " --out OTHER")
	}
	f, err := os.OpenFile(out+".partial", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return cannotWrite(err)
	}
	n, err := a.receive(ctx, c, id, f)
	if err == nil {
		err = cannotWrite(errors.Join(f.Sync(), f.Close(), rename(f.Name(), out)))
	}
	if err != nil {
		return errors.Join(err, ignoreClosed(f.Close()), ignoreAbsent(os.Remove(f.Name())))
	}
	if a.json() {
		return a.printJSON(map[string]any{"run_id": id, "file": out, "bytes": n})
	}
	if run.GetRun().GetEnded() == nil {
		a.note("the run goes on: this is how it was; only a run that has ended can be imported")
	}
	a.next("loopkeeper import " + quote(out) + "  # on another machine")
	return a.printText(fmt.Sprintf("%s  %s bytes\n", out, ui.Count(n)))
}

// receive writes what the coordinator sends.
func (a *app) receive(ctx context.Context, c *client, id string, w io.Writer) (n int64, err error) {
	stream, err := c.records().ExportRun(ctx, &coordinatorv1.ExportRunRequest{RunId: id})
	if err != nil {
		return 0, err
	}
	m := &meter{a: a, what: "exported", began: time.Now()}
	defer m.end()
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return m.n, nil
		}
		if err != nil {
			return m.n, err
		}
		if _, err := w.Write(msg.GetChunk()); err != nil {
			return m.n, cannotWrite(err)
		}
		m.add(len(msg.GetChunk()))
	}
}

func cannotWrite(err error) error {
	if err == nil {
		return nil
	}
	return apierr.Wrap(err, apierr.InvalidArgument, "write the export").WithNext("--out FILE in a folder that you may write, on a disk with room")
}

// rename gives a complete file its name, unless something has it by now.
func rename(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Rename(from, to) // a disk without hard links
	}
	return os.Remove(from)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// meter counts bytes on stderr, once that lasts longer than a second: in place on a terminal, else now and then on a line.
type meter struct {
	a     *app
	what  string
	total int64 // 0 when it is not known
	n     int64
	began time.Time
	said  time.Time
}

func (m *meter) add(bytes int) {
	m.n += int64(bytes)
	every := 10 * time.Second
	redraw := live(m.a.stderr)
	if redraw {
		every = 100 * time.Millisecond
	}
	now := time.Now()
	if m.a.json() || now.Sub(m.began) < time.Second || now.Sub(m.said) < every {
		return
	}
	m.said = now
	text := fmt.Sprintf("%s %s MB", m.what, ui.Count(m.n>>20))
	if m.total > 0 {
		text += fmt.Sprintf(" of %s", ui.Count(m.total>>20))
	}
	if redraw {
		fmt.Fprint(m.a.stderr, "\r"+text)
		return
	}
	m.a.note("%s", text)
}

func (m *meter) end() {
	if !m.said.IsZero() && live(m.a.stderr) {
		fmt.Fprint(m.a.stderr, "\r\x1b[K")
	}
}
