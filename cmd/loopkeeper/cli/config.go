package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
)

func newConfig(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Show the settings, or an example file", Example: "  loopkeeper config show\n  loopkeeper config example > loopkeeper.yaml",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Show every setting and where its value comes from", Example: "  loopkeeper config show -o json", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.showConfig() },
		},
		&cobra.Command{
			Use: "example", Short: "Print a settings file that holds every key with its default", Args: cobra.NoArgs,
			Example: "  loopkeeper config example > ~/.config/loopkeeper/loopkeeper.yaml",
			RunE:    func(*cobra.Command, []string) error { return a.printText(configs.Example) },
		},
	)
	return c
}

func (a *app) showConfig() error {
	rows := configs.Show(a.config, a.origins)
	if a.json() {
		list := []any{}
		for _, r := range rows {
			list = append(list, r)
		}
		return a.printList("settings", list)
	}
	t := ui.Table{Columns: ui.Columns("SETTING", "VALUE", "FROM")}
	for _, r := range rows {
		t.Add(r.Key, fmt.Sprint(r.Value), r.Origin)
	}
	return a.printText(t.String())
}
