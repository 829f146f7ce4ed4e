package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"
)

// memoryInfo describes a file that is not on a disk.
type memoryInfo struct {
	name string
	size int64
	mode fs.FileMode
}

// Name implements fs.FileInfo, as do the methods after it.
func (i memoryInfo) Name() string               { return i.name }
func (i memoryInfo) Size() int64                { return i.size }
func (i memoryInfo) Mode() fs.FileMode          { return i.mode }
func (i memoryInfo) ModTime() time.Time         { return time.Time{} }
func (i memoryInfo) IsDir() bool                { return i.mode.IsDir() }
func (i memoryInfo) Sys() any                   { return nil }
func (i memoryInfo) Type() fs.FileMode          { return i.mode.Type() }
func (i memoryInfo) Info() (fs.FileInfo, error) { return i, nil }

type memoryFile struct {
	*bytes.Reader
	info memoryInfo
}

func newMemoryFile(info fs.FileInfo, text []byte) *memoryFile {
	return &memoryFile{bytes.NewReader(text), memoryInfo{name: info.Name(), size: int64(len(text)), mode: info.Mode()}}
}

// Stat implements fs.File.
func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements fs.File.
func (f *memoryFile) Close() error { return nil }

type memoryFolder struct {
	info    memoryInfo
	entries []fs.DirEntry // those that were not yet given
}

// Stat implements fs.File.
func (f *memoryFolder) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements fs.File.
func (f *memoryFolder) Close() error { return nil }

// Read implements fs.File.
func (f *memoryFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errors.New("is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (f *memoryFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.entries)
	} else if len(f.entries) == 0 {
		return nil, io.EOF
	}
	given := f.entries[:min(n, len(f.entries))]
	f.entries = f.entries[len(given):]
	return given, nil
}

// wholeFS is a file system that reads whole files and folders.
type wholeFS interface {
	fs.StatFS
	fs.ReadFileFS
	fs.ReadDirFS
}

// openWhole reads what it opens.
func openWhole(r wholeFS, name string) (fs.File, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		entries, err := r.ReadDir(name)
		return &memoryFolder{info: memoryInfo{name: info.Name(), mode: info.Mode()}, entries: entries}, err
	}
	text, err := r.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return newMemoryFile(info, text), nil
}
