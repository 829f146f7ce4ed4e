package hwprobe

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func probeTree(t *testing.T, root fs.FS, host fixedHost) Report {
	t.Helper()
	r := Probe(t.Context(), Options{Root: root, Runner: absent{}, Host: host})
	checkConsistent(t, r)
	return r
}

func TestReadingsOfAnAMDCard(t *testing.T) {
	r := probeTree(t, tree(t, "amd-sysfs-rx6900xt-16g.txtar", "sys/class/drm/card0-DP-1/device/vendor", "0x1002\n"), bigHost("amd64"))
	want := Device{
		ID: "gpu:0000:0c:00.0", Vendor: AMD, Name: "AMD Radeon (1002:73bf)", PCI: "0000:0c:00.0", Integrated: Known(false),
		Driver: "amdgpu", State: StateOK, Pool: "gpu:0000:0c:00.0",
		Utilisation: Known(3.0), Temperature: Known(56.0), Power: Known(36.0),
	}
	if len(r.Devices) != 1 || r.Devices[0] != want || len(r.Warnings) != 0 {
		t.Errorf("got %+v, %v\nwant %+v", r.Devices, r.Warnings, want)
	}
}

// opened records the files that were opened.
type opened struct {
	fs.FS
	mu    sync.Mutex
	names []string
}

func (o *opened) Open(name string) (fs.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names = append(o.names, name)
	return o.FS.Open(name)
}

func TestASleepingCardIsNotWoken(t *testing.T) {
	const device = "sys/class/drm/card0/device/"
	root := &opened{FS: tree(t, "amd-sysfs-rx6900xt-16g.txtar", device+"power/runtime_status", "suspended\n")}
	r := probeTree(t, root, bigHost("amd64"))
	if d := r.Devices[0]; d.State != StateAsleep || d.Utilisation != (Number{}) || d.Temperature != (Number{}) || d.Power != (Number{}) {
		t.Errorf("device %+v, want it asleep and its sensors unknown", d)
	}
	checkPool(t, r, r.Devices[0].Pool, "17163091968", "16494817280")
	if slices.ContainsFunc(root.names, func(n string) bool {
		return n == device+"gpu_busy_percent" || strings.HasSuffix(n, "temp1_input") || strings.HasSuffix(n, "power1_average")
	}) {
		t.Errorf("it read files that wake the card: %v", root.names)
	}
}

// The numbers are from public reports: GTT is a limit that may exceed the machine, and memory that the firmware set aside
// is no part of what the host has available.
func TestAPUMemoryIsCappedByTheHostButTheCarveOutIsNot(t *testing.T) {
	for _, c := range []struct {
		name                 string
		memory               amdMemory
		hostTotal, available uint64
		total, free          uint64
	}{
		{"ROCm#6004: 8 GiB and 124 GiB on a machine of 128 GiB, 120 GiB of them the host's",
			amdMemory{vramTotal: Known[uint64](8589934592), vramUsed: Known[uint64](0), gttTotal: Known[uint64](133143986176), gttUsed: Known[uint64](0)},
			128849018880, 107374182400, 8589934592 + 128849018880, 8589934592 + 107374182400},
		{"ollama#17271: 96 GiB carve-out, 17.2 GB available to the host; GTT half of the host",
			amdMemory{vramTotal: Known[uint64](103079215104), vramUsed: Known[uint64](24910876672), gttTotal: Known[uint64](16626706432), gttUsed: Known[uint64](0)},
			33253412864, 17243918336, 103079215104 + 16626706432, 78168338432 + 16626706432},
		{"radeontop#168: used may exceed total by pinned buffers",
			amdMemory{vramTotal: Known[uint64](1 << 30), vramUsed: Known[uint64](1<<30 + 4096), gttTotal: Known[uint64](1 << 30), gttUsed: Known[uint64](1 << 30)},
			8 << 30, 4 << 30, 2 << 30, 0},
	} {
		host := Host{TotalBytes: Known(c.hostTotal), AvailableBytes: Known(c.available)}
		p := amdPool(Device{ID: "gpu:x", Integrated: Known(true)}, c.memory, host)
		if p.TotalBytes != Known(c.total) || p.FreeBytes != Known(c.free) || p.Kind != PoolUnified {
			t.Errorf("%s: total %v, free %v; want %d, %d", c.name, p.TotalBytes, p.FreeBytes, c.total, c.free)
		}
		if len(p.Parts) != 2 || p.Parts[0].TotalBytes != c.memory.vramTotal || p.Parts[1].BorrowedOf != HostPool {
			t.Errorf("%s: parts %+v, want both, GTT borrowed of the host", c.name, p.Parts)
		}
	}
}

