//go:build unix

package tools

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe without a writer would hold an open for ever.
func TestPipesAreRefusedAtOnce(t *testing.T) {
	r := newRig(t)
	if err := syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	r.refused("k", "file.read", `{"path":"pipe"}`, NotAFile)
	r.refused("k", "file.write", `{"path":"pipe","body":"x"}`, NotAFile)
}
