package crashdisk

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Drive has the files of large bodies on a disk that can lose power, beside the database's. What is in a file is durable after
// its Sync, its name only after a SyncDir of its folder, and the folder's own name after one of the parent: a name that was not
// synced is there or not, each by itself, and so is one that was removed.
type Drive struct{ *Disk }

// naming is a change of a name that was not synced: to file, or nothing when it is nil.
type naming struct {
	name string
	file *file
}

// folders that are there from the beginning, made by Open, have longer names.
const hashFolder = 2

func failedAt(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: syscall.EIO} }

// change notes changes of names. The fatal one may still reach the platter.
func (d Drive) change(op string, changes ...naming) error {
	err := d.spend()
	if d.ops == d.CrashAt || err == nil {
		d.namings = append(d.namings, changes...)
	}
	if err != nil {
		return failedAt(op, changes[0].name)
	}
	for _, c := range changes {
		if c.file == nil {
			delete(d.bodies, c.name)
		} else {
			d.bodies[c.name] = c.file
		}
	}
	return nil
}

// Create makes a file in dir under a name of its own.
func (d Drive) Create(dir string) (*File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := filepath.Join(dir, strconv.Itoa(d.ops))
	f := &file{disk: d.Disk}
	if err := d.change("create", naming{name, f}); err != nil {
		return nil, err
	}
	return &File{file: f, name: name}, nil
}

// Open opens the file at path.
func (d Drive) Open(path string) (*File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.bodies[path]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &File{file: f, name: path}, nil
}

// Size is the bytes of the file at path.
func (d Drive) Size(path string) (int64, error) {
	f, err := d.Open(path)
	if err != nil {
		return 0, err
	}
	return f.Size()
}

// Rename gives a file another name.
func (d Drive) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change("rename", naming{to, d.bodies[from]}, naming{from, nil})
}

// Remove removes the name of a file.
func (d Drive) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bodies[path] == nil {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	return d.change("remove", naming{path, nil})
}

// Mkdir makes a folder.
func (d Drive) Mkdir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bodies[path] != nil || len(filepath.Base(path)) != hashFolder {
		return nil
	}
	return d.change("mkdir", naming{path, &file{disk: d.Disk}})
}

// SyncDir makes the names in a folder durable.
func (d Drive) SyncDir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.spend(); err != nil {
		return failedAt("sync", path)
	}
	if d.Lies {
		return nil
	}
	d.namings = slices.DeleteFunc(d.namings, func(c naming) bool {
		in := filepath.Dir(c.name) == path
		if in {
			d.settle(c)
		}
		return in
	})
	return nil
}

// settle makes a change of a name durable.
func (d *Disk) settle(c naming) {
	if c.file == nil {
		delete(d.entries, c.name)
	} else {
		d.entries[c.name] = c.file
	}
}

// List returns the paths of all files in dir and in its folders.
func (d Drive) List(dir string) (paths []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.bodies {
		if strings.HasPrefix(name, dir+string(filepath.Separator)) && len(filepath.Base(name)) != hashFolder {
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Clear leaves dir empty.
func (d Drive) Clear(dir string) error {
	paths, err := d.List(dir)
	for _, p := range paths {
		if err == nil {
			err = d.Remove(p)
		}
	}
	return err
}

// rebootBodies fills next with the body files as the next start finds them.
func (d *Disk) rebootBodies(next *Disk, survive func(*file) *file) {
	for _, c := range d.namings {
		if d.Rand.IntN(2) == 0 {
			d.settle(c)
		}
	}
	for name, f := range d.entries {
		folder := filepath.Dir(name)
		if len(filepath.Base(folder)) == hashFolder && d.entries[folder] == nil {
			continue // with its folder
		}
		kept := survive(f)
		next.bodies[name], next.entries[name] = kept, kept
	}
}

// File is an open file with a position.
type File struct {
	*file
	name string
	at   int64
}

// Name is its path.
func (h *File) Name() string { return h.name }

// Read implements io.Reader.
func (h *File) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, h.at)
	h.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// Write implements io.Writer.
func (h *File) Write(p []byte) (int, error) {
	n, err := h.WriteAt(p, h.at)
	h.at += int64(n)
	if err != nil {
		return 0, failedAt("write", h.name)
	}
	return n, nil
}

// Sync makes what is in the file durable.
func (h *File) Sync() error {
	if err := h.file.Sync(0); err != nil {
		return failedAt("sync", h.name)
	}
	return nil
}
