package host

import (
	"math"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// meminfo reads Linux' /proc/meminfo: all main memory, and what programs can get without swapping. Kernels before 3.14 do not
// tell the latter; there it is what is free, and the caches without what only looks like one: tmpfs and shared memory.
func meminfo(text string) (total, available hwprobe.Bytes) {
	fields := map[string]hwprobe.Bytes{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = kibibytes(value)
	}
	available, told := fields["MemAvailable"]
	if !told {
		caches := hwprobe.Sum(fields["Buffers"], fields["Cached"])
		if shared, told := fields["Shmem"]; told { // since 2.6.32
			caches = hwprobe.Sub(caches, shared)
		}
		available = hwprobe.Sum(fields["MemFree"], caches)
	}
	if total = hwprobe.Size(fields["MemTotal"]); total != (hwprobe.Bytes{}) {
		available = hwprobe.Least(available, total)
	}
	return total, available
}

// kibibytes reads "  16115528 kB"; anything else is unknown.
func kibibytes(text string) hwprobe.Bytes {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, known := source.ParseUint(number).Value()
	if !known || unit != "kB" || n > math.MaxUint64/1024 {
		return hwprobe.Bytes{}
	}
	return hwprobe.Known(n * 1024)
}
