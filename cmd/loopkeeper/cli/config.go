package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func newConfig(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Show the settings, or an example file", Example: "  loopkeeper config show\n  loopkeeper config example --write",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newConfigExample(a),
		&cobra.Command{
			Use: "show", Short: "Show every setting and where its value comes from", Example: "  loopkeeper config show -o json", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.showConfig() },
		},
	)
	return c
}

func newConfigExample(a *app) *cobra.Command {
	var write bool
	c := &cobra.Command{
		Use: "example", Short: "Print a settings file that holds every key with its default", Args: cobra.NoArgs,
		Long: "Print a settings file that holds every key with its default and what it means. As it stands it changes nothing.\n" +
			"With --write it becomes this user's settings file, or the file that --config names.",
		Example: "  loopkeeper config example\n  loopkeeper config example --write",
		// It helps to repair a settings file, so it reads none.
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkOutput() },
		RunE: func(*cobra.Command, []string) error {
			if write {
				return a.writeExample()
			}
			return a.printText(configs.Example)
		},
	}
	c.Flags().BoolVar(&write, "write", false, "write it to the settings file, which must not exist yet")
	return c
}

// writeExample makes the example the user's settings file. A file that is there is left as it is.
func (a *app) writeExample() error {
	path := a.flags.config
	if path == "" {
		path = configs.FromSystem().Fallback
	}
	if path == "" {
		return apierr.New(apierr.NotFound, "this user has no folder for settings").WithNext("loopkeeper config example --write --config FILE")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "make the folder of the settings file").WithNext("loopkeeper config example --write --config FILE")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return apierr.New(apierr.Conflict, "%s exists already and was left as it is", path).WithNext("loopkeeper config show")
	}
	if err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "write the settings file").WithNext("loopkeeper config example --write --config FILE")
	}
	_, err = f.WriteString(configs.Example)
	if err := firstError(err, f.Close()); err != nil {
		return fmt.Errorf("write the settings file: %w", err)
	}
	if a.json() {
		return a.printJSON(map[string]any{"file": path})
	}
	a.next("loopkeeper config show")
	return a.printText(path + "\n")
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
		t.Add(r.Key, ui.SettingText(r.Value), r.Origin)
	}
	return a.printText(t.String())
}
