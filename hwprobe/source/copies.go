package source

import (
	"fmt"
	"io"
	"io/fs"
)

// recordingLimit is how much text a recording may hold, in bytes. The largest of a machine is some MiB.
const recordingLimit = 32 << 20

// copies reads a recording's folder, which somebody else made: only what are files, because opening a pipe or a device may never
// come back, and no more than a recording can be.
type copies struct {
	root fs.FS
	left int64 // bytes that may still be read
}

func (c *copies) read(name string) ([]byte, error) {
	info, err := fs.Stat(c.root, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	file, err := c.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, c.left+1))
	if err != nil {
		return nil, err
	}
	if c.left -= int64(len(text)); c.left < 0 {
		return nil, fmt.Errorf("read %s: %w (over %d bytes in all)", name, ErrFileTooLarge, int64(recordingLimit))
	}
	return text, nil
}
