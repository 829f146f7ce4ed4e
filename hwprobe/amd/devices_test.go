package amd

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const kfd = "sys/class/kfd/kfd/topology/nodes/"

// ollama#9823: 12.2 GiB of host memory were preferred to a card of 10 GB. llmfit#271: a processor's graphics counted as a
// second card. Which one to use is the reader's decision, who must be able to tell them apart.
func TestDisplayGraphicsBesideACardAreListedAsIntegrated(t *testing.T) {
	root := card(fstest.MapFS{}, "card0", "1002:164e", "0000:0d:00.0", "536870912", "43044864", "13100000000", "50000000")
	card(root, "card1", "1002:73df", "0000:03:00.0", "10737418240", "21474836", "13100000000", "50000000")
	f := probe(t, root, nil, host())
	if len(f.Devices) != 2 || len(f.Pools) != 2 {
		t.Fatalf("devices %+v, pools %+v", f.Devices, f.Pools)
	}
	for _, d := range f.Devices {
		if want := d.PCI == "0000:0d:00.0"; d.Integrated != hwprobe.Known(want) || d.State != hwprobe.StateOK {
			t.Errorf("%s: integrated %v, state %s", d.PCI, d.Integrated, d.State)
		}
	}
}

// llmfit#638: a MI50 of 32 GB was dropped because the driver calls it what it calls a processor's graphics.
func TestGenericNameDoesNotMakeACardIntegrated(t *testing.T) {
	root := card(fstest.MapFS{}, "card0", "1002:66a1", "0000:03:00.0", "34342961152", "25227759616", "16000000000", "0")
	fixture.Write(root, "sys/class/drm/card0/device/product_name", "AMD Radeon Graphics\n")
	f := probe(t, root, nil, host())
	if d := f.Devices[0]; d.Name != "AMD Radeon Graphics" || d.Integrated != hwprobe.Known(false) || f.Pools[0].TotalBytes != hwprobe.Known[uint64](34342961152) {
		t.Errorf("%+v %+v", d, f.Pools)
	}
}

// A card's bank in KFD is its VRAM, which may happen to be as large as its GTT limit; an APU's is its GTT limit.
func TestChipThatNoListHasIsToldByKFD(t *testing.T) {
	for _, c := range []struct {
		name, vram, gtt, bank string
		want                  hwprobe.Flag
	}{
		{"an APU", "4294967296", "31433977856", "31433977856", hwprobe.Known(true)},
		{"a card", "34208743424", "31433977856", "34208743424", hwprobe.Flag{}},
		{"a card with as much VRAM as GTT", "17163091968", "17163091968", "17163091968", hwprobe.Flag{}},
		{"a bank that is not told", "4294967296", "31433977856", "", hwprobe.Flag{}},
	} {
		root := card(fstest.MapFS{}, "card0", "1002:ffff", "0000:0c:00.0", c.vram, "0", c.gtt, "0")
		fixture.Write(root, kfd+"1/properties", "location_id 3072\ndomain 0\n", kfd+"1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes "+c.bank+"\n")
		if got := probe(t, root, nil, host()).Devices[0].Integrated; got != c.want {
			t.Errorf("%s: integrated %v, want %v", c.name, got, c.want)
		}
	}
}

// ROCm#4750: eight partitions of a MI300X, each with the whole card's memory, made 1.6 TB of one card. Kernels put the
// partition's number into bits 28 to 31 of the location, some earlier ones into the function.
func TestPartitionsOfACardAreOnePool(t *testing.T) {
	for _, shift := range []int{28, 0} {
		root := card(fstest.MapFS{}, "card1", "1002:74a1", "0001:0c:00.0", "206141652992", "297771008", "101000000000", "0")
		for i := range 8 {
			fixture.Write(root, fmt.Sprintf("%s%d/properties", kfd, i+2), fmt.Sprintf("gfx_target_version 90402\nlocation_id %d\ndomain 1\n", 0x0c00|i<<shift))
		}
		fixture.Write(root, kfd+"0/properties", "location_id 0\n", kfd+"1/properties", "gfx_target_version 90402\nlocation_id 3072\ndomain 2\n")
		f := probe(t, root, nil, host())
		if len(f.Devices) != 8 || len(f.Pools) != 1 || f.Pools[0].TotalBytes != hwprobe.Known[uint64](206141652992) || len(f.Warnings) != 0 {
			t.Fatalf("shift %d: devices %+v, pools %+v, warnings %+v", shift, f.Devices, f.Pools, f.Warnings)
		}
		for i, d := range f.Devices {
			if d.ID != fmt.Sprintf("gpu:0001:0c:00.0/part%d", i) || d.Pool != "gpu:0001:0c:00.0" || d.PCI != "0001:0c:00.0" || d.Partition != fmt.Sprintf("part %d of 8", i+1) ||
				d.State != hwprobe.StateOK || d.Integrated != hwprobe.Known(false) || d.Utilisation != (hwprobe.Number{}) || d.Power != (hwprobe.Number{}) {
				t.Errorf("shift %d: %+v", shift, d)
			}
		}
	}
}

