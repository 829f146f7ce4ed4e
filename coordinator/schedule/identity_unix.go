//go:build unix

package schedule

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity is the device and inode of a file, which a rename keeps.
func identity(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
