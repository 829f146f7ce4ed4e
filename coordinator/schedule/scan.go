package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Scanner looks at folders.
type Scanner interface {
	// Scan says what is in a folder. What goes wrong is part of the Scan.
	Scan(ctx context.Context, w Watch) *Scan
	// Hash reads files of the folder, by path. A file that vanished is left out.
	Hash(ctx context.Context, w Watch, paths []string) map[string]Hash
}

// mostEntries is how many entries of a folder are looked at.
const mostEntries = 200_000

// Folders is the Scanner of this machine. It never leaves the folder and follows no link.
type Folders struct{}

var errTooMany = fmt.Errorf("it has more than %d entries: watch a part of it", mostEntries)

// Scan implements Scanner.
func (Folders) Scan(ctx context.Context, w Watch) *Scan {
	root, err := os.OpenRoot(w.Folder)
	if err != nil {
		return &Scan{Err: err.Error()}
	}
	defer root.Close() //nolint:errcheck // only read
	scan := &Scan{}
	entries := 0
	err = fs.WalkDir(root.FS(), ".", func(p string, entry fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err // a part that cannot be seen would look like files that vanished
		}
		if entries++; entries > mostEntries {
			return errTooMany
		}
		switch {
		case p == ".":
		case entry.IsDir():
			if !w.Recursive || strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
		case !entry.Type().IsRegular():
			scan.Left++
		default:
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed since the folder was read
			}
			if err != nil {
				return err
			}
			scan.Files = append(scan.Files, File{Path: p, Bytes: info.Size(), Modified: info.ModTime().UTC(), ID: identity(info)})
		}
		return nil
	})
	if err != nil {
		return &Scan{Err: err.Error()}
	}
	return scan
}

// Hash implements Scanner.
func (Folders) Hash(ctx context.Context, w Watch, paths []string) map[string]Hash {
	hashes := map[string]Hash{}
	root, err := os.OpenRoot(w.Folder)
	if err != nil {
		return hashes
	}
	defer root.Close() //nolint:errcheck // only read
	for _, p := range paths {
		if ctx.Err() != nil {
			return hashes
		}
		h, err := hashFile(ctx, root, p)
		if err != nil {
			h.Err = err.Error()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			hashes[p] = h
		}
	}
	return hashes
}

// hashFile reads a file. What it says of size and time is from after the reading, so that a change meanwhile shows.
func hashFile(ctx context.Context, root *os.Root, p string) (Hash, error) {
	name := filepath.FromSlash(p)
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() { // opening a pipe would wait
		return Hash{}, errors.Join(err, fs.ErrNotExist)
	}
	f, err := root.Open(name)
	if err != nil {
		return Hash{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	sum := sha256.New()
	n, err := io.Copy(sum, untilDone{ctx, f})
	if err != nil {
		return Hash{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return Hash{}, err
	}
	return Hash{SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n, Modified: info.ModTime().UTC()}, nil
}

type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