// ROCm#3866: after an eGPU was plugged in again one tool still knew two cards and another none. Nothing is remembered.
func TestPluggedCardIsThereAndUnpluggedCardIsGone(t *testing.T) {
	root := fixture.Tree(t, "amd-sysfs-phoenix-780m-apu.txtar")
	m := source.Machine{OS: "linux", Files: root, Commands: tools{}, Calls: source.Calls{}}
	count := func() int { return len(Probe(t.Context(), m, host()).Devices) }
	if n := count(); n != 1 {
		t.Fatalf("%d devices", n)
	}
	card(root, "card0", "1002:744c", "0000:07:00.0", "25753026560", "0")
	if n := count(); n != 2 {
		t.Errorf("%d devices with the card", n)
	}
	for name := range root {
		if strings.HasPrefix(name, "sys/class/drm/card0/") {
			delete(root, name)
		}
	}
	if n := count(); n != 1 {
		t.Errorf("%d devices without the card", n)
	}
}

func TestMI300AIsNotJudged(t *testing.T) {
	f := probe(t, card(fstest.MapFS{}, "card1", idMI300A, "0000:01:00.0", "137438953472", "0", "68719476736", "0"), nil, host())
	if d := f.Devices[0]; d.State != hwprobe.StateUnsupported || f.Pools[0].TotalBytes != (hwprobe.Bytes{}) || codes(f)[0] != hwprobe.WarnUnsupportedGPU {
		t.Errorf("%+v %+v %+v", d, f.Pools, f.Warnings)
	}
}

// Products of one PCI id differ by revision. The lines are of libdrm's list.
func TestNameIsByRevisionAndNeverByGuess(t *testing.T) {
	const list = "# List of AMDGPU IDs\n1.0.0\n7550,\tC0,\tAMD Radeon RX 9070 XT\n7550,\tC3,\tAMD Radeon RX 9070\n"
	for revision, want := range map[string]string{"0xc0": "AMD Radeon RX 9070 XT", "0xc3": "AMD Radeon RX 9070", "0xff": "AMD Radeon (1002:7550)", "": "AMD Radeon (1002:7550)"} {
		c := drm.Card{Dir: "card", ID: "1002:7550", Revision: revision}
		for _, file := range nameLists {
			if got := cardName(fstest.MapFS{file: {Data: []byte(list)}}, c); got != want {
				t.Errorf("revision %q in %s: %q, want %q", revision, file, got, want)
			}
		}
		if got := cardName(fstest.MapFS{"card/product_name": {Data: []byte("Radeon Pro W7900\n")}}, c); got != "Radeon Pro W7900" {
			t.Errorf("the card's own name: %q", got)
		}
	}
}

func TestUtilisationThatIsNotToldIsNotIdle(t *testing.T) {
	const busy = "sys/class/drm/card0/device/gpu_busy_percent"
	root := fixture.Tree(t, "amd-sysfs-vega56-8g.txtar")
	for text, want := range map[string]hwprobe.Number{"0\n": hwprobe.Known(0.0), "100\n": hwprobe.Known(100.0), "65535\n": {}, "-1\n": {}, "": {}} {
		if got := probe(t, fixture.Write(root, busy, text), nil, host()).Devices[0].Utilisation; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	delete(root, busy)
	if got := probe(t, root, nil, host()).Devices[0].Utilisation; got != (hwprobe.Number{}) {
		t.Errorf("without the file: %v", got)
	}
}

// fusion is a machine whose driver answers what a card is, and counts how often it is asked.
func fusion(root fstest.MapFS, asked *int, info DeviceInfo, err error) source.Machine {
	return source.Machine{OS: "linux", Files: root, Commands: tools{}, Calls: source.Calls{CallFusion: func(_ context.Context, args ...string) (any, error) {
		*asked++
		return info, err
	}}}
}

func TestDriverSaysWhatIsAnAPU(t *testing.T) {
	const node = "sys/class/drm/card0/device/drm/renderD128/dev"
	apu, discrete, unknown := hwprobe.Known(true), hwprobe.Known(false), hwprobe.Flag{}
	for _, c := range []struct {
		name string
		id   string
		info DeviceInfo
		err  error
		want hwprobe.Flag
	}{
		{"a chip that no list has", "1002:ffff", DeviceInfo{DeviceID: 0xffff, IDsFlags: 0x13}, nil, apu},
		{"a card that no list has", "1002:ffff", DeviceInfo{DeviceID: 0xffff, IDsFlags: 0x12}, nil, discrete},
		{"the list would say otherwise", "1002:15bf", DeviceInfo{DeviceID: 0x15bf}, nil, discrete},
		{"an answer about another device", "1002:ffff", DeviceInfo{DeviceID: 0x15bf, IDsFlags: 1}, nil, unknown},
		{"no rights, but a list", "1002:15bf", DeviceInfo{}, fs.ErrPermission, apu},
		{"no rights and no list", "1002:ffff", DeviceInfo{}, fs.ErrPermission, unknown},
	} {
		root := fixture.Write(card(fstest.MapFS{}, "card0", c.id, "0000:64:00.0", "4294967296", "0", "31433977856", "0"), node, "226:128\n")
		var asked int
		f := Probe(t.Context(), fusion(root, &asked, c.info, c.err), host())
		if got := f.Devices[0].Integrated; got != c.want || asked != 1 {
			t.Errorf("%s: integrated %v after %d questions, want %v", c.name, got, asked, c.want)
		}
		fixture.Write(root, "sys/class/drm/card0/device/power/runtime_status", "suspended\n")
		if f := Probe(t.Context(), fusion(root, &asked, c.info, c.err), host()); asked != 1 || f.Devices[0].State != hwprobe.StateAsleep {
			t.Errorf("%s: a sleeping card was asked, which wakes it", c.name)
		}
	}
}
