// Package windows reads the graphics adapters of a Windows machine. Its calls fetch what Windows says, number by number; what
// follows from that is decided here, in code that runs everywhere.
package windows

import (
	"context"
	"fmt"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/pciids"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Probe lists the adapters that DXGI tells, or DirectX' records in the registry where DXGI does not answer. It lists NVIDIA's
// too: the report takes them from here only where nvidia-smi does not tell the card at the same address.
func Probe(ctx context.Context, m source.Machine, host hwprobe.Host) hwprobe.Findings {
	var f hwprobe.Findings
	if m.OS != "windows" {
		return f
	}
	kernel := readKernel(ctx, m.Calls)
	adapters, err := readAdapters(ctx, m.Calls, kernel)
	if err != nil {
		f.Warn(hwprobe.WarnGPUsUnreadable, "", "Windows does not list its graphics adapters: "+err.Error(),
			"run dxdiag on this machine and see whether it lists them; reinstall the graphics driver if it does not")
		return f
	}
	pair(adapters, readDisplays(ctx, m.Calls))
	used := readUsage(ctx, m.Calls)
	seen := map[string]bool{}
	for i, a := range adapters {
		d := describe(i, a, m.Arch)
		if seen[d.ID] { // one chip that Windows shows as two adapters is memory once
			continue
		}
		seen[d.ID] = true
		add(&f, d, a, used[a.LUID], host)
	}
	return f
}

// describe makes a device of an adapter. The address is the better id: LUIDs change when the driver restarts.
func describe(index int, a adapter, arch string) hwprobe.Device {
	d := hwprobe.Device{Vendor: vendors[a.VendorID], Name: a.name(), PCI: a.pci, Driver: a.display.version, State: hwprobe.StateOK}
	if d.Vendor == "" {
		d.Vendor = hwprobe.OtherVendor
	}
	if a.LUID != 0 {
		d.LUID = hwprobe.LUID(int32(a.LUID>>32), uint32(a.LUID))
	}
	switch {
	case d.PCI != "":
		d.ID = "gpu:" + d.PCI
	case d.LUID != "":
		d.ID = "gpu:" + d.LUID
	default:
		d.ID = fmt.Sprintf("gpu:adapter%d", index)
	}
	d.Integrated = integrated(a, arch)
	d.Pool = d.ID
	if d.Integrated.Or(false) && !a.tellsMemory() {
		d.Pool = hwprobe.HostPool // what it uses is the host's, and nothing tells a limit
	}
	return d
}

var vendors = map[uint32]hwprobe.Vendor{pciids.NVIDIA: hwprobe.NVIDIA, pciids.AMD: hwprobe.AMD, pciids.Intel: hwprobe.Intel}

func add(f *hwprobe.Findings, d hwprobe.Device, a adapter, used usage, host hwprobe.Host) {
	p := poolOf(d, a, used, host)
	switch {
	case d.Vendor == hwprobe.NVIDIA && d.PCI == "":
		d.State = hwprobe.StateUnsupported // placing on both would use its memory twice
		f.Warn(hwprobe.WarnUnsupportedGPU, d.ID, d.Name+": Windows does not tell where it sits, so it may be one of the cards that nvidia-smi tells",
			"use the card that nvidia-smi tells; where nvidia-smi is missing, reinstall NVIDIA's driver")
	case d.Vendor == hwprobe.OtherVendor && d.Integrated == (hwprobe.Flag{}):
		d.State = hwprobe.StateUnsupported
		f.Warn(hwprobe.WarnUnsupportedGPU, d.ID, fmt.Sprintf("%s: this version does not know its vendor (%04x) and cannot say whose memory it uses", d.Name, a.VendorID),
			"hide the device in the configuration, or attach a recording of this machine (loopkeeper probe --raw) to a bug report")
	case d.Pool != hwprobe.HostPool && p.TotalBytes == (hwprobe.Bytes{}):
		d.State = hwprobe.StateDegraded
		f.Warn(hwprobe.WarnMemoryUnknown, d.ID, d.Name+": Windows does not tell how much memory it has",
			"reinstall the graphics driver, or pin the pool's total in the configuration")
	}
	f.Add(d, p)
}