func TestAPUOnAHostOfUnknownSizeIsUnknown(t *testing.T) {
	r := probeTree(t, tree(t, "amd-sysfs-strixpoint-890m-apu.txtar"), fixedHost{OS: "linux", Arch: "amd64"})
	checkPool(t, r, r.Devices[0].Pool, "?", "?")
}

// Without a listed id, KFD tells an APU by its GTT given as its memory.
func TestUnlistedAPUIsToldByKFD(t *testing.T) {
	const uevent = "sys/class/drm/card1/device/uevent"
	root := tree(t, "amd-sysfs-phoenix-780m-apu.txtar", uevent, "DRIVER=amdgpu\nPCI_ID=1002:FFFF\nPCI_SLOT_NAME=0000:64:00.0\n")
	if r := probeTree(t, root, bigHost("amd64")); r.Devices[0].Integrated != Known(true) {
		t.Errorf("device %+v, want integrated", r.Devices[0])
	}
	delete(root.(fstest.MapFS), "sys/class/kfd/kfd/topology/nodes/1/properties")
	if r := probeTree(t, root, bigHost("amd64")); r.Devices[0].Integrated != (Flag{}) {
		t.Errorf("device %+v, want unknown without KFD", r.Devices[0])
	}
}

// A card's bank in KFD is its VRAM, which may happen to be as large as its GTT limit.
func TestCardWithAsMuchVRAMAsGTTIsNoAPU(t *testing.T) {
	const device, node = "sys/class/drm/card0/device/", "sys/class/kfd/kfd/topology/nodes/1/"
	root := tree(t, "amd-sysfs-rx6900xt-16g.txtar", device+"mem_info_gtt_total", "17163091968\n",
		node+"properties", "location_id 3072\ndomain 0\n", node+"mem_banks/0/properties", "heap_type 1\nsize_in_bytes 17163091968\n")
	r := probeTree(t, root, bigHost("amd64"))
	if r.Devices[0].Integrated != Known(false) {
		t.Errorf("device %+v, want a card", r.Devices[0])
	}
	checkPool(t, r, r.Devices[0].Pool, "17163091968", "16494817280")
}

func TestCardsPairByAddressAndAreOrdered(t *testing.T) {
	root := tree(t, "amd-sysfs-rx6900xt-16g.txtar")
	for name, file := range tree(t, "nvidia-sysfs-rtx4080-drm-only.txtar").(fstest.MapFS) {
		root.(fstest.MapFS)[name] = file
	}
	r := probeTree(t, root, bigHost("amd64"))
	if len(r.Devices) != 2 || r.Devices[0].Vendor != NVIDIA || r.Devices[1].Vendor != AMD || r.Pools[0].ID != HostPool || len(r.Pools) != 3 {
		t.Errorf("devices %+v, pools %+v", r.Devices, r.Pools)
	}
}

func TestPCIAddress(t *testing.T) {
	for text, want := range map[string]string{
		"00000000:0C:00.0": "0000:0c:00.0", "0000000F:01:00.0": "000f:01:00.0", "0000:03:00.0": "0000:03:00.0",
		"10000:E1:00.0": "10000:e1:00.0", "[N/A]": "", "": "", "0000:03:00": "", "0000:03:00.9": "",
	} {
		if got, ok := PCIAddress(text); got != want || ok != (want != "") {
			t.Errorf("PCIAddress(%q) = %q, %v; want %q", text, got, ok, want)
		}
	}
}
