package source

import (
	"io/fs"
)

// recordingFS reads the machine's files and keeps what it read.
type recordingFS struct{ *Recorder }

// ReadFile implements fs.ReadFileFS.
func (r recordingFS) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(r.machine.Files, name)
	if absent(err) { // as everything is that was not recorded
		return text, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[name] = appendAnswer(r.files[name], stored{Error: failureOf(err), text: string(text)})
	return text, err
}

// ReadDir implements fs.ReadDirFS.
func (r recordingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.machine.Files, name)
	if absent(err) {
		return entries, err
	}
	f := folder{Error: failureOf(err), Entries: map[string]entryKind{}}
	for _, e := range entries {
		f.Entries[e.Name()] = kindOf(e.Type())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.folders[name] = f
	return entries, err
}

// ReadLink implements fs.ReadLinkFS.
func (r recordingFS) ReadLink(name string) (string, error) {
	target, err := fs.ReadLink(r.machine.Files, name)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.links[name] = target
	}
	return target, err
}

// Stat implements fs.StatFS. That a file is there is kept without its text; the last word about that has who reads it.
func (r recordingFS) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(r.machine.Files, name)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, listed := r.folders[name]; info.IsDir() && !listed {
			r.folders[name] = folder{}
		} else if _, read := r.files[name]; !info.IsDir() && !read {
			r.files[name] = nil
		}
	}
	return info, err
}

// Lstat implements fs.ReadLinkFS.
func (r recordingFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.machine.Files, name) }

// Open implements fs.FS: what it opens, it reads.
func (r recordingFS) Open(name string) (fs.File, error) {
	return openWhole(r, name)
}

func kindOf(mode fs.FileMode) entryKind {
	switch {
	case mode.IsDir():
		return kindFolder
	case mode&fs.ModeSymlink != 0:
		return kindLink
	}
	return kindFile
}
