package source

import (
	"io/fs"
	"path"
	"strings"
)

// replayFS gives the files that were read, and lists the folders that were listed.
type replayFS struct{ *replay }

// ReadFile implements fs.ReadFileFS.
func (r replayFS) ReadFile(name string) ([]byte, error) {
	answers, known := r.index.Files[name]
	if !known {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if len(answers) == 0 { // it was there, and nobody read it
		return nil, nil
	}
	a := next(r.replay, "file\x00"+name, answers)
	return []byte(a.text), a.Error.error()
}

// ReadDir implements fs.ReadDirFS.
func (r replayFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, listed := r.index.Folders[name]
	if f.Error != nil {
		return nil, f.Error.error()
	}
	kinds := f.Entries
	if len(kinds) == 0 { // never listed: it has what was read below it
		kinds = r.below(name)
	}
	if !listed && len(kinds) == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	var entries []fs.DirEntry
	for _, base := range sortedKeys(kinds) {
		entries = append(entries, memoryInfo{name: base, size: r.size(path.Join(name, base)), mode: modeOf(kinds[base])})
	}
	return entries, nil
}

// below adds the entries of a folder that are known because something in them was read.
func (r replayFS) below(folder string) map[string]entryKind {
	kinds := map[string]entryKind{}
	add := func(name string, kind entryKind) {
		rest, in := name, folder == "."
		if !in {
			rest, in = strings.CutPrefix(name, folder+"/")
		}
		if !in || name == "." {
			return
		}
		first, _, deeper := strings.Cut(rest, "/")
		if deeper {
			kind = kindFolder
		}
		kinds[first] = kind
	}
	for name := range r.index.Files {
		add(name, kindFile)
	}
	for name := range r.index.Folders {
		add(name, kindFolder)
	}
	return kinds
}

// ReadLink implements fs.ReadLinkFS.
func (r replayFS) ReadLink(name string) (string, error) {
	target, known := r.index.Links[name]
	if !known {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrNotExist}
	}
	return target, nil
}

// Stat implements fs.StatFS.
func (r replayFS) Stat(name string) (fs.FileInfo, error) {
	if _, known := r.index.Files[name]; known {
		return memoryInfo{name: path.Base(name), size: r.size(name), mode: modeOf(kindFile)}, nil
	}
	if _, err := r.ReadDir(name); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return memoryInfo{name: path.Base(name), mode: modeOf(kindFolder)}, nil
}

// size is that of the first text; 0 where none was read.
func (r replayFS) size(name string) int64 {
	if answers := r.index.Files[name]; len(answers) > 0 {
		return int64(len(answers[0].text))
	}
	return 0
}

// Lstat implements fs.ReadLinkFS.
func (r replayFS) Lstat(name string) (fs.FileInfo, error) {
	if _, link := r.index.Links[name]; link {
		return memoryInfo{name: path.Base(name), mode: modeOf(kindLink)}, nil
	}
	return r.Stat(name)
}

// Open implements fs.FS.
func (r replayFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return openWhole(r, name)
}

func modeOf(k entryKind) fs.FileMode {
	switch k {
	case kindFolder:
		return fs.ModeDir | 0o555
	case kindLink:
		return fs.ModeSymlink | 0o777
	}
	return 0o444
}
