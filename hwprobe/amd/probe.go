package amd

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const pciVendorAMD = "0x1002"

// Probe reads the amdgpu driver's files. They exist since Linux 5.1 and need no rights.
func Probe(_ context.Context, m source.Machine, host hwprobe.Host) hwprobe.Findings {
	var f hwprobe.Findings
	for _, c := range drm.Cards(m.Files, pciVendorAMD) {
		d := hwprobe.Device{ID: c.DeviceID(), Vendor: hwprobe.AMD, PCI: c.PCI, Driver: c.Driver, State: hwprobe.StateOK, Name: amdName(m.Files, c)}
		d.Pool = d.ID
		memory := readAMDMemory(m.Files, c)
		d.Integrated = amdIntegrated(m.Files, c, memory)
		if c.Asleep {
			d.State = hwprobe.StateAsleep // the files below would wake it
		} else {
			d.Utilisation = source.ReadScaled(m.Files, path.Join(c.Dir, "gpu_busy_percent"), 1)
			d.Temperature, d.Power = readHwmon(m.Files, c.Dir)
		}
		p := amdPool(d, memory, host)
		if p.TotalBytes == (hwprobe.Bytes{}) {
			d.State = hwprobe.StateDegraded
			f.Warn(hwprobe.WarnMemoryUnknown, d.ID, fmt.Sprintf("%s: the driver %q does not tell the memory size", d.Name, c.Driver),
				"use the amdgpu driver on Linux 5.1 or newer, and make /sys visible to this process")
		}
		f.Add(d, p)
	}
	return f
}

// amdMemory is what amdgpu tells: VRAM is memory of the device's own (on an APU set aside by the firmware, outside
// MemTotal), GTT is host memory that the device may map.
type amdMemory struct {
	vramTotal, vramUsed, visibleTotal, gttTotal, gttUsed hwprobe.Bytes
}

func readAMDMemory(root fs.FS, c drm.Card) amdMemory {
	read := func(name string) hwprobe.Bytes { return source.ReadUint(root, path.Join(c.Dir, "mem_info_"+name)) }
	return amdMemory{
		vramTotal: read("vram_total"), vramUsed: read("vram_used"), visibleTotal: read("vis_vram_total"),
		gttTotal: read("gtt_total"), gttUsed: read("gtt_used"),
	}
}

// amdPool is the memory that the device draws on. A discrete card has its VRAM only. An APU's driver uses VRAM and GTT
// alike, but GTT is a limit, not memory: it is capped by what the host has, and what is free of it by what the host has
// available. The parts stay visible because some engines use only one of them.
func amdPool(d hwprobe.Device, memory amdMemory, host hwprobe.Host) hwprobe.Pool {
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	total, free := memory.vramTotal, hwprobe.Sub(memory.vramTotal, memory.vramUsed)
	if d.Integrated.Or(false) {
		p.Kind = hwprobe.PoolUnified
		gttTotal := hwprobe.Least(memory.gttTotal, host.TotalBytes)
		gttFree := hwprobe.Least(hwprobe.Sub(memory.gttTotal, memory.gttUsed), host.AvailableBytes)
		p.Parts = []hwprobe.PoolPart{
			{Name: "vram", TotalBytes: total, FreeBytes: free},
			{Name: "gtt", BorrowedOf: hwprobe.HostPool, TotalBytes: gttTotal, FreeBytes: gttFree},
		}
		total, free = hwprobe.Sum(total, gttTotal), hwprobe.Sum(free, gttFree)
	}
	p.SetTotal(total, hwprobe.SourceAMDGPUSysfs)
	p.SetFree(free, hwprobe.SourceAMDGPUSysfs)
	return p
}

