package ledger

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// crashDrive has the files of large bodies on a disk that can lose power, beside the database's. What is in a file is durable after
// its Sync, its name only after a syncDir of its folder, and the folder's own name after one of the parent: a name that was not
// synced is there or not, each by itself, and so is one that was removed.
type crashDrive struct{ *disk }

// naming is a change of a name that was not synced: to file, or nothing when it is nil.
type naming struct {
	name string
	file *file
}

// folders that are there from the beginning, made by Open, have longer names.
const hashFolder = 2

func failedAt(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: syscall.EIO} }

// rename notes a change of names. The fatal one may still reach the platter.
func (d crashDrive) change(op string, changes ...naming) error {
	err := d.spend()
	if d.ops == d.crashAt || err == nil {
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

func (d crashDrive) create(dir string) (bodyFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := filepath.Join(dir, strconv.Itoa(d.ops))
	f := &file{disk: d.disk}
	if err := d.change("create", naming{name, f}); err != nil {
		return nil, err
	}
	return &handle{file: f, name: name}, nil
}

func (d crashDrive) open(path string) (bodyFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.bodies[path]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &handle{file: f, name: path}, nil
}

func (d crashDrive) size(path string) (int64, error) {
	f, err := d.open(path)
	if err != nil {
		return 0, err
	}
	return f.(*handle).Size()
}

func (d crashDrive) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change("rename", naming{to, d.bodies[from]}, naming{from, nil})
}

func (d crashDrive) remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bodies[path] == nil {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	return d.change("remove", naming{path, nil})
}

func (d crashDrive) mkdir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bodies[path] != nil || len(filepath.Base(path)) != hashFolder {
		return nil
	}
	return d.change("mkdir", naming{path, &file{disk: d.disk}})
}

func (d crashDrive) syncDir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.spend(); err != nil {
		return failedAt("sync", path)
	}
	if d.lies {
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
func (d *disk) settle(c naming) {
	if c.file == nil {
		delete(d.entries, c.name)
	} else {
		d.entries[c.name] = c.file
	}
}

func (d crashDrive) list(dir string) (paths []string, err error) {
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

func (d crashDrive) clear(dir string) error {
	paths, err := d.list(dir)
	for _, p := range paths {
		if err == nil {
			err = d.remove(p)
		}
	}
	return err
}

// rebootBodies fills next with the body files as the next start finds them.
func (d *disk) rebootBodies(next *disk, survive func(*file) *file) {
	for _, c := range d.namings {
		if d.rng.IntN(2) == 0 {
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

// handle is an open file with a position.
type handle struct {
	*file
	name string
	at   int64
}

func (h *handle) Name() string { return h.name }

func (h *handle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, h.at)
	h.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (h *handle) Write(p []byte) (int, error) {
	n, err := h.WriteAt(p, h.at)
	h.at += int64(n)
	if err != nil {
		return 0, failedAt("write", h.name)
	}
	return n, nil
}

func (h *handle) Sync() error {
	if err := h.file.Sync(0); err != nil {
		return failedAt("sync", h.name)
	}
	return nil
}
