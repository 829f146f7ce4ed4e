// Package amd reads AMD's graphics cards and processors with graphics: the files of the amdgpu driver on Linux, and the
// vendor's command-line tools where those files are hidden.
package amd

import (
	"context"
	"fmt"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const pciVendor = "0x1002"

// Probe reads the amdgpu driver's files, which need no rights. Where they tell no memory, such as in a container without
// /sys, it asks rocm-smi and amd-smi. It wakes no sleeping card.
func Probe(ctx context.Context, m source.Machine, host hwprobe.Host) hwprobe.Findings {
	var f hwprobe.Findings
	nodes := kfdNodes(m.Files)
	var units []unit
	for _, c := range drm.Cards(m.Files, pciVendor) {
		units = append(units, readUnit(ctx, m, c, nodes))
	}
	if needTools(m, units) {
		units = withTools(ctx, m, units, &f)
	}
	for _, u := range units {
		add(&f, u, parts(u, nodes), host)
	}
	return f
}

// unit is one physical card or processor with graphics, from whatever source.
type unit struct {
	device  hwprobe.Device
	id      string // PCI vendor and device, "1002:73bf"
	memory  memory
	source  hwprobe.Source // of the memory
	devices int            // how many compute devices it is split into, where the source counts them; 0: not told
	why     string         // why the memory is unknown, where that is known
}

func readUnit(ctx context.Context, m source.Machine, c drm.Card, nodes []kfdNode) unit {
	u := unit{id: c.ID, source: hwprobe.SourceAMDGPUSysfs, memory: readMemory(m.Files, c)}
	u.device = hwprobe.Device{ID: c.DeviceID(), Vendor: hwprobe.AMD, PCI: c.PCI, Driver: c.Driver, State: hwprobe.StateOK, Name: cardName(m.Files, c)}
	u.device.UUID = uniqueID(m.Files, c)
	u.device.Integrated = integrated(ctx, m, c, u.memory, nodes)
	if c.Asleep {
		u.device.State = hwprobe.StateAsleep // the sensors' files would wake it
		return u
	}
	u.device.Utilisation = utilisation(m.Files, c)
	u.device.Temperature = c.Temperature(m.Files, "edge")
	u.device.Power = c.Power(m.Files)
	return u
}

// add puts a unit into the findings with one pool: as one device, or as one for each of its compute partitions. Their memory is
// the card's and must not be counted for each.
func add(f *hwprobe.Findings, u unit, partitions int, host hwprobe.Host) {
	d := u.device
	d.Pool = d.ID
	p := pool(d, u.memory, u.source, host)
	if partitions > 1 {
		d = partition(d, 0, partitions)
	}
	switch {
	case u.id == idMI300A:
		// Its one memory is the processor's, too, and no recorded machine shows how the driver counts it.
		d.State, p = hwprobe.StateUnsupported, hwprobe.Pool{ID: p.ID, Kind: p.Kind}
		f.Warn(hwprobe.WarnUnsupportedGPU, d.ID, d.Name+": processor and graphics share one memory in a way that this version cannot judge",
			"send the folder that `loopkeeper probe --raw` writes with a bug report")
	case p.TotalBytes == hwprobe.Bytes{}:
		if d.State == hwprobe.StateOK {
			d.State = hwprobe.StateDegraded
		}
		message, next := whyUnknown(d, u, host)
		f.Warn(hwprobe.WarnMemoryUnknown, d.ID, message, next)
	case carveOutHidden(d, u.memory, host):
		f.Warn(hwprobe.WarnPartOfPool, d.ID, fmt.Sprintf("%s: on Linux %s, older than 6.16.9, ROCm sees only the %v bytes of GTT, not the %v bytes set aside as VRAM; Vulkan sees both",
			d.Name, host.Kernel, u.memory.gttTotal, u.memory.vramTotal),
			"upgrade to Linux 6.16.9 or newer, use a Vulkan engine, or make the firmware's VRAM carve-out small")
	}
	f.Add(d, p)
	for i := 1; i < partitions; i++ {
		part := partition(u.device, i, partitions)
		part.State, part.Pool = d.State, d.Pool
		f.Add(part, p)
	}
}

// partition is one of the compute devices that a card is split into. What the whole card does says nothing about it; how hot
// the chip is does.
func partition(card hwprobe.Device, number, of int) hwprobe.Device {
	card.Pool, card.ID = card.ID, fmt.Sprintf("%s/part%d", card.ID, number)
	card.Partition = fmt.Sprintf("part %d of %d", number+1, of)
	card.Utilisation, card.Power = hwprobe.Number{}, hwprobe.Number{}
	return card
}

// parts is how many compute devices a unit is: the compute driver's nodes at its address, else what the tool counted.
func parts(u unit, nodes []kfdNode) int {
	n := 0
	for _, node := range nodes {
		if u.device.PCI != "" && node.pci == u.device.PCI {
			n++
		}
	}
	return max(n, u.devices)
}

// whyUnknown says why a unit's memory is unknown, and what to do about it.
func whyUnknown(d hwprobe.Device, u unit, host hwprobe.Host) (message, next string) {
	switch {
	case u.why != "":
		return d.Name + ": " + u.why, "make /sys visible to this process, or pin the memory's size in the worker's configuration"
	case d.Driver == "radeon":
		return d.Name + ": its driver is radeon, which does not tell the memory's size",
			"boot with radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1 if the card can use amdgpu"
	case older(host.Kernel, 5, 1, 0):
		return fmt.Sprintf("%s: on Linux %s, older than 5.1, amdgpu does not tell the memory's size", d.Name, host.Kernel), "upgrade to Linux 5.1 or newer"
	case d.Integrated.Or(false) && u.memory.vramTotal != hwprobe.Bytes{}:
		return d.Name + ": it shares the host's memory, and the host does not tell how much it has", "make /proc/meminfo readable to this process"
	}
	return fmt.Sprintf("%s: the driver %q does not tell the memory's size", d.Name, d.Driver),
		"use the amdgpu driver on Linux 5.1 or newer, and make /sys visible to this process"
}
