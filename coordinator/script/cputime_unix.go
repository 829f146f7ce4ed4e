//go:build unix

package script

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time, user and system, that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0 // the host's limit on elapsed time remains
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
