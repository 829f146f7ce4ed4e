package configs

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Workspace is a folder of the coordinator's machine that the tools of a step may use, and nothing outside of it.
type Workspace struct {
	// Dir is the folder, absolute.
	Dir string `yaml:"dir" json:"dir"`
	// Write says that files may be written. Default false: they are only read.
	Write bool `yaml:"write" json:"write"`
	// MaxBytes is the largest file that is read or written. Default 0: 1 GiB.
	MaxBytes Size `yaml:"max_bytes" json:"max_bytes"`
}

// Workspaces is a table of Workspace by name.
type Workspaces map[string]Workspace

// String is "/home/me/notes, write, max_bytes 1 MiB".
func (w Workspace) String() string {
	said := []string{w.Dir}
	if w.Write {
		said = append(said, "write")
	}
	if w.MaxBytes > 0 {
		said = append(said, "max_bytes "+w.MaxBytes.String())
	}
	return strings.Join(said, ", ")
}

// String joins the table.
func (w Workspaces) String() string { return table(w, Workspace.String) }

var workspaceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// validateWorkspaces returns the key and the fault of the first workspace that cannot work. Whether its folder is there shows when the
// coordinator starts: other commands do not need it.
func validateWorkspaces(c *Config) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(c.Workspaces)) {
		key, dir := "workspaces."+name, c.Workspaces[name].Dir
		switch {
		case !workspaceName.MatchString(name):
			return key, fmt.Errorf("want a name of a-z 0-9 - _, got %q", name)
		case dir == "":
			return key, fmt.Errorf("want a folder as dir, such as {dir: /home/me/notes}")
		case !filepath.IsAbs(dir):
			return key + ".dir", fmt.Errorf("want a folder from the root on, such as /home/me/notes, got %q", dir)
		case within(real(c.DataDir), real(dir)) || within(real(dir), real(c.DataDir)):
			return key + ".dir", fmt.Errorf("a step could read and change loopkeeper's own books there: the data folder is %s", c.DataDir)
		}
	}
	return "", nil
}

// real is a path without links, as far as it exists.
func real(path string) string {
	clean := filepath.Clean(path)
	if abs, err := filepath.Abs(clean); err == nil {
		clean = abs
	}
	for rest := ""; ; {
		if to, err := filepath.EvalSymlinks(clean); err == nil {
			return filepath.Join(to, rest)
		}
		parent := filepath.Dir(clean)
		if parent == clean {
			return filepath.Join(clean, rest)
		}
		rest, clean = filepath.Join(filepath.Base(clean), rest), parent
	}
}

// within says whether path is folder or lies in it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
