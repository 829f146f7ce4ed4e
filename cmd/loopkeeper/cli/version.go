package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// release is the semantic version, which the two sides of a connection compare.
const release = "0.1.0"

// version is what the build says of its source, such as a tag or a commit; set by the linker.
var version string

// fullVersion is the release with what is known of the build: 0.1.0+abc1234.
func fullVersion() string {
	build := version
	if build == "" {
		build = buildInfo()
	}
	build = strings.TrimPrefix(build, "v")
	if build == "" || build == release {
		return release
	}
	return release + "+" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '.' // build metadata has letters, digits, dots and hyphens; one separator is enough
	}, build)
}

// buildInfo is the commit that the go command saw.
func buildInfo() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var commit, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 7)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  loopkeeper version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json() {
				return a.printJSON(map[string]any{"version": fullVersion(), "release": release, "go": runtime.Version(), "platform": platform})
			}
			return a.printText(fmt.Sprintf("loopkeeper %s  %s  %s\n", fullVersion(), runtime.Version(), platform))
		},
	}
}
