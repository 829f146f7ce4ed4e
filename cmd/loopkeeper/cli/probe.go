package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
)

func newProbe(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "probe", Short: "Show what this machine has: devices, memory, and where each number comes from", Args: cobra.NoArgs,
		Long:    "Show what this machine has: devices, memory pools, and where each number comes from. It needs no daemon.",
		Example: "  loopkeeper probe\n  loopkeeper probe -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), probe.DefaultTimeout)
			defer cancel()
			r := probe.Probe(ctx, probe.ThisMachine())
			if a.json() {
				return a.printJSON(r)
			}
			return a.printText(ui.Probe(a.style(a.stdout), r))
		},
	}
}
