//go:build unix

package schedule

import (
	"io/fs"
	"strconv"
	"syscall"
)

// identity is the inode of a file, which a rename keeps. The device is left out: its number changes when a disk is mounted again.
func identity(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(s.Ino, 10)
	}
	return ""
}
