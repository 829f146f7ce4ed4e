package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDeepGlobsMatchAsAShellDoes(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"**/*.md", "a.md", true}, {"**/*.md", "x/y/a.md", true}, {"**/*.md", "x/a.txt", false}, {"**", "x/y/z", true},
		{"x/**/z/*", "x/z/a", true}, {"x/**/z/*", "x/y/y/z/a", true}, {"x/**/z/*", "x/y/a", false}, {"**/[ab].md", "d/b.md", true},
		{"**/[ab].md", "d/c.md", false}, {"**/a?.md", "a/b.md", false}, {"**/**/a", "a", true},
	} {
		if got := matches(strings.Split(c.pattern, "/"), strings.Split(c.path, "/")); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.path, got)
		}
	}
}

// Ctrl-C ends the reading of a folder, however many files are in it, and is no file that was left out.
func TestReadingEndsOnCtrlC(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("A text."), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, arg := range []string{dir, filepath.Join(dir, "a.md"), filepath.Join(dir, "*.md"), filepath.Join(dir, "**", "*.md")} {
		if _, left, err := inputs(ctx, []string{arg}, ""); !errors.Is(err, context.Canceled) || len(left.all()) > 0 {
			t.Errorf("%s: %v, left out %v", arg, err, left.all())
		}
	}
}
