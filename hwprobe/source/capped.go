package source

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrFileTooLarge says that a file is larger than any that a probe has a use for.
var ErrFileTooLarge = errors.New("file too large")

const fileLimit = 1 << 20 // bytes; the largest that a probe reads are some KiB

// Capped is root with files of at most 1 MiB: reading more is ErrFileTooLarge. It cannot bound the time that a read takes;
// who reads from a broken driver must be ready not to come back.
func Capped(root fs.FS) fs.FS { return capped{root} }

type capped struct{ root fs.FS }

// Open implements fs.FS.
func (c capped) Open(name string) (fs.File, error) {
	file, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return file, nil
	}
	return &cappedFile{File: file, left: fileLimit}, nil
}

// ReadDir implements fs.ReadDirFS.
func (c capped) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(c.root, name) }

// Stat implements fs.StatFS.
func (c capped) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.root, name) }

// ReadLink implements fs.ReadLinkFS.
func (c capped) ReadLink(name string) (string, error) { return fs.ReadLink(c.root, name) }

// Lstat implements fs.ReadLinkFS.
func (c capped) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(c.root, name) }

type cappedFile struct {
	fs.File
	left int
}

// Read implements fs.File.
func (f *cappedFile) Read(p []byte) (int, error) {
	if f.left == 0 { // full, or at the end by chance
		var next [1]byte
		if n, err := f.File.Read(next[:]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("%w (over %d bytes)", ErrFileTooLarge, fileLimit)
	}
	n, err := f.File.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}
