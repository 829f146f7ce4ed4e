package probe

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func probeTree(t *testing.T, root fs.FS, host fixedHost) hwprobe.Report {
	t.Helper()
	r := Probe(t.Context(), machine(root, absent{}, host))
	checkConsistent(t, r)
	return r
}

func TestReadingsOfAnAMDCard(t *testing.T) {
	r := probeTree(t, fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar", "sys/class/drm/card0-DP-1/device/vendor", "0x1002\n"), bigHost("amd64"))
	want := hwprobe.Device{
		ID: "gpu:0000:0c:00.0", Vendor: hwprobe.AMD, Name: "AMD Radeon (1002:73bf)", PCI: "0000:0c:00.0", Integrated: hwprobe.Known(false),
		UUID: "0123456789abcdef", Driver: "amdgpu", State: hwprobe.StateOK, Pool: "gpu:0000:0c:00.0",
		Utilisation: hwprobe.Known(3.0), Temperature: hwprobe.Known(56.0), Power: hwprobe.Known(36.0),
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
	root := &opened{FS: fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar", device+"power/runtime_status", "suspended\n")}
	r := probeTree(t, root, bigHost("amd64"))
	if d := r.Devices[0]; d.State != hwprobe.StateAsleep || d.Utilisation != (hwprobe.Number{}) || d.Temperature != (hwprobe.Number{}) || d.Power != (hwprobe.Number{}) {
		t.Errorf("device %+v, want it asleep and its sensors unknown", d)
	}
	checkPool(t, r, r.Devices[0].Pool, "17163091968", "16494817280")
	if slices.ContainsFunc(root.names, func(n string) bool {
		return n == device+"gpu_busy_percent" || strings.HasSuffix(n, "temp1_input") || strings.HasSuffix(n, "power1_average")
	}) {
		t.Errorf("it read files that wake the card: %v", root.names)
	}
}

func TestAPUOnAHostOfUnknownSizeIsUnknown(t *testing.T) {
	r := probeTree(t, fixture.Tree(t, "amd-sysfs-strixpoint-890m-apu.txtar"), fixedHost{OS: "linux", Arch: "amd64"})
	checkPool(t, r, r.Devices[0].Pool, "?", "?")
}

// Without a listed id, KFD tells an APU by its GTT given as its memory.
func TestUnlistedAPUIsToldByKFD(t *testing.T) {
	const uevent = "sys/class/drm/card1/device/uevent"
	root := fixture.Tree(t, "amd-sysfs-phoenix-780m-apu.txtar", uevent, "DRIVER=amdgpu\nPCI_ID=1002:FFFF\nPCI_SLOT_NAME=0000:64:00.0\n")
	if r := probeTree(t, root, bigHost("amd64")); r.Devices[0].Integrated != hwprobe.Known(true) {
		t.Errorf("device %+v, want integrated", r.Devices[0])
	}
	delete(root, "sys/class/kfd/kfd/topology/nodes/1/properties")
	if r := probeTree(t, root, bigHost("amd64")); r.Devices[0].Integrated != (hwprobe.Flag{}) {
		t.Errorf("device %+v, want unknown without KFD", r.Devices[0])
	}
}

// A card's bank in KFD is its VRAM, which may happen to be as large as its GTT limit.
func TestCardWithAsMuchVRAMAsGTTIsNoAPU(t *testing.T) {
	const device, node = "sys/class/drm/card0/device/", "sys/class/kfd/kfd/topology/nodes/1/"
	root := fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar", device+"mem_info_gtt_total", "17163091968\n",
		node+"properties", "location_id 3072\ndomain 0\n", node+"mem_banks/0/properties", "heap_type 1\nsize_in_bytes 17163091968\n")
	r := probeTree(t, root, bigHost("amd64"))
	if r.Devices[0].Integrated != hwprobe.Known(false) {
		t.Errorf("device %+v, want a card", r.Devices[0])
	}
	checkPool(t, r, r.Devices[0].Pool, "17163091968", "16494817280")
}

func TestCardsPairByAddressAndAreOrdered(t *testing.T) {
	root := fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar")
	for name, file := range fixture.Tree(t, "nvidia-sysfs-rtx4080-drm-only.txtar") {
		root[name] = file
	}
	r := probeTree(t, root, bigHost("amd64"))
	if len(r.Devices) != 2 || r.Devices[0].Vendor != hwprobe.NVIDIA || r.Devices[1].Vendor != hwprobe.AMD || r.Pools[0].ID != hwprobe.HostPool || len(r.Pools) != 3 {
		t.Errorf("devices %+v, pools %+v", r.Devices, r.Pools)
	}
}

func TestPCIAddress(t *testing.T) {
	for text, want := range map[string]string{
		"00000000:0C:00.0": "0000:0c:00.0", "0000000F:01:00.0": "000f:01:00.0", "0000:03:00.0": "0000:03:00.0",
		"10000:E1:00.0": "10000:e1:00.0", "[N/A]": "", "": "", "0000:03:00": "", "0000:03:00.9": "",
	} {
		if got, ok := hwprobe.PCIAddress(text); got != want || ok != (want != "") {
			t.Errorf("PCIAddress(%q) = %q, %v; want %q", text, got, ok, want)
		}
	}
}
