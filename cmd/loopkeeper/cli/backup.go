package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newBackup(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "backup FOLDER", Short: "Write a consistent copy of the ledger while runs go on", Args: cobra.ExactArgs(1),
		Long: "Write a consistent copy of the ledger while runs go on. FOLDER is made, on the machine of the coordinator; one that exists is refused. " +
			"The copy opens like the original: put it in the place of ledger in the data folder.",
		Example: "  loopkeeper backup /media/disk/loopkeeper-2026-11-29",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.backup(ctx, c, args[0]) })
		},
	}
}

func (a *app) backup(ctx context.Context, c *client, folder string) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	done := a.slow("copying")
	r, err := c.records().BackUp(ctx, &coordinatorv1.BackUpRequest{Path: path})
	done()
	if err != nil {
		return err
	}
	if a.json() {
		m := ui.Plain(r)
		m["path"] = path
		return a.printJSON(m)
	}
	return a.printText(fmt.Sprintf("%s on %s  %s bytes in %s\n", path, c.info.GetName(), ui.Count(r.GetBytes()), ui.Duration(time.Duration(r.GetNanos()))))
}
