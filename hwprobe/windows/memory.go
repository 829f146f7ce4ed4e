package windows

import "github.com/loopkeeper/loopkeeper/hwprobe"

// poolOf is the memory that an adapter draws on. A card has its own. A processor's graphics have what the firmware set aside
// for them, which is not the host's, and may use some of the host's: the rule of an APU on Linux.
func poolOf(d hwprobe.Device, a adapter, used usage, host hwprobe.Host) hwprobe.Pool {
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	if d.Integrated.Or(false) {
		p.Kind = hwprobe.PoolUnified
		p.Parts = parts(a, used, host)
		p.SetTotal(hwprobe.Sum(p.Parts[0].TotalBytes, p.Parts[1].TotalBytes), a.from)
		p.SetFree(hwprobe.Sum(p.Parts[0].FreeBytes, p.Parts[1].FreeBytes), hwprobe.SourcePDH)
		return p
	}
	total, from := a.chips()
	p.SetTotal(total, from)
	p.SetFree(hwprobe.Least(total, a.freeDedicated(used)), hwprobe.SourcePDH)
	return p
}

func parts(a adapter, used usage, host hwprobe.Host) []hwprobe.PoolPart {
	aside := a.dedicated()
	if aside == (hwprobe.Bytes{}) {
		aside = a.display.memory
	}
	return []hwprobe.PoolPart{
		{Name: "vram", TotalBytes: aside, FreeBytes: hwprobe.Sub(aside, used.dedicated)},
		{Name: "shared", BorrowedOf: hwprobe.HostPool,
			TotalBytes: hwprobe.Least(a.SharedSystem, host.TotalBytes),
			FreeBytes:  hwprobe.Least(hwprobe.Sub(a.SharedSystem, used.shared), host.AvailableBytes)},
	}
}

// chips is how much memory a card has: what its driver wrote into the registry, which equals nvidia-smi to the byte, else
// what DXGI leaves of it. Zero is no card's memory.
func (a adapter) chips() (hwprobe.Bytes, hwprobe.Source) {
	switch {
	case hwprobe.Size(a.display.memory) != hwprobe.Bytes{}:
		return a.display.memory, hwprobe.SourceRegistry
	case hwprobe.Size(a.dedicated()) != hwprobe.Bytes{}:
		return a.dedicated(), a.from
	}
	return hwprobe.Bytes{}, ""
}

// freeDedicated is what all processes leave of the dedicated memory that programs can have. The chips' size would hide what
// the driver keeps.
func (a adapter) freeDedicated(used usage) hwprobe.Bytes {
	return hwprobe.Sub(a.dedicated(), used.dedicated)
}
