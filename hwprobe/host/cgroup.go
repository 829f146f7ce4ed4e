package host

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Pool is the host's memory as far as the probe's own control group allows its use. Only cgroup version 2 is read.
func Pool(root fs.FS, h hwprobe.Host) (hwprobe.Pool, []hwprobe.Warning) {
	p := hwprobe.Pool{ID: hwprobe.HostPool, Kind: hwprobe.PoolOfHost}
	p.SetTotal(h.TotalBytes, hwprobe.SourceOS)
	p.SetFree(h.AvailableBytes, hwprobe.SourceOS)
	limit, free, ok := cgroupMemory(root)
	if total, known := h.TotalBytes.Value(); !ok || !known || limit >= total {
		return p, nil
	}
	p.SetTotal(hwprobe.Known(limit), hwprobe.SourceCgroup)
	if left := hwprobe.Least(free, h.AvailableBytes); left != h.AvailableBytes {
		p.SetFree(left, hwprobe.SourceCgroup)
	}
	return p, []hwprobe.Warning{{Code: hwprobe.WarnMemoryLimited,
		Message: fmt.Sprintf("a control group limits this process to %d bytes of main memory", limit),
		Next:    "if the model server runs outside this container or service, run the probe where the server runs, or raise the limit"}}
}

// cgroupMemory returns the tightest memory.max on the way from the process's cgroup to the root, and the least that any
// of these limits leaves free, counting page cache that the kernel can drop (inactive_file) as free. ok is false where
// nothing sets a limit.
func cgroupMemory(root fs.FS) (limit uint64, free hwprobe.Bytes, ok bool) {
	const base = "sys/fs/cgroup"
	for line := range strings.Lines(source.ReadText(root, "proc/self/cgroup")) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !unified {
			continue
		}
		for dir := path.Join(base, group); strings.HasPrefix(dir, base); dir = path.Dir(dir) {
			maximum, known := source.ReadUint(root, path.Join(dir, "memory.max")).Value() // "max" does not parse: no limit here
			if !known {
				continue
			}
			left := cgroupFree(root, dir, maximum)
			if !ok {
				limit, free, ok = maximum, left, true
			}
			limit, free = min(limit, maximum), hwprobe.Least(free, left)
		}
	}
	return limit, free, ok
}

func cgroupFree(root fs.FS, dir string, limit uint64) hwprobe.Bytes {
	current, known := source.ReadUint(root, path.Join(dir, "memory.current")).Value()
	if !known {
		return hwprobe.Bytes{}
	}
	droppable := source.ParseUint(source.FieldOf(source.ReadText(root, path.Join(dir, "memory.stat")), "inactive_file")).Or(0)
	return hwprobe.Known(limit - min(limit, current-min(current, droppable)))
}
