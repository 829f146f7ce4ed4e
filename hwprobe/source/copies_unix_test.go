//go:build unix

package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A folder that somebody sends must not hang who opens it, nor fill the memory.
func TestFolderThatIsATrapIsNoRecording(t *testing.T) {
	index := func(text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, indexName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	huge := func(name string) func(*testing.T, string) { // sparse: it takes no room on the disk
		return func(t *testing.T, dir string) {
			file := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<40)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const names = `{"version":1,"files":{"a":[{"text":"a"}]}}`
	for name, traps := range map[string][]func(*testing.T, string){
		"the index is a pipe":                {pipe(indexName)},
		"a copy is a pipe":                   {index(names), pipe("a")},
		"the index has a terabyte":           {huge(indexName)},
		"a copy has a terabyte":              {index(names), huge("a")},
		"the index is a link to itself":      {func(t *testing.T, dir string) { link(t, indexName, filepath.Join(dir, indexName)) }},
		"the index is a link to a device":    {func(t *testing.T, dir string) { link(t, "/dev/zero", filepath.Join(dir, indexName)) }},
		"a copy is a link to a file outside": {index(names), func(t *testing.T, dir string) { link(t, "/etc/passwd", filepath.Join(dir, "a")) }},
	} {
		dir := t.TempDir()
		for _, m := range traps {
			m(t, dir)
		}
		if _, err := Open(dir); !errors.Is(err, ErrNoRecording) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoFolderIsNoRecording(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, "/dev/zero", os.Args[0]} {
		if _, err := Open(name); !errors.Is(err, ErrNoRecording) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func link(t *testing.T, target, at string) {
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}
