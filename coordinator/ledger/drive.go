package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// drive is where the files of large bodies lie. The crash tests put in one that can lose power.
type drive interface {
	create(dir string) (bodyFile, error) // under a name of its own
	open(path string) (bodyFile, error)
	size(path string) (int64, error)
	rename(from, to string) error
	remove(path string) error
	mkdir(path string) error // and its parents
	syncDir(path string) error
	list(dir string) ([]string, error) // the paths of all files in dir and in its folders
	clear(dir string) error            // leaves dir empty
}

// bodyFile is an *os.File, or one of the crash tests.
type bodyFile interface {
	io.ReadWriteCloser
	io.ReaderAt
	Sync() error
	Name() string
}

// osDrive is the operating system's files, owner-only.
type osDrive struct{}

func (osDrive) create(dir string) (bodyFile, error) { return os.CreateTemp(dir, "*") }
func (osDrive) open(path string) (bodyFile, error)  { return os.Open(path) }
func (osDrive) rename(from, to string) error        { return os.Rename(from, to) }
func (osDrive) remove(path string) error            { return os.Remove(path) }
func (osDrive) mkdir(path string) error             { return os.MkdirAll(path, 0o700) }
func (osDrive) syncDir(path string) error           { return syncDir(path) }
func (d osDrive) clear(dir string) error            { return errors.Join(os.RemoveAll(dir), d.mkdir(dir)) }
func (osDrive) size(path string) (n int64, err error) {
	st, err := os.Stat(path)
	if err == nil {
		n = st.Size()
	}
	return n, err
}

func (osDrive) list(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return ignoreMissing(err)
	})
	return paths, err
}

// syncDir makes the names in a folder durable. Windows has no such call: its file systems log names themselves.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync a folder: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
