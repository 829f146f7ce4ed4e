package amd

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

// The numbers are from public reports: GTT is a limit that may exceed the machine, and memory that the firmware set aside
// is no part of what the host has available.
func TestAPUMemoryIsCappedByTheHostButTheCarveOutIsNot(t *testing.T) {
	known := hwprobe.Known[uint64]
	for _, c := range []struct {
		name                 string
		memory               memory
		hostTotal, available uint64
		total, free          uint64
	}{
		{"ROCm#6004: 8 GiB and 124 GiB on a machine of 128 GiB, 120 GiB of them the host's",
			memory{vramTotal: known(8589934592), vramUsed: known(0), gttTotal: known(133143986176), gttUsed: known(0)},
			128849018880, 107374182400, 8589934592 + 128849018880, 8589934592 + 107374182400},
		{"ollama#17271: 96 GiB carve-out, 17.2 GB available to the host; GTT half of the host",
			memory{vramTotal: known(103079215104), vramUsed: known(24910876672), gttTotal: known(16626706432), gttUsed: known(0)},
			33253412864, 17243918336, 103079215104 + 16626706432, 78168338432 + 16626706432},
		{"gpustack#4848: 512 MiB set aside of 128 GB, GTT 120 GiB",
			memory{vramTotal: known(512 << 20), vramUsed: known(0), gttTotal: known(120 << 30), gttUsed: known(0)},
			127 << 30, 122 << 30, 512<<20 + 120<<30, 512<<20 + 120<<30},
		{"ollama#16462: nearly all of the host is taken, by the GPU's own GTT",
			memory{vramTotal: known(512 << 20), vramUsed: known(512 << 20), gttTotal: known(113 << 30), gttUsed: known(100 << 30)},
			120 << 30, 18 << 30, 512<<20 + 113<<30, 13 << 30},
		{"radeontop#168: used may exceed total by pinned buffers",
			memory{vramTotal: known(1 << 30), vramUsed: known(1<<30 + 4096), gttTotal: known(1 << 30), gttUsed: known(1 << 30)},
			8 << 30, 4 << 30, 2 << 30, 0},
	} {
		h := hwprobe.Host{TotalBytes: known(c.hostTotal), AvailableBytes: known(c.available)}
		p := pool(hwprobe.Device{ID: "gpu:x", Integrated: hwprobe.Known(true)}, c.memory, hwprobe.SourceAMDGPUSysfs, h)
		if p.TotalBytes != known(c.total) || p.FreeBytes != known(c.free) || p.Kind != hwprobe.PoolUnified {
			t.Errorf("%s: total %v, free %v; want %d, %d", c.name, p.TotalBytes, p.FreeBytes, c.total, c.free)
		}
		if len(p.Parts) != 2 || p.Parts[0].TotalBytes != c.memory.vramTotal || p.Parts[0].BorrowedOf != "" || p.Parts[1].BorrowedOf != hwprobe.HostPool {
			t.Errorf("%s: parts %+v, want both, GTT borrowed of the host", c.name, p.Parts)
		}
	}
}

