package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newImport(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Take in a run that was exported", Args: cobra.ExactArgs(1),
		Long: "Take in a run that was exported, here or elsewhere. All of the file is checked before anything of it is kept. " +
			"Only a run that has ended can be imported: another would go on in two places.",
		Example: "  loopkeeper import 7f3k.tar.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context())
			if err != nil {
				return needsCoordinator(err)
			}
			defer c.close()
			return a.importRun(cmd.Context(), c, args[0])
		},
	}
}

// needsCoordinator says why an import cannot go without: who looks at a file may think that it can.
func needsCoordinator(err error) error {
	e := apierr.As(apierr.FromStatus(err))
	if e.Code == apierr.Unavailable {
		e.Message += "; an import goes through a coordinator, which alone writes to its ledger: start one, then import again"
	}
	return e
}

func (a *app) importRun(ctx context.Context, c *client, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return apierr.Wrap(err, apierr.NotFound, "open the export").WithNext("loopkeeper export RUN --out FILE  # where the run is")
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return apierr.New(apierr.InvalidArgument, "%s is no file", path).WithNext("loopkeeper import FILE")
	}
	if err != nil {
		return err
	}
	r, err := a.send(ctx, c, f, info.Size())
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(ui.Plain(r))
	}
	if owner := r.GetKeyOwner(); owner != "" {
		a.note("its key belongs to run %s here, so it is without", owner)
	}
	if n := r.GetPruned(); n > 0 {
		a.note("%s had been dropped where it comes from", ui.Plural(n, "body", "bodies"))
	}
	a.next("loopkeeper show "+r.GetRunId(), "loopkeeper replay "+r.GetRunId())
	if r.GetExisting() {
		return a.printText("run " + r.GetRunId() + " is here already, event for event\n")
	}
	return a.printText("run " + r.GetRunId() + "  " + ui.Plural(r.GetEvents(), "event", "events") + ", " + ui.Plural(r.GetBodies(), "body", "bodies") + "\n")
}

// send uploads an export.
func (a *app) send(ctx context.Context, c *client, f io.Reader, size int64) (*coordinatorv1.ImportRunResponse, error) {
	stream, err := c.records().ImportRun(ctx)
	if err != nil {
		return nil, err
	}
	m := &meter{a: a, what: "sent", total: size, began: time.Now()}
	buf := make([]byte, chunkBytes)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if stream.Send(&coordinatorv1.ImportRunRequest{Chunk: buf[:n]}) != nil {
				break // the reason comes with the answer
			}
			m.add(n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the export")
		}
	}
	m.end()
	done := a.slow("checking and importing")
	defer done()
	return stream.CloseAndRecv()
}
