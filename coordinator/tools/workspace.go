package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// DefaultMaxBytes is the largest file of a workspace that does not say, in bytes.
const DefaultMaxBytes = 1 << 30

// Workspace is a folder that tools may use, and nothing outside of it.
type Workspace struct {
	Name     string // as calls name it
	Dir      string // the folder on this machine
	Write    bool   // files may be written
	MaxBytes int64  // the largest file that is read or written; 0: DefaultMaxBytes
}

// space is an open workspace. Its root follows a link only to what lies within.
type space struct {
	Workspace
	root *os.Root
}

type workspaces struct{ byName map[string]*space }

func openWorkspaces(list []Workspace) (*workspaces, error) {
	w := &workspaces{byName: map[string]*space{}}
	for _, one := range list {
		if one.Name == "" || w.byName[one.Name] != nil {
			return nil, errors.Join(apierr.New(apierr.InvalidArgument, "two workspaces are called %q, or one has no name", one.Name).
				WithNext("give each workspace its own name in the settings"), w.close())
		}
		root, err := os.OpenRoot(one.Dir)
		if err != nil {
			return nil, errors.Join(apierr.Wrap(err, apierr.InvalidArgument, "open the workspace %s", one.Name).
				WithNext("make the folder, or repair its path in the settings"), w.close())
		}
		if one.MaxBytes == 0 {
			one.MaxBytes = DefaultMaxBytes
		}
		w.byName[one.Name] = &space{one, root}
	}
	return w, nil
}

func (w *workspaces) close() error {
	var errs []error
	for _, s := range w.byName {
		errs = append(errs, s.root.Close())
	}
	return errors.Join(errs...)
}

// find returns the workspace of a call; the only one need not be named.
func (w *workspaces) find(tool, name string) (*space, error) {
	names := slices.Sorted(maps.Keys(w.byName))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if s := w.byName[name]; s != nil {
		return s, nil
	}
	switch {
	case len(names) == 0:
		return nil, failed(NotFound, "%s: there is no workspace", tool).next("name a folder under `workspaces` in the settings of the coordinator")
	case name == "":
		return nil, failed(InvalidInput, "%s: input.workspace: say which of %s", tool, strings.Join(names, ", "))
	default:
		return nil, failed(NotFound, "%s: input.workspace: there is no workspace %q", tool, name).next("use one of " + strings.Join(names, ", "))
	}
}

// within checks the path of a call and gives it the form that a root takes.
func within(tool, p string) (string, error) {
	clean := path.Clean(p)
	if local := filepath.FromSlash(clean); filepath.IsLocal(local) && !strings.ContainsAny(p, "\\\x00") {
		return local, nil
	}
	return "", failed(InvalidInput, "%s: input.path: %q is no path within the workspace", tool, p).
		next("give a path relative to the workspace, with / between its parts and without leaving it")
}

// open opens a regular file for reading, and refuses links out of the workspace, folders, pipes and devices.
func (s *space) open(tool, name string) (*os.File, fs.FileInfo, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		if link, lerr := s.root.Lstat(name); lerr == nil && link.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, failed(NotAFile, "%s: input.path: %s is a link to nothing, or out of the workspace %s", tool, slash(name), s.Name).
				next("name a file within the workspace")
		}
		return nil, nil, explain(tool, "open", s.place(name), err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = explain(tool, "open", s.place(name), err)
	case !info.Mode().IsRegular():
		err = failed(NotAFile, "%s: input.path: %s is %s, not a file", tool, slash(name), kindOf(info.Mode())).next("file.list shows what is there")
	case info.Size() > s.MaxBytes:
		err = s.tooLarge(tool, name, info.Size())
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func (s *space) tooLarge(tool, name string, bytes int64) error {
	return failed(TooLarge, "%s: %s has %d bytes, the limit of the workspace %s is %d", tool, slash(name), bytes, s.Name, s.MaxBytes).
		next(fmt.Sprintf("raise workspaces.%s.max_bytes in the settings, or divide the file", s.Name))
}

// place names a file for people.
func (s *space) place(name string) string { return s.Name + ":" + slash(name) }

func slash(name string) string { return filepath.ToSlash(name) }

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	default:
		return "other"
	}
}
