package tools

import (
	"errors"
	"os"
	"syscall"
)

const openFlags = 0

// syncFolder does nothing: Windows has no call for it, and its journal keeps renames in order.
func syncFolder(*os.Root, string) error { return nil }

func diskFull(err error) bool {
	const errorHandleDiskFull, errorDiskFull syscall.Errno = 39, 112
	return errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorDiskFull)
}
