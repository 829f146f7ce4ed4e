package intel

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const status = "proc/self/status"

// MangoHud#1936 and steam#12636: a card on xe had 0 bytes, because its driver has no file for them.
func TestCardOnXeHasItsMemory(t *testing.T) {
	root := fixture.Write(fixture.Tree(t, "intel-sysfs-arc-b580-xe.txtar"), "sys/class/drm/card1/device/drm/renderD129/dev", "226:129\n", status, perfmon)
	f := probe(t, root, answers{CallXeRegions: xeReply(region{0, 64 << 30, 1}, region{1, 12884901888, 2884901888})})
	device := hwprobe.Device{ID: "gpu:0000:09:00.0", Vendor: hwprobe.Intel, Name: "Intel Arc B580", PCI: "0000:09:00.0", Integrated: hwprobe.Known(false), Driver: "xe",
		State: hwprobe.StateOK, Pool: "gpu:0000:09:00.0", Temperature: hwprobe.Known(54.0)}
	pool := hwprobe.Pool{ID: "gpu:0000:09:00.0", Kind: hwprobe.PoolOfDevice, TotalBytes: hwprobe.Known[uint64](12884901888), TotalSource: hwprobe.SourceDRM,
		FreeBytes: hwprobe.Known[uint64](10000000000), FreeSource: hwprobe.SourceDRM}
	if len(f.Devices) != 1 || f.Devices[0] != device || len(f.Warnings) != 0 {
		t.Errorf("got  %+v %+v\nwant %+v", f.Devices, f.Warnings, device)
	}
	if fmt.Sprint(f.Pools) != fmt.Sprint([]hwprobe.Pool{pool}) {
		t.Errorf("got  %+v\nwant %+v", f.Pools, pool)
	}
}

func TestWhatAnUnprivilegedProcessIsToldIsNotFreeMemory(t *testing.T) {
	for _, c := range []struct {
		name, driver, status string
		reply                []byte
		want                 hwprobe.WarningCode
	}{
		{"xe without rights", "xe", noRights, xeReply(region{1, 12884901888, 0}), hwprobe.WarnNoPermission},
		{"i915 without rights", "i915", noRights, i915Reply(region{1, 16225243136, 16225243136}), hwprobe.WarnNoPermission},
		{"rights that are not told", "xe", "", xeReply(region{1, 12884901888, 0}), hwprobe.WarnNoPermission},
		{"the right, and a driver that counts nothing", "xe", perfmon, xeReply(region{1, 12884901888, 0}), hwprobe.WarnMemoryUnknown},
		{"root in a container of its own", "xe", allRight, xeReply(region{1, 12884901888, 0}), hwprobe.WarnMemoryUnknown},
	} {
		root := fixture.Write(card("8086:56a0", "0000:03:00.0", c.driver), status, c.status)
		f := probe(t, root, answers{CallXeRegions: c.reply, CallI915Regions: c.reply})
		if d, p := f.Devices[0], f.Pools[0]; d.State != hwprobe.StateOK || p.TotalBytes == (hwprobe.Bytes{}) || p.FreeBytes != (hwprobe.Bytes{}) || p.FreeSource != "" {
			t.Errorf("%s: %+v %+v", c.name, d, p)
		}
		if len(f.Warnings) != 1 || f.Warnings[0].Code != c.want || f.Warnings[0].Next == "" {
			t.Errorf("%s: warnings %+v, want %s", c.name, f.Warnings, c.want)
		}
	}
}

