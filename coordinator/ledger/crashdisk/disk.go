// Package crashdisk is a disk in memory that can lose power, for tests: the database of a ledger lies on it as an SQLite VFS, and the
// files of large bodies beside it.
package crashdisk

import (
	"io"
	"math/rand/v2"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Disk is a drive in memory that can lose power. Until a file is synced, its writes may reach the platter or not, each
// sector by itself, and its name may be missing; a removal that was not synced may be undone.
type Disk struct {
	CrashAt int        // the operation at which power fails, 0 for never
	Lies    bool       // a sync returns at once and does nothing
	Rand    *rand.Rand // decides what survives

	mu      sync.Mutex
	files   map[string]*file
	removed map[string]*file
	ops     int // writes, truncations, syncs, creations and removals so far
	off     bool

	bodies  map[string]*file // by path, as the running system sees them, their folders included; see Drive
	entries map[string]*file // as their names certainly are
	namings []naming         // since the last sync of their folders
}

type file struct {
	disk    *Disk
	view    []byte // as the running system sees it
	platter []byte // as it certainly is
	named   bool   // its folder entry is durable
	pending []change
}

// change is a write of data at off, or a truncation to off when data is nil.
type change struct {
	off  int64
	data []byte
}

const sector = 512

// New is an empty disk. What survives a crash of it depends on the seed alone.
func New(seed uint64) *Disk {
	return emptyDisk(rand.New(rand.NewPCG(seed, 1)))
}

func emptyDisk(rng *rand.Rand) *Disk {
	return &Disk{Rand: rng, files: map[string]*file{}, removed: map[string]*file{}, bodies: map[string]*file{}, entries: map[string]*file{}}
}

// spend counts an operation; at the fatal one, and ever after, it fails.
func (d *Disk) spend() error {
	d.ops++
	if d.ops == d.CrashAt {
		d.off = true
	}
	if d.off {
		return sqlite3.IOERR
	}
	return nil
}

// Ops is how many operations there were so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Reboot returns the disk as the next start finds it. Nobody may use the old one any more.
func (d *Disk) Reboot() *Disk {
	next := emptyDisk(d.Rand)
	survive := func(f *file) *file {
		for _, c := range f.pending {
			if c.data == nil {
				if d.Rand.IntN(2) == 0 {
					f.platter = resize(f.platter, c.off)
				}
				continue
			}
			for at := 0; at < len(c.data); at += sector {
				if d.Rand.IntN(2) == 0 {
					f.platter = put(f.platter, c.data[at:min(at+sector, len(c.data))], c.off+int64(at))
				}
			}
		}
		f.pending = nil
		return &file{disk: next, view: append([]byte(nil), f.platter...), platter: f.platter, named: true}
	}
	for name, f := range d.removed {
		if d.Rand.IntN(2) == 0 {
			next.files[name] = survive(f)
		}
	}
	for name, f := range d.files {
		if f.named || d.Rand.IntN(2) == 0 {
			next.files[name] = survive(f)
		}
	}
	d.rebootBodies(next, survive)
	return next
}

func resize(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		return b[:n]
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

func put(b, data []byte, off int64) []byte {
	b = resize(b, max(int64(len(b)), off+int64(len(data))))
	copy(b[off:], data)
	return b
}

var _ vfs.VFS = (*Disk)(nil)

// Open implements vfs.VFS.
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[name]; f != nil && name != "" {
		return f, flags, nil
	}
	if flags&vfs.OPEN_CREATE == 0 {
		return nil, flags, sqlite3.CANTOPEN
	}
	if err := d.spend(); err != nil {
		return nil, flags, err
	}
	f := &file{disk: d}
	if name != "" {
		d.files[name] = f
	}
	return f, flags, nil
}

// Delete implements vfs.VFS.
func (d *Disk) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.spend(); err != nil {
		return err
	}
	f := d.files[name]
	if f == nil {
		return sqlite3.IOERR_DELETE_NOENT
	}
	delete(d.files, name)
	if !syncDir && f.named {
		d.removed[name] = f
	}
	return nil
}

// Access implements vfs.VFS.
func (d *Disk) Access(name string, _ vfs.AccessFlag) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[name] != nil, nil
}

// FullPathname implements vfs.VFS.
func (d *Disk) FullPathname(name string) (string, error) { return name, nil }

func (f *file) change(c change) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	err := f.disk.spend()
	if f.disk.ops == f.disk.CrashAt || err == nil { // the fatal one may still have reached the platter
		f.pending = append(f.pending, c)
	}
	if err != nil {
		return err
	}
	if c.data == nil {
		f.view = resize(f.view, c.off)
	} else {
		f.view = put(f.view, c.data, c.off)
	}
	return nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return len(p), f.change(change{off, append([]byte{}, p...)})
}

func (f *file) Truncate(size int64) error { return f.change(change{off: size}) }

func (f *file) Sync(vfs.SyncFlag) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.spend(); err != nil {
		return err
	}
	if f.disk.Lies {
		return nil
	}
	f.platter, f.named, f.pending = append(f.platter[:0], f.view...), true, nil
	return nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if off >= int64(len(f.view)) {
		return 0, io.EOF
	}
	n := copy(p, f.view[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.view)), nil
}

// One connection has the database to itself, so there is nothing to lock.
func (f *file) Close() error                     { return nil }
func (f *file) Lock(vfs.LockLevel) error         { return nil }
func (f *file) Unlock(vfs.LockLevel) error       { return nil }
func (f *file) CheckReservedLock() (bool, error) { return false, nil }

// What SQLite assumes of the file systems of Linux, macOS and Windows.
func (f *file) SectorSize() int { return 4096 }
func (f *file) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE
}
