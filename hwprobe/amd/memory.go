package amd

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// memory is what amdgpu tells, in bytes: VRAM is memory of the device's own (on an APU set aside by the firmware, outside
// MemTotal), GTT is host memory that the device may map. The visible part of VRAM is what the processor can address at
// once, never a capacity.
type memory struct {
	vramTotal, vramUsed, visibleTotal, gttTotal, gttUsed hwprobe.Bytes
}

func readMemory(root fs.FS, c drm.Card) memory {
	read := func(name string) hwprobe.Bytes { return source.ReadUint(root, path.Join(c.Dir, "mem_info_"+name)) }
	return memory{
		vramTotal: hwprobe.Size(read("vram_total")), vramUsed: read("vram_used"), visibleTotal: read("vis_vram_total"),
		gttTotal: hwprobe.Size(read("gtt_total")), gttUsed: read("gtt_used"),
	}
}

// pool is the memory that a device draws on. A discrete card has its VRAM only. An APU's driver uses VRAM and GTT
// alike, but GTT is a limit, not memory: it is capped by what the host has, and what is free of it by what the host has
// available. The VRAM is not capped, because it is no part of what the host has. The parts stay visible because some
// engines use only one of them. Where the source does not tell GTT, as rocm-smi may not, VRAM is what is known for sure.
func pool(d hwprobe.Device, m memory, from hwprobe.Source, host hwprobe.Host) hwprobe.Pool {
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	total, free := m.vramTotal, hwprobe.Sub(m.vramTotal, m.vramUsed)
	if d.Integrated.Or(false) {
		p.Kind = hwprobe.PoolUnified
		p.Parts = []hwprobe.PoolPart{{Name: "vram", TotalBytes: total, FreeBytes: free}}
		if m.gttTotal != (hwprobe.Bytes{}) {
			gtt := hwprobe.PoolPart{Name: "gtt", BorrowedOf: hwprobe.HostPool, TotalBytes: hwprobe.Least(m.gttTotal, host.TotalBytes),
				FreeBytes: hwprobe.Least(hwprobe.Sub(m.gttTotal, m.gttUsed), host.AvailableBytes)}
			p.Parts = append(p.Parts, gtt)
			total, free = hwprobe.Sum(total, gtt.TotalBytes), hwprobe.Sum(free, gtt.FreeBytes)
		}
	}
	p.SetTotal(total, from)
	p.SetFree(free, from)
	return p
}

// carveOutHidden says whether ROCm cannot use the larger part of an APU's memory: before Linux 6.16.9 it saw GTT only,
// which was 15.5 GiB beside 96 GiB set aside (ROCm/legacy-rocm-build#5444).
func carveOutHidden(d hwprobe.Device, m memory, host hwprobe.Host) bool {
	gtt, known := m.gttTotal.Value()
	return d.Integrated.Or(false) && known && m.vramTotal.Or(0) > gtt && older(host.Kernel, 6, 16, 9)
}

var kernelVersion = regexp.MustCompile(`^(\d+)\.(\d+)(?:\.(\d+))?`)

// older says whether a kernel is known to be older than a version. A distribution may have brought a change to an older
// kernel; then this is wrong, on the safe side.
func older(kernel string, version ...int) bool {
	numbers := kernelVersion.FindStringSubmatch(kernel)
	if numbers == nil {
		return false
	}
	for i, want := range version {
		have, err := strconv.Atoi(numbers[i+1])
		if err != nil {
			have = 0 // "6.16" is 6.16.0
		}
		if have != want {
			return have < want
		}
	}
	return false
}
