package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func TestWorkspacesAreRead(t *testing.T) {
	c, _, err := load(t, "workspaces:\n  notes: {dir: /srv/notes, write: true, max_bytes: 1 MiB}\n  docs:\n    dir: /srv/docs\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Workspaces{"notes": {Dir: "/srv/notes", Write: true, MaxBytes: 1 << 20}, "docs": {Dir: "/srv/docs"}}
	if diff := cmp.Diff(want, c.Workspaces); diff != "" {
		t.Error(diff)
	}
	if got, want := sprint(c.Workspaces), "docs: /srv/docs; notes: /srv/notes, write, max_bytes 1 MiB"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}

func TestFaultsOfWorkspacesNameTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no folder":      {"workspaces:\n  notes: {write: true}\n", `workspaces.notes (file loopkeeper.yaml:2:3): want a folder as dir`},
		"relative":       {"workspaces:\n  notes: {dir: notes}\n", `workspaces.notes.dir (file loopkeeper.yaml:2:16): want a folder from the root on`},
		"a home":         {"workspaces:\n  notes: {dir: ~/notes}\n", `want a folder from the root on, such as /home/me/notes, got "~/notes"`},
		"a strange name": {"workspaces:\n  My Notes: {dir: /srv/notes}\n", `want a name of a-z`},
		"no size":        {"workspaces:\n  notes: {dir: /srv/notes, max_bytes: 1 MB}\n", `loopkeeper.yaml:2:39: workspaces: want a size such as`},
		"an unknown key": {"workspaces:\n  notes: {path: /srv/notes}\n", `unknown field "path"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, c.file, nil)
			if err == nil || apierr.CodeOf(err) != apierr.InvalidArgument {
				t.Fatalf("got %v", err)
			}
			got := err.Error()
			if i, j := strings.Index(got, "(file "), strings.Index(got, "loopkeeper.yaml"); i >= 0 && i < j {
				got = got[:i+6] + got[j:] // the folder of the test
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Neither the data folder itself, nor what holds it or lies in it, nor a link there: with it a step could change the books.
func TestNoWorkspaceReachesTheDataFolder(t *testing.T) {
	root := t.TempDir()
	data, beside := filepath.Join(root, "data"), filepath.Join(root, "database")
	for _, dir := range []string{data, beside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Skip("no links here:", err)
	}
	for dir, refused := range map[string]bool{data: true, data + "/ledger/new": true, root: true, link: true, link + "/ledger": true, "/": true, beside: false, root + "/dat": false} {
		c := Default("h", data)
		c.Workspaces = Workspaces{"w": {Dir: dir}}
		if key, err := validateWorkspaces(&c); (err != nil) != refused || refused && key != "workspaces.w.dir" {
			t.Errorf("%s: %s %v", dir, key, err)
		}
	}
}