func TestGTTOfACardIsNotItsMemory(t *testing.T) {
	f := probe(t, fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar"), nil, host())
	if p := f.Pools[0]; p.TotalBytes != hwprobe.Known[uint64](17163091968) || p.Kind != hwprobe.PoolOfDevice || p.Parts != nil {
		t.Errorf("pool %+v, want 17163091968 without GTT", p)
	}
}

// ollama#13107, ollama#13677, ROCm#5444: 96 GiB set aside, of which ROCm on an old kernel uses nothing.
func TestROCmOnAnOldKernelSeesOnlyGTT(t *testing.T) {
	strixHalo := card(fstest.MapFS{}, "card0", "1002:1586", "0000:c6:00.0", "103079215104", "0", "17050894336", "0")
	small := card(fstest.MapFS{}, "card0", "1002:15bf", "0000:64:00.0", "4294967296", "0", "31433977856", "0")
	discrete := card(fstest.MapFS{}, "card0", "1002:7551", "0000:03:00.0", "34208743424", "0", "17050894336", "0")
	for _, c := range []struct {
		name   string
		root   fstest.MapFS
		kernel string
		want   bool
	}{
		{"old", strixHalo, "6.14.0-37-generic", true}, {"just too old", strixHalo, "6.16.8", true}, {"6.16 without a third number", strixHalo, "6.16-rc1", true},
		{"fixed", strixHalo, "6.16.9", false}, {"newer", strixHalo, "6.17.0-5-generic", false}, {"next major", strixHalo, "7.0", false},
		{"not told", strixHalo, "", false}, {"no version", strixHalo, "unknown", false},
		{"the larger part is GTT", small, "6.14.0", false}, {"a card", discrete, "6.14.0", false},
	} {
		h := host()
		h.Kernel = c.kernel
		f := probe(t, c.root, nil, h)
		if got := slices.Contains(codes(f), hwprobe.WarnPartOfPool); got != c.want {
			t.Errorf("%s, kernel %q: warnings %+v", c.name, c.kernel, f.Warnings)
		}
		if len(f.Devices) != 1 || f.Devices[0].State != hwprobe.StateOK {
			t.Errorf("%s: %+v", c.name, f.Devices)
		}
	}
}

func TestWhyMemoryIsUnknownAndWhatToDo(t *testing.T) {
	const uevent = "sys/class/drm/card0/device/uevent"
	none := card(fstest.MapFS{}, "card0", "1002:6818", "0000:01:00.0")
	radeon := fixture.Write(card(fstest.MapFS{}, "card0", "1002:6818", "0000:01:00.0"), uevent, "DRIVER=radeon\nPCI_ID=1002:6818\nPCI_SLOT_NAME=0000:01:00.0\n")
	zero := card(fstest.MapFS{}, "card0", "1002:744c", "0000:03:00.0", "0", "0")
	apu := card(fstest.MapFS{}, "card0", "1002:15bf", "0000:64:00.0", "4294967296", "0", "31433977856", "0")
	for _, c := range []struct {
		name          string
		root          fstest.MapFS
		host          hwprobe.Host
		message, next string
	}{
		{"HD 7870 on radeon", radeon, host(), "radeon", "amdgpu.si_support=1"},
		{"ROC-smi#90, kernel 4.19", none, hwprobe.Host{Kernel: "4.19.132"}, "older than 5.1", "upgrade to Linux 5.1"},
		{"kernel 5.1", none, hwprobe.Host{Kernel: "5.1.0"}, `"amdgpu" does not tell`, "/sys"},
		{"a total of 0", zero, host(), "does not tell", "/sys"},
		{"an APU on a host of unknown size", apu, hwprobe.Host{}, "the host does not tell", "/proc/meminfo"},
	} {
		f := probe(t, c.root, nil, c.host)
		if len(f.Devices) != 1 || f.Devices[0].State != hwprobe.StateDegraded || f.Pools[0].TotalBytes != (hwprobe.Bytes{}) || f.Pools[0].FreeBytes != (hwprobe.Bytes{}) {
			t.Errorf("%s: %+v %+v, want a degraded device of unknown memory", c.name, f.Devices, f.Pools)
		}
		if len(f.Warnings) != 1 || f.Warnings[0].Code != hwprobe.WarnMemoryUnknown || !strings.Contains(f.Warnings[0].Message, c.message) || !strings.Contains(f.Warnings[0].Next, c.next) {
			t.Errorf("%s: warnings %+v", c.name, f.Warnings)
		}
	}
}

func TestUsedThatIsNotToldIsNotNothing(t *testing.T) {
	f := probe(t, card(fstest.MapFS{}, "card0", "1002:744c", "0000:03:00.0", "25753026560"), nil, host())
	if p := f.Pools[0]; p.TotalBytes != hwprobe.Known[uint64](25753026560) || p.FreeBytes != (hwprobe.Bytes{}) || p.FreeSource != "" {
		t.Errorf("pool %+v, want free unknown", p)
	}
}
