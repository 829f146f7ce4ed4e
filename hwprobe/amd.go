package hwprobe

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
)

const pciVendorAMD = "0x1002"

// probeAMD reads the amdgpu driver's files. They exist since Linux 5.1 and need no rights.
func probeAMD(_ context.Context, m machine) findings {
	var f findings
	for _, c := range drmCards(m.root, pciVendorAMD) {
		d := Device{ID: c.deviceID(), Vendor: AMD, PCI: c.pci, Driver: c.driver, State: StateOK, Name: amdName(m.root, c)}
		d.Pool = d.ID
		memory := readAMDMemory(m.root, c)
		d.Integrated = amdIntegrated(m.root, c, memory)
		if c.asleep {
			d.State = StateAsleep // the files below would wake it
		} else {
			d.Utilisation = readScaled(m.root, path.Join(c.dir, "gpu_busy_percent"), 1)
			d.Temperature, d.Power = readHwmon(m.root, c.dir)
		}
		p := amdPool(d, memory, m.host)
		if p.TotalBytes == (Bytes{}) {
			d.State = StateDegraded
			f.warn(WarnMemoryUnknown, d.ID, fmt.Sprintf("%s: the driver %q does not tell the memory size", d.Name, c.driver),
				"use the amdgpu driver on Linux 5.1 or newer, and make /sys visible to this process")
		}
		f.add(d, p)
	}
	return f
}

// amdMemory is what amdgpu tells: VRAM is memory of the device's own (on an APU set aside by the firmware, outside
// MemTotal), GTT is host memory that the device may map.
type amdMemory struct {
	vramTotal, vramUsed, visibleTotal, gttTotal, gttUsed Bytes
}

func readAMDMemory(root fs.FS, c card) amdMemory {
	read := func(name string) Bytes { return readUint(root, path.Join(c.dir, "mem_info_"+name)) }
	return amdMemory{
		vramTotal: read("vram_total"), vramUsed: read("vram_used"), visibleTotal: read("vis_vram_total"),
		gttTotal: read("gtt_total"), gttUsed: read("gtt_used"),
	}
}

// amdPool is the memory that the device draws on. A discrete card has its VRAM only. An APU's driver uses VRAM and GTT
// alike, but GTT is a limit, not memory: it is capped by what the host has, and what is free of it by what the host has
// available. The parts stay visible because some engines use only one of them.
func amdPool(d Device, memory amdMemory, host Host) Pool {
	p := Pool{ID: d.ID, Kind: PoolOfDevice}
	total, free := memory.vramTotal, subtract(memory.vramTotal, memory.vramUsed)
	if d.Integrated.Or(false) {
		p.Kind = PoolUnified
		gttTotal := smaller(memory.gttTotal, host.TotalBytes)
		gttFree := smaller(subtract(memory.gttTotal, memory.gttUsed), host.AvailableBytes)
		p.Parts = []PoolPart{
			{Name: "vram", TotalBytes: total, FreeBytes: free},
			{Name: "gtt", BorrowedOf: HostPool, TotalBytes: gttTotal, FreeBytes: gttFree},
		}
		total, free = sum(total, gttTotal), sum(free, gttFree)
	}
	setBytes(&p.TotalBytes, &p.TotalSource, total, SourceAMDGPUSysfs)
	setBytes(&p.FreeBytes, &p.FreeSource, free, SourceAMDGPUSysfs)
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
func amdIntegrated(root fs.FS, c card, memory amdMemory) Flag {
	if _, listed := amdAPUs[c.id]; listed {
		return Known(true)
	}
	// KFD gives an APU's GTT limit as its memory, and a card's VRAM.
	if bank := kfdMemory(root, c.pci); bank != (Bytes{}) && bank == memory.gttTotal && bank != memory.vramTotal {
		return Known(true)
	}
	fans, _ := fs.Glob(root, path.Join(c.dir, "hwmon/hwmon*/fan1_input"))
	vendor := readText(root, path.Join(c.dir, "mem_info_vram_vendor"))
	smallWindow := memory.visibleTotal != (Bytes{}) && memory.visibleTotal.Or(0) < memory.vramTotal.Or(0)
	if len(fans) > 0 || vendor != "" || smallWindow {
		return Known(false)
	}
	return Flag{}
}

// kfdMemory is the size of the first memory bank of the compute node at this PCI address.
func kfdMemory(root fs.FS, pci string) Bytes {
	nodes, _ := fs.Glob(root, "sys/class/kfd/kfd/topology/nodes/*/properties")
	for _, name := range nodes {
		properties := readText(root, name)
		location, err := strconv.ParseUint(fieldOf(properties, "location_id"), 10, 32)
		if err != nil || location == 0 { // 0 is a processor's node
			continue
		}
		domain := parseUint(fieldOf(properties, "domain")).Or(0)
		address := fmt.Sprintf("%04x:%02x:%02x.%x", domain, location>>8, location>>3&0x1f, location&7)
		if address == pci {
			bank := readText(root, path.Join(path.Dir(name), "mem_banks/0/properties"))
			return parseUint(fieldOf(bank, "size_in_bytes"))
		}
	}
	return Bytes{}
}

func amdName(root fs.FS, c card) string {
	if name := readText(root, path.Join(c.dir, "product_name")); name != "" {
		return name
	}
	if chip, listed := amdAPUs[c.id]; listed {
		return fmt.Sprintf("AMD Radeon (%s, %s)", chip, c.id)
	}
	return fmt.Sprintf("AMD Radeon (%s)", c.id)
}

// readHwmon returns the edge temperature in degrees Celsius and the power in watts. APUs and newer cards have
// power1_input where others have power1_average.
func readHwmon(root fs.FS, dir string) (temperature, power Number) {
	monitors, _ := fs.Glob(root, path.Join(dir, "hwmon/hwmon*"))
	for _, monitor := range monitors {
		temperature = readScaled(root, path.Join(monitor, "temp1_input"), 1e3)
		if power = readScaled(root, path.Join(monitor, "power1_average"), 1e6); power == (Number{}) {
			power = readScaled(root, path.Join(monitor, "power1_input"), 1e6)
		}
	}
	return temperature, power
}

// both applies f where both numbers are known; otherwise the result is unknown.
func both(a, b Bytes, f func(a, b uint64) uint64) Bytes {
	x, knowsX := a.Value()
	y, knowsY := b.Value()
	if !knowsX || !knowsY {
		return Bytes{}
	}
	return Known(f(x, y))
}

func subtract(a, b Bytes) Bytes { return both(a, b, minus) }

func smaller(a, b Bytes) Bytes { return both(a, b, func(x, y uint64) uint64 { return min(x, y) }) }

func sum(a, b Bytes) Bytes { return both(a, b, func(x, y uint64) uint64 { return x + y }) }
