package amd

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// The numbers are from public reports: GTT is a limit that may exceed the machine, and memory that the firmware set aside
// is no part of what the host has available.
func TestAPUMemoryIsCappedByTheHostButTheCarveOutIsNot(t *testing.T) {
	for _, c := range []struct {
		name                 string
		memory               memory
		hostTotal, available uint64
		total, free          uint64
	}{
		{"ROCm#6004: 8 GiB and 124 GiB on a machine of 128 GiB, 120 GiB of them the host's",
			memory{vramTotal: hwprobe.Known[uint64](8589934592), vramUsed: hwprobe.Known[uint64](0), gttTotal: hwprobe.Known[uint64](133143986176), gttUsed: hwprobe.Known[uint64](0)},
			128849018880, 107374182400, 8589934592 + 128849018880, 8589934592 + 107374182400},
		{"ollama#17271: 96 GiB carve-out, 17.2 GB available to the host; GTT half of the host",
			memory{vramTotal: hwprobe.Known[uint64](103079215104), vramUsed: hwprobe.Known[uint64](24910876672), gttTotal: hwprobe.Known[uint64](16626706432), gttUsed: hwprobe.Known[uint64](0)},
			33253412864, 17243918336, 103079215104 + 16626706432, 78168338432 + 16626706432},
		{"radeontop#168: used may exceed total by pinned buffers",
			memory{vramTotal: hwprobe.Known[uint64](1 << 30), vramUsed: hwprobe.Known[uint64](1<<30 + 4096), gttTotal: hwprobe.Known[uint64](1 << 30), gttUsed: hwprobe.Known[uint64](1 << 30)},
			8 << 30, 4 << 30, 2 << 30, 0},
	} {
		host := hwprobe.Host{TotalBytes: hwprobe.Known(c.hostTotal), AvailableBytes: hwprobe.Known(c.available)}
		p := pool(hwprobe.Device{ID: "gpu:x", Integrated: hwprobe.Known(true)}, c.memory, hwprobe.SourceAMDGPUSysfs, host)
		if p.TotalBytes != hwprobe.Known(c.total) || p.FreeBytes != hwprobe.Known(c.free) || p.Kind != hwprobe.PoolUnified {
			t.Errorf("%s: total %v, free %v; want %d, %d", c.name, p.TotalBytes, p.FreeBytes, c.total, c.free)
		}
		if len(p.Parts) != 2 || p.Parts[0].TotalBytes != c.memory.vramTotal || p.Parts[1].BorrowedOf != hwprobe.HostPool {
			t.Errorf("%s: parts %+v, want both, GTT borrowed of the host", c.name, p.Parts)
		}
	}
}
