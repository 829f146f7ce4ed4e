package cli

import (
	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

func newTypes(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "types", Short: "Print loopkeeper.d.ts, by which an editor checks scripts", Args: cobra.NoArgs,
		Example: "  loopkeeper types > loopkeeper.d.ts",
		RunE: func(*cobra.Command, []string) error {
			if a.json() {
				return a.printJSON(map[string]any{"file": "loopkeeper.d.ts", "text": script.Types})
			}
			return a.printText(script.Types)
		},
	}
}
