package schedule

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestScanOfAFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "secret", "secret")
	put(t, dir, "a", "one")
	put(t, dir, "sub/b", "two")
	put(t, dir, ".git/c", "three")
	for name, to := range map[string]string{"file": filepath.Join(outside, "secret"), "dir": outside, "loop": "."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	for recursive, want := range map[bool]string{false: "a", true: "a sub/b"} {
		w := Watch{Folder: dir, Recursive: recursive}
		scan := Folders{}.Scan(t.Context(), w)
		var names []string
		for _, f := range scan.Files {
			names = append(names, f.Path)
		}
		slices.Sort(names)
		if strings.Join(names, " ") != want || scan.Left != 3 || scan.Err != "" {
			t.Errorf("recursive %v: %+v", recursive, scan)
		}
	}
	hashes := Folders{}.Hash(t.Context(), Watch{Folder: dir}, []string{"a", "sub/b", "file", "gone"})
	const one = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed" // printf one | sha256sum
	if len(hashes) != 2 || hashes["a"].SHA256 != one || hashes["a"].Bytes != 3 {
		t.Errorf("%+v", hashes)
	}
	if scan := (Folders{}).Scan(t.Context(), Watch{Folder: filepath.Join(dir, "gone")}); scan.Err == "" {
		t.Error("a folder that is not there looks empty")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if scan := (Folders{}).Scan(ctx, Watch{Folder: dir}); scan.Err == "" {
		t.Error("a look that was given up looks like an empty folder")
	}
}

// The whole way, with real files: what is there, what comes, what is renamed, what comes while nobody looks.
func TestRunnerWatchesAFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "old", "old")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.length = time.Minute
		w.start()
		w.add(Spec{Name: "inbox", Watch: &Watch{Folder: dir}})
		w.sleep(time.Minute)
		put(t, dir, "a", "one")
		w.sleep(5 * time.Minute)
		if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
		w.sleep(5 * time.Minute)
		if len(w.runs) != 1 {
			t.Errorf("%d runs for one new file: %v", len(w.runs), w.submitted)
		}
		w.stop()
		put(t, dir, "c", "three")
		if err := os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "d")); err != nil {
			t.Fatal(err)
		}
		r := w.start()
		w.sleep(5 * time.Minute)
		view := r.List()[0]
		if len(w.runs) != 2 || view.Files != 3 || view.State.Known != nil || w.twice != 0 {
			t.Errorf("%d runs, %d submitted twice, %+v", len(w.runs), w.twice, view)
		}
		saves := w.saves
		w.sleep(time.Hour)
		if w.saves != saves {
			t.Errorf("a folder in which nothing happens is stored %d times in an hour", w.saves-saves)
		}
		w.stop()
	})
}
