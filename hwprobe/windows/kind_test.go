package windows

import (
	"slices"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

func TestProcessorsGraphicsAreToldFromCardsButNotBySize(t *testing.T) {
	processor, card, unknown := hwprobe.Known(true), hwprobe.Known(false), hwprobe.Flag{}
	discrete, shared := uint32(kindHybridDiscrete|3), uint32(kindHybridIntegrated|3)
	for name, c := range map[string]struct {
		a    adapter
		arch string
		want hwprobe.Flag
	}{
		"8060S with 96 GiB set aside":           {adapter{Adapter: Adapter{VendorID: 0x1002, DeviceID: 0x1586, DedicatedVideo: gib(96)}}, "amd64", processor},
		"a card with 1 GiB":                     {adapter{Adapter: Adapter{VendorID: 0x1002, DeviceID: 0x6611, DedicatedVideo: gib(1)}}, "amd64", card},
		"Arc 140V":                              {adapter{Adapter: Adapter{VendorID: 0x8086, DeviceID: 0x64a0, DedicatedVideo: mib(128)}}, "amd64", processor},
		"Arc A770":                              {adapter{Adapter: Adapter{VendorID: 0x8086, DeviceID: 0x56a0}}, "amd64", card},
		"NVIDIA's in a PC":                      {adapter{Adapter: Adapter{VendorID: 0x10de, DeviceID: 0x2684}}, "amd64", card},
		"NVIDIA's on Arm may be unified":        {adapter{Adapter: Adapter{VendorID: 0x10de, DeviceID: 0x31c2, DedicatedVideo: mib(8128)}}, "arm64", unknown},
		"Adreno":                                {adapter{Adapter: Adapter{VendorID: vendorQualcommACPI, DeviceID: 0x36334330}}, "arm64", processor},
		"an Intel on the root bus, not listed":  {adapter{Adapter: Adapter{VendorID: 0x8086, DeviceID: 0xf123}, pci: "0000:00:02.0"}, "amd64", processor},
		"an Intel behind a bridge, not listed":  {adapter{Adapter: Adapter{VendorID: 0x8086, DeviceID: 0xf123}, pci: "0000:03:00.0"}, "amd64", card},
		"a laptop's card, not listed":           {adapter{Adapter: Adapter{VendorID: 0x1002, DeviceID: 0x8123}, kind: &discrete}, "amd64", card},
		"a laptop's processor, not listed":      {adapter{Adapter: Adapter{VendorID: 0x1002, DeviceID: 0x8123}, kind: &shared}, "amd64", processor},
		"no memory of its own":                  {adapter{Adapter: Adapter{VendorID: 0x1ed5, DeviceID: 1, DedicatedVideo: gib(0), SharedSystem: gib(8)}}, "amd64", processor},
		"sizes alone say nothing":               {adapter{Adapter: Adapter{VendorID: 0x1002, DeviceID: 0x8123, DedicatedVideo: mib(512), SharedSystem: gib(16)}}, "amd64", unknown},
		"an id that is not told":                {adapter{Adapter: Adapter{VendorID: 0x1002}}, "amd64", unknown},
		"an id beyond PCI's that ends like one": {adapter{Adapter: Adapter{VendorID: 0x1002, DeviceID: 0x11586}}, "amd64", unknown},
	} {
		if got := integrated(c.a, c.arch); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// flowframes#127: tools that took the first adapter took a virtual one.
func TestAdaptersWithoutAChipAreNoDevices(t *testing.T) {
	software, indirect := uint32(kindSoftware|1), uint32(kindIndirectDisplay|2)
	f := pc{dxgi: []Adapter{
		{Description: "Microsoft Basic Render Driver", VendorID: 0x1414, DeviceID: 0x8c, SharedSystem: gib(16), LUID: 94260},
		{Description: "Microsoft Remote Display Adapter", VendorID: 0x1414, LUID: 2},
		{Description: "a remote session's", VendorID: 0x1002, Flags: flagRemote, LUID: 3},
		{Description: "a software renderer", VendorID: 0x8086, Flags: flagSoftware, LUID: 4},
		{Description: "VMware SVGA 3D", VendorID: 0x15ad, DeviceID: 0x405, DedicatedVideo: gib(1), LUID: 5},
		{Description: "told by the kernel alone", VendorID: 0x1002, LUID: 6},
		{Description: "Parsec Virtual Display Adapter", VendorID: 0x1002, LUID: 7},
		{Description: "no vendor", LUID: 8},
	}, kernel: []KernelAdapter{{LUID: 6, Type: &software}, {LUID: 7, Type: &indirect}}}.probe(t)
	if len(f.Devices) != 0 || len(f.Warnings) != 0 {
		t.Errorf("devices %+v, warnings %v; want none", f.Devices, f.Warnings)
	}
}

func TestAVendorThatIsNotKnownIsShownAndNotOffered(t *testing.T) {
	f := pc{dxgi: []Adapter{{Description: "MTT S80", VendorID: 0x1ed5, DeviceID: 0x0201, DedicatedVideo: gib(16), LUID: 1}}}.probe(t)
	if d, _ := only(t, f); d.Vendor != hwprobe.OtherVendor || d.State != hwprobe.StateUnsupported || !slices.Equal(codes(f), []hwprobe.WarningCode{hwprobe.WarnUnsupportedGPU}) {
		t.Errorf("%+v, warnings %v", d, codes(f))
	}
}

func TestAnNVIDIACardThatMayBeNVIDIASMIsIsNotOfferedTwice(t *testing.T) {
	f := pc{dxgi: []Adapter{{Description: "NVIDIA GeForce RTX 4090", VendorID: 0x10de, DeviceID: 0x2684, DedicatedVideo: gib(24), LUID: 1}}}.probe(t)
	if d, _ := only(t, f); d.State != hwprobe.StateUnsupported || len(f.Warnings) != 1 {
		t.Errorf("%+v, warnings %v; nothing tells where it sits, so it cannot be paired", d, f.Warnings)
	}
}
