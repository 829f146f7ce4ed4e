package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// stage writes the content beside the file and makes it durable there. The name follows from the key, so that what an interrupted
// call left behind is taken by the next one with the same key.
func (w *write) stage(ctx context.Context) (temp string, bytes int64, err error) {
	const nameLength = 16
	temp = filepath.Join(filepath.Dir(w.name), ".loopkeeper-"+digest([]byte(w.key))[:nameLength]+".tmp")
	explained := func(err error) error { return wrap(ctx, w.tool, "write", w.space.place(w.name), err) }
	if err := w.space.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return temp, 0, explained(err)
	}
	f, err := w.space.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newFileMode)
	if err != nil {
		return temp, 0, explained(err)
	}
	bytes, err = w.fill(ctx, f)
	if info, serr := w.space.root.Lstat(w.name); serr == nil && err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = w.space.root.Remove(temp)
		return temp, 0, explained(err)
	}
	return temp, bytes, nil
}

// fill writes the content to f and holds it to its hash.
func (w *write) fill(ctx context.Context, f io.Writer) (int64, error) {
	if w.ref == nil {
		n, err := f.Write(w.text)
		return int64(n), err
	}
	body, _, err := w.bodies.Open(ctx, w.ref.SHA256)
	if err != nil {
		return 0, failed(NotFound, "%s: input.body: open the body %s: %v", w.tool, w.ref.SHA256, err).
			next("upload the body again, or run the step that made it")
	}
	defer body.Close() //nolint:errcheck // only read
	sum := sha256.New()
	bounded := &limited{r: canceled{ctx, body}, tool: w.tool, name: w.name, space: w.space}
	n, err := io.Copy(io.MultiWriter(f, sum), bounded)
	if err != nil {
		return n, err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != w.ref.SHA256 {
		return n, failed(IOError, "%s: input.body: the body %s is damaged, it reads as %s", w.tool, w.ref.SHA256, got).
			next("loopkeeper verify says what else is damaged")
	}
	return n, nil
}

// canceled is a reader that stops when its caller gives up.
type canceled struct {
	ctx context.Context
	r   io.Reader
}

func (c canceled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
