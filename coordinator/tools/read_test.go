package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadStoresTheBody(t *testing.T) {
	r := newRig(t)
	r.put("sub/a.txt", "the text")
	body := r.value("k", "file.read", `{"path":"sub/./a.txt"}`)["body"].(map[string]any)
	const want = "41a1f654dc79a9ac645afa553c31d51fd115eca8dd1cb9e6c67ae03e52718e8b" // printf 'the text' | sha256sum
	if body["ref"] != want || body["name"] != "a.txt" || body["bytes"] != 8.0 {
		t.Errorf("%v", body)
	}
	// The file may have changed: a second look under the same key sees it.
	r.put("sub/a.txt", "changed")
	if again := r.value("k", "file.read", `{"path":"sub/a.txt"}`)["body"].(map[string]any); again["ref"] != digest([]byte("changed")) {
		t.Errorf("%v", again)
	}
}

func TestReadStaysInside(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Workspaces[0].MaxBytes = 10 })
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.put("near", "near")
	r.put("big", "eleven byte")
	if err := errors.Join(os.Symlink(outside, filepath.Join(r.dir, "link")), os.Symlink(filepath.Dir(outside), filepath.Join(r.dir, "away")),
		os.Symlink("../"+filepath.Base(r.dir)+"/near", filepath.Join(r.dir, "round")), os.Symlink("near", filepath.Join(r.dir, "inner")),
		os.Symlink("/dev/zero", filepath.Join(r.dir, "zero")), os.Symlink("loop", filepath.Join(r.dir, "loop"))); err != nil {
		t.Skip(err)
	}
	for path, kind := range map[string]string{
		"link": NotAFile, "zero": NotAFile, "round": NotAFile, "loop": NotAFile, "away/secret": IOError, ".": NotAFile, "big": TooLarge,
	} {
		r.refused("k", "file.read", fmt.Sprintf(`{"path":%q}`, path), kind)
	}
	if got := r.value("k", "file.read", `{"path":"inner"}`)["body"].(map[string]any)["bytes"]; got != 4.0 {
		t.Errorf("a link within the workspace leads to %v bytes", got)
	}
	entries, err := os.ReadDir(r.bodies.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if data, _ := os.ReadFile(filepath.Join(r.bodies.dir, e.Name())); strings.Contains(string(data), "secret") {
			t.Error("a file outside of the workspace was stored")
		}
	}
}

// A file that grows while it is read ends at the limit, not at the end of the disk.
func TestReadEndsAtTheLimit(t *testing.T) {
	s := &space{Workspace: Workspace{Name: "work", MaxBytes: 100}}
	_, err := folder{t.TempDir()}.Put(t.Context(), "x", &limited{r: endless{}, tool: "file.read", name: "a", space: s})
	if f, ok := asFailure(err); !ok || f.Kind != TooLarge {
		t.Errorf("%v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestListPages(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a/1.md", "a/2.txt", "a.md", "b.md", "c/d/3.md", "z.md"} {
		r.put(name, name)
	}
	if err := os.Symlink("a", filepath.Join(r.dir, "link")); err != nil {
		t.Skip(err)
	}
	pages := func(input string) (all []string) {
		after := ""
		for range 20 {
			v := r.value("k", "file.list", fmt.Sprintf(`{"after":%q,%s}`, after, input))
			for _, item := range v["items"].([]any) {
				all = append(all, item.(map[string]any)["path"].(string))
			}
			next, ok := v["next"].(string)
			if !ok {
				return all
			}
			after = next
		}
		t.Fatal("the pages have no end")
		return nil
	}
	for input, want := range map[string][]string{
		`"recursive":true`:                      {"a", "a/1.md", "a/2.txt", "a.md", "b.md", "c", "c/d", "c/d/3.md", "link", "z.md"},
		`"limit":10000`:                         {"a", "a.md", "b.md", "c", "link", "z.md"},
		`"path":"a"`:                            {"a/1.md", "a/2.txt"},
		`"recursive":true,"pattern":"*.md"`:     {"a/1.md", "a.md", "b.md", "c/d/3.md", "z.md"},
		`"recursive":true,"pattern":"*/*/*.md"`: {"c/d/3.md"},
	} {
		if got := pages(input); !sameNames(got, want) {
			t.Errorf("%s: %v, want %v", input, got, want)
		}
		for _, limit := range []int{1, 2, 3} {
			if strings.Contains(input, "limit") {
				continue
			}
			if got := pages(fmt.Sprintf(`%s,"limit":%d`, input, limit)); !sameNames(got, want) {
				t.Errorf("%s by %d: %v, want %v", input, limit, got, want)
			}
		}
	}
}

// sameNames compares in no order: that every name comes once is what matters.
func sameNames(got, want []string) bool {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

func TestListSaysWhatItCouldNotRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	r := newRig(t)
	r.put("closed/a", "a")
	if err := os.Chmod(filepath.Join(r.dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(r.dir, "closed"), 0o755) })
	if got := r.value("k", "file.list", `{"recursive":true}`)["unreadable"]; fmt.Sprint(got) != "[closed]" {
		t.Errorf("unreadable: %v", got)
	}
}