// llmfit#964 and llmfit#676: a processor's graphics had all of the host's memory as VRAM, or 0.0 GB.
func TestProcessorsGraphicsDrawOnTheHost(t *testing.T) {
	root := fixture.Write(fixture.Tree(t, "intel-sysfs-tigerlake-igpu-xe.txtar"), "sys/class/drm/card0/device/drm/renderD128/dev", "226:128\n")
	calls := source.Calls{CallXeRegions: func(context.Context, ...string) (any, error) {
		t.Error("its driver was asked for memory that it does not have")
		return nil, fs.ErrInvalid
	}}
	f := Probe(t.Context(), source.Machine{OS: "linux", Files: root, Calls: calls}, hwprobe.Host{})
	want := hwprobe.Device{ID: "gpu:0000:00:02.0", Vendor: hwprobe.Intel, Name: "Intel Graphics (8086:9a49)", PCI: "0000:00:02.0", Integrated: hwprobe.Known(true), Driver: "xe",
		State: hwprobe.StateOK, Pool: hwprobe.HostPool}
	if len(f.Devices) != 1 || f.Devices[0] != want || len(f.Pools) != 0 || len(f.Warnings) != 0 {
		t.Errorf("%+v %+v %+v", f.Devices, f.Pools, f.Warnings)
	}
}

