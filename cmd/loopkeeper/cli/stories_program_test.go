package cli_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var raced = flag.Bool("raced", false, "let every command of every story be this test binary, with its race detector")

// The stories whose commands do several things at once, or start daemons: all of their commands have the race detector. In the others
// it is what `start` and `interrupt` run.
var racedStories = []string{"alone", "demo", "map", "plan", "pull", "restart", "run"}

// quickProgram builds the program as users have it, and returns its folder. With the race detector a command needs four times as much of
// a processor only to begin, and the stories have hundreds.
func quickProgram(t *testing.T) string {
	t.Helper()
	if *raced {
		return ""
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "github.com/loopkeeper/loopkeeper/cmd/loopkeeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile, so that what was compiled there need not be again
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return dir
}

// choose says which program a story's `exec loopkeeper` is.
func choose(e *testscript.Env, quick string) {
	e.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector waits a second at every exit otherwise; daemons do
	story := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	if !*raced && !slices.Contains(racedStories, story) {
		e.Setenv("PATH", quick+string(filepath.ListSeparator)+e.Getenv("PATH"))
	}
}
