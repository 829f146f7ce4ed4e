package cli

import (
	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

const scriptHostCommand = "script-host"

// newScriptHost is the process that the coordinator starts for each script: it runs untrusted code, so it reads no
// settings and nothing else.
func newScriptHost(a *app) *cobra.Command {
	return &cobra.Command{
		Use: scriptHostCommand, Short: "Run one script for a coordinator", Hidden: true, Args: cobra.NoArgs,
		Example:           "  the coordinator starts it",
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(*cobra.Command, []string) error { return script.ServeChild(a.stdin, a.stdout) },
	}
}