func TestCardIsToldFromAProcessorsGraphics(t *testing.T) {
	cardMemory, hostMemory := xeReply(region{0, 64 << 30, 0}, region{1, 16 << 30, 0}), xeReply(region{0, 64 << 30, 0})
	yes, no, unknown := hwprobe.Known(true), hwprobe.Known(false), hwprobe.Flag{}
	for _, c := range []struct {
		name, id, pci string
		answer        any
		want          hwprobe.Flag
	}{
		{"Arc 140V: a processor's, for all its name", "8086:64a0", "0000:00:02.0", fs.ErrPermission, yes},
		{"a card that a virtual machine shows at the processor's place", "8086:56a0", "0000:00:02.0", fs.ErrPermission, no},
		{"a new card", "8086:ffff", "0000:00:02.0", cardMemory, no},
		{"a new processor", "8086:ffff", "0000:05:00.0", hostMemory, yes},
		{"a new chip in a slot", "8086:ffff", "0000:05:00.0", fs.ErrPermission, no},
		{"a new chip at the processor's place", "8086:ffff", "0000:00:02.0", fs.ErrPermission, yes},
		{"a new chip elsewhere on the first bus", "8086:ffff", "0000:00:05.0", fs.ErrPermission, unknown},
		{"nothing told", "8086:ffff", "", fs.ErrPermission, unknown},
	} {
		f := probe(t, card(c.id, c.pci, "xe"), answers{CallXeRegions: c.answer})
		if got := f.Devices[0].Integrated; got != c.want {
			t.Errorf("%s: integrated %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWhyTheSizeIsUnknownAndWhatToDo(t *testing.T) {
	noNode := card("8086:56a0", "0000:03:00.0", "xe")
	delete(noNode, "sys/class/drm/card0/device/drm/renderD128/dev")
	for _, c := range []struct {
		name          string
		root          fstest.MapFS
		answer        any
		code          hwprobe.WarningCode
		message, next string
	}{
		{"no node", noNode, nil, hwprobe.WarnMemoryUnknown, "no render node", "/dev/dri"},
		{"a node that the container lacks", card("8086:56a0", "0000:03:00.0", "xe"), fs.ErrNotExist, hwprobe.WarnMemoryUnknown, "no render node", "/dev/dri"},
		{"no rights", card("8086:56a0", "0000:03:00.0", "i915"), fs.ErrPermission, hwprobe.WarnNoPermission, "renderD128", "render or video"},
		{"a driver that fails", card("8086:56a0", "0000:03:00.0", "xe"), fs.ErrInvalid, hwprobe.WarnMemoryUnknown, "does not answer", "dmesg"},
		{"a driver that answers with nothing", card("8086:56a0", "0000:03:00.0", "xe"), xeReply(), hwprobe.WarnMemoryUnknown, "does not tell", "5.14"},
	} {
		f := probe(t, c.root, answers{CallXeRegions: c.answer, CallI915Regions: c.answer})
		if d, p := f.Devices[0], f.Pools[0]; d.State != hwprobe.StateDegraded || p.TotalBytes != (hwprobe.Bytes{}) || p.FreeBytes != (hwprobe.Bytes{}) {
			t.Errorf("%s: %+v %+v", c.name, d, p)
		}
		if len(f.Warnings) != 1 || f.Warnings[0].Code != c.code || !strings.Contains(f.Warnings[0].Message, c.message) || !strings.Contains(f.Warnings[0].Next, c.next) {
			t.Errorf("%s: warnings %+v", c.name, f.Warnings)
		}
	}
}

func TestSleepingCardIsNotWoken(t *testing.T) {
	root := fixture.Write(fixture.Tree(t, "intel-sysfs-arc-a380-xe.txtar"), "sys/class/drm/card0/device/power/runtime_status", "suspended\n",
		"sys/class/drm/card0/device/drm/renderD128/dev", "226:128\n")
	f := probe(t, root, answers{CallXeRegions: xeReply(region{1, 6 << 30, 1})})
	if d := f.Devices[0]; d.State != hwprobe.StateAsleep || d.Integrated != hwprobe.Known(false) || d.Temperature != (hwprobe.Number{}) || f.Pools[0].TotalBytes != (hwprobe.Bytes{}) {
		t.Errorf("%+v %+v: its driver or its sensors were asked", d, f.Pools)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Message, "sleeps") {
		t.Errorf("warnings %+v", f.Warnings)
	}
}

func TestFilesThatTellASize(t *testing.T) {
	const dir = "sys/class/drm/card0/"
	mm := fixture.Text(t, "intel-xe-vram_mm-a750.txt")
	known, unknown := hwprobe.Known[uint64], hwprobe.Bytes{}
	for _, c := range []struct {
		name        string
		files       []string
		total, free hwprobe.Bytes
	}{
		{"Intel's own i915", []string{dir + "lmem_total_bytes", "6408896512\n"}, known(6408896512), unknown},
		{"tiles", []string{dir + "device/tile0/physical_vram_size_bytes", "0x0\n", dir + "device/tile1/physical_vram_size_bytes", "5\n"}, unknown, unknown},
		{"two tiles", []string{dir + "device/tile0/physical_vram_size_bytes", "7\n", dir + "device/tile1/physical_vram_size_bytes", "5\n"}, known(12), unknown},
		{"debugfs by address", []string{"sys/kernel/debug/dri/0000:03:00.0/tile0/vram_mm", mm}, known(8522825728), known(8490745856)},
		{"debugfs by number", []string{"sys/kernel/debug/dri/0/tile0/vram_mm", mm}, known(8522825728), known(8490745856)},
		{"older debugfs", []string{"sys/kernel/debug/dri/0/vram0_mm", mm}, known(8522825728), known(8490745856)},
		{"another card's debugfs", []string{"sys/kernel/debug/dri/1/tile0/vram_mm", mm}, unknown, unknown},
		{"debugfs that does not tell use", []string{"sys/kernel/debug/dri/0/tile0/vram_mm", "  size: 8522825728\n"}, known(8522825728), unknown},
		{"a size of nothing", []string{dir + "lmem_total_bytes", "0\n"}, unknown, unknown},
	} {
		f := probe(t, fixture.Write(card("8086:56a1", "0000:03:00.0", "xe"), c.files...), answers{CallXeRegions: fs.ErrPermission})
		if p := f.Pools[0]; p.TotalBytes != c.total || p.FreeBytes != c.free {
			t.Errorf("%s: %+v, want %v, %v", c.name, p, c.total, c.free)
		}
	}
	// The driver's word on the size, and root's file on what is used of it.
	root := fixture.Write(card("8086:56a1", "0000:03:00.0", "xe"), "sys/kernel/debug/dri/0/tile0/vram_mm", mm, status, noRights)
	f := probe(t, root, answers{CallXeRegions: xeReply(region{1, 8522825728, 0})})
	if p := f.Pools[0]; p.TotalSource != hwprobe.SourceDRM || p.FreeSource != hwprobe.SourceIntelFiles || p.FreeBytes != known(8490745856) || len(f.Warnings) != 0 {
		t.Errorf("%+v %+v", p, f.Warnings)
	}
}
