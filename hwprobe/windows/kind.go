package windows

import (
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/pciids"
)

// Vendor ids that DXGI gives besides those of pciids.
const (
	vendorMicrosoft    = 0x1414
	vendorQualcomm     = 0x5143
	vendorQualcommACPI = 0x4d4f4351 // "QCOM": Windows on Arm names vendors by their ACPI id
)

// notAccelerators are vendors whose adapters draw a screen without a chip that computes: Windows' own Basic Render Driver and
// Remote Display, and those of VMware, VirtualBox, QEMU and virtio.
var notAccelerators = map[uint32]bool{0: true, vendorMicrosoft: true, 0x15ad: true, 0x80ee: true, 0x1234: true, 0x1b36: true, 0x1af4: true}

// The kernel's type bits, D3DKMT_ADAPTERTYPE.
const (
	kindSoftware         = 1 << 2
	kindHybridDiscrete   = 1 << 4
	kindHybridIntegrated = 1 << 5
	kindIndirectDisplay  = 1 << 6 // a display without a GPU, such as Parsec's
)

// skipped says that an adapter is no accelerator.
func skipped(a adapter) bool {
	return notAccelerators[a.VendorID] || a.Flags&(flagRemote|flagSoftware) != 0 || a.is(kindSoftware|kindIndirectDisplay)
}

func (a adapter) is(kind uint32) bool { return a.kind != nil && *a.kind&kind != 0 }

// integrated tells a processor's graphics from a card: by what the chip is, then by signs that only one of the two has. The
// sizes are none of them: the firmware can set aside 96 GiB for a processor's graphics, and cards with 1 GiB are sold.
func integrated(a adapter, arch string) hwprobe.Flag {
	switch {
	case a.VendorID == vendorQualcomm || a.VendorID == vendorQualcommACPI:
		return hwprobe.Known(true) // they make processors only
	case a.VendorID == pciids.NVIDIA && arch == "amd64":
		return hwprobe.Known(false) // NVIDIA's unified devices are all ARM systems
	}
	if a.VendorID <= 0xffff && a.DeviceID <= 0xffff && a.DeviceID != 0 {
		if flag := pciids.Integrated(uint16(a.VendorID), uint16(a.DeviceID)); flag != (hwprobe.Flag{}) {
			return flag
		}
	}
	switch {
	case a.VendorID == pciids.Intel && a.pci != "":
		return hwprobe.Known(strings.HasPrefix(a.pci, "0000:00:")) // on the root bus; a card is behind a bridge
	case a.is(kindHybridIntegrated):
		return hwprobe.Known(true)
	case a.is(kindHybridDiscrete):
		return hwprobe.Known(false)
	case a.DedicatedVideo == hwprobe.Known[uint64](0) && a.SharedSystem.Or(0) > 0:
		return hwprobe.Known(true) // no card is without memory of its own
	}
	return hwprobe.Flag{}
}