// amdAPUs are PCI ids of processors with graphics, from the public PCI id list. They say what a chip is, never how much
// memory it has.
var amdAPUs = map[string]string{
	"1002:9874": "Carrizo", "1002:98e4": "Stoney", "1002:15dd": "Raven Ridge", "1002:15d8": "Picasso",
	"1002:1636": "Renoir", "1002:164c": "Lucienne", "1002:1638": "Cezanne", "1002:15e7": "Barcelo",
	"1002:163f": "Van Gogh", "1002:1435": "Sephiroth", "1002:1506": "Mendocino", "1002:1681": "Rembrandt",
	"1002:164d": "Rembrandt", "1002:164e": "Raphael", "1002:13c0": "Granite Ridge", "1002:15bf": "Phoenix",
	"1002:15c8": "Phoenix 2", "1002:1900": "Hawk Point", "1002:1901": "Hawk Point 2", "1002:150e": "Strix Point",
	"1002:1586": "Strix Halo", "1002:1114": "Krackan Point",
}

// amdIntegrated tells an APU from a card. sysfs has no flag for it (KFD's local_mem_size is 0 for both), so it takes a
// sign that only one of the two has, and otherwise says unknown.
func amdIntegrated(root fs.FS, c drm.Card, memory amdMemory) hwprobe.Flag {
	if _, listed := amdAPUs[c.ID]; listed {
		return hwprobe.Known(true)
	}
	// KFD gives an APU's GTT limit as its memory, and a card's VRAM.
	if bank := kfdMemory(root, c.PCI); bank != (hwprobe.Bytes{}) && bank == memory.gttTotal && bank != memory.vramTotal {
		return hwprobe.Known(true)
	}
	fans, _ := fs.Glob(root, path.Join(c.Dir, "hwmon/hwmon*/fan1_input"))
	vendor := source.ReadText(root, path.Join(c.Dir, "mem_info_vram_vendor"))
	smallWindow := memory.visibleTotal != (hwprobe.Bytes{}) && memory.visibleTotal.Or(0) < memory.vramTotal.Or(0)
	if len(fans) > 0 || vendor != "" || smallWindow {
		return hwprobe.Known(false)
	}
	return hwprobe.Flag{}
}

// kfdMemory is the size of the first memory bank of the compute node at this PCI address.
func kfdMemory(root fs.FS, pci string) hwprobe.Bytes {
	nodes, _ := fs.Glob(root, "sys/class/kfd/kfd/topology/nodes/*/properties")
	for _, name := range nodes {
		properties := source.ReadText(root, name)
		location, err := strconv.ParseUint(source.FieldOf(properties, "location_id"), 10, 32)
		if err != nil || location == 0 { // 0 is a processor's node
			continue
		}
		domain := source.ParseUint(source.FieldOf(properties, "domain")).Or(0)
		address := fmt.Sprintf("%04x:%02x:%02x.%x", domain, location>>8, location>>3&0x1f, location&7)
		if address == pci {
			bank := source.ReadText(root, path.Join(path.Dir(name), "mem_banks/0/properties"))
			return source.ParseUint(source.FieldOf(bank, "size_in_bytes"))
		}
	}
	return hwprobe.Bytes{}
}

func amdName(root fs.FS, c drm.Card) string {
	if name := source.ReadText(root, path.Join(c.Dir, "product_name")); name != "" {
		return name
	}
	if chip, listed := amdAPUs[c.ID]; listed {
		return fmt.Sprintf("AMD Radeon (%s, %s)", chip, c.ID)
	}
	return fmt.Sprintf("AMD Radeon (%s)", c.ID)
}

// readHwmon returns the edge temperature in degrees Celsius and the power in watts. APUs and newer cards have
// power1_input where others have power1_average.
func readHwmon(root fs.FS, dir string) (temperature, power hwprobe.Number) {
	monitors, _ := fs.Glob(root, path.Join(dir, "hwmon/hwmon*"))
	for _, monitor := range monitors {
		temperature = source.ReadScaled(root, path.Join(monitor, "temp1_input"), 1e3)
		if power = source.ReadScaled(root, path.Join(monitor, "power1_average"), 1e6); power == (hwprobe.Number{}) {
			power = source.ReadScaled(root, path.Join(monitor, "power1_input"), 1e6)
		}
	}
	return temperature, power
}
