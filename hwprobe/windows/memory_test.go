package windows

import (
	"slices"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// llmfit#830: AdapterRAM says 4 GB of an R9700; its driver's 64 bits, here as bytes, say 32.
func TestACardsMemoryIsTheDriversNumberAndFreeIsWhatProgramsCanHave(t *testing.T) {
	key, device := driver("0000", "VEN_1002&DEV_7551&SUBSYS_12345678&REV_C0", "3,0,0", RegistryValue{Hex: "0000000008000000"})
	f := pc{dxgi: []Adapter{{VendorID: 0x1002, DeviceID: 0x7551, SubSysID: 0x12345678, DedicatedVideo: mib(32500), SharedSystem: gib(16), LUID: 0x1532a}},
		kernel: []KernelAdapter{at(0x1532a, 3)}, registry: map[string][]RegistryKey{keyDisplays: {key}, keyPCI: {device}},
		counters: counters(map[string][2]int64{"luid_0x00000000_0x0001532A_phys_0": {1000 << 20, 77}})}.probe(t)
	d, p := only(t, f)
	want := hwprobe.Device{ID: "gpu:0000:03:00.0", Vendor: hwprobe.AMD, Name: "driver 0000", PCI: "0000:03:00.0", LUID: "0x00000000_0x0001532a",
		Integrated: hwprobe.Known(false), Driver: "32.0.0000", State: hwprobe.StateOK, Pool: "gpu:0000:03:00.0"}
	if d != want || len(f.Warnings) != 0 {
		t.Errorf("got %+v, %v\nwant %+v", d, f.Warnings, want)
	}
	if p.TotalBytes != gib(32) || p.TotalSource != hwprobe.SourceRegistry || p.FreeBytes != mib(31500) || p.FreeSource != hwprobe.SourcePDH || p.Kind != hwprobe.PoolOfDevice || p.Parts != nil {
		t.Errorf("pool %+v, want 32 GiB of which 32500-1000 MiB are free: total less use would give away the driver's reserve", p)
	}
}

// fastfetch#1621: 8 GB set aside made a tool call it a card. winml-cli#1421 has an 860M with 512 MiB.
func TestProcessorsGraphicsUseWhatWasSetAsideAndSomeOfTheHosts(t *testing.T) {
	machine := pc{dxgi: []Adapter{{VendorID: 0x1002, DeviceID: 0x1586, DedicatedVideo: hwprobe.Known[uint64](8354103296), DedicatedSystem: gib(0), SharedSystem: hwprobe.Known[uint64](12696061952), LUID: 1}},
		counters: counters(map[string][2]int64{"luid_0x00000000_0x00000001_phys_0": {947 << 20, 141 << 20}}),
		host:     hwprobe.Host{TotalBytes: hwprobe.Known[uint64](25392123904), AvailableBytes: gib(6)}}
	d, p := only(t, machine.probe(t))
	if d.Integrated != hwprobe.Known(true) || p.Kind != hwprobe.PoolUnified || p.TotalBytes != hwprobe.Known[uint64](21050165248) || p.TotalSource != hwprobe.SourceDXGI {
		t.Errorf("%+v on %+v, want unified with both parts", d, p)
	}
	want := []hwprobe.PoolPart{
		{Name: "vram", TotalBytes: hwprobe.Known[uint64](8354103296), FreeBytes: hwprobe.Known[uint64](8354103296 - 947<<20)},
		{Name: "shared", BorrowedOf: hwprobe.HostPool, TotalBytes: hwprobe.Known[uint64](12696061952), FreeBytes: gib(6)}, // no more than the host has
	}
	if !slices.Equal(p.Parts, want) || p.FreeBytes != hwprobe.Known[uint64](8354103296-947<<20+6<<30) {
		t.Errorf("free %v of parts %+v, want %+v", p.FreeBytes, p.Parts, want)
	}
	machine.host = hwprobe.Host{TotalBytes: gib(8), AvailableBytes: gib(2)} // what may be borrowed is a limit, not memory
	if _, p := only(t, machine.probe(t)); p.Parts[1].TotalBytes != gib(8) || p.Parts[1].FreeBytes != gib(2) {
		t.Errorf("parts %+v, want the second one capped by the host", p.Parts)
	}
}

// ollama#17271 on Windows' side: 96 GiB set aside are not the host's, so what the host has left does not cap them.
func TestASetAsidePartIsNotCappedByTheHost(t *testing.T) {
	_, p := only(t, pc{dxgi: []Adapter{{VendorID: 0x1002, DeviceID: 0x1586, DedicatedVideo: gib(96), SharedSystem: gib(15), LUID: 1}},
		counters: counters(map[string][2]int64{"luid_0x00000000_0x00000001_phys_0": {0, 0}}), host: hwprobe.Host{TotalBytes: gib(31), AvailableBytes: gib(16)}}.probe(t))
	if p.Parts[0].FreeBytes != gib(96) || p.FreeBytes != gib(111) {
		t.Errorf("free %v, parts %+v", p.FreeBytes, p.Parts)
	}
}

// lemonade#2648: DXGI's own use is the asking process's. Without the counters free is unknown, not total.
func TestWithoutCountersFreeIsUnknown(t *testing.T) {
	for name, values := range map[string]map[string][]CounterValue{
		"no counters":         nil,
		"of another adapter":  counters(map[string][2]int64{"luid_0x00000000_0x00000002_phys_0": {0, 0}}),
		"of another boot":     counters(map[string][2]int64{"luid_0x00000001_0x00000001_phys_0": {0, 0}}),
		"a bad value":         {dedicatedUsage: {{Instance: "luid_0x00000000_0x00000001_phys_0", Status: 0xc0000bba, Value: 0}}},
		"a negative value":    {dedicatedUsage: {{Instance: "luid_0x00000000_0x00000001_phys_0", Value: -1}}},
		"a bad linked part":   {dedicatedUsage: {{Instance: "luid_0x00000000_0x00000001_phys_0", Value: 1}, {Instance: "luid_0x00000000_0x00000001_phys_1", Status: 2}}},
		"no instance's name":  {dedicatedUsage: {{Instance: "_Total", Value: 1}}},
		"the shared use only": {sharedUsage: {{Instance: "luid_0x00000000_0x00000001_phys_0", Value: 1}}},
	} {
		_, p := only(t, pc{dxgi: []Adapter{{VendorID: 0x1002, DeviceID: 0x744c, DedicatedVideo: gib(20), LUID: 1}}, counters: values}.probe(t))
		if p.FreeBytes != (hwprobe.Bytes{}) || p.TotalBytes != gib(20) {
			t.Errorf("%s: free %v of %v, want unknown of 20 GiB", name, p.FreeBytes, p.TotalBytes)
		}
	}
}

func TestLinkedCardsAreAddedUpAndUseBeyondTheTotalIsNoneFree(t *testing.T) {
	machine := pc{dxgi: []Adapter{{VendorID: 0x1002, DeviceID: 0x744c, DedicatedVideo: gib(20), LUID: 1}},
		counters: counters(map[string][2]int64{"luid_0x00000000_0x00000001_phys_0": {3 << 30, 0}, "luid_0x00000000_0x00000001_phys_1": {4 << 30, 0}})}
	if _, p := only(t, machine.probe(t)); p.FreeBytes != gib(13) {
		t.Errorf("free %v, want 20-3-4 GiB", p.FreeBytes)
	}
	machine.counters = counters(map[string][2]int64{"luid_0x00000000_0x00000001_phys_0": {21 << 30, 0}})
	if _, p := only(t, machine.probe(t)); p.FreeBytes != gib(0) {
		t.Errorf("free %v, want a known zero", p.FreeBytes)
	}
}

// oshi#3086: no dedicated memory is a legal answer, and nothing may be put in its place.
func TestNoDedicatedMemoryIsAnAnswer(t *testing.T) {
	chip, p := only(t, pc{dxgi: []Adapter{{VendorID: 0x8086, DeviceID: 0x4680, DedicatedVideo: gib(0), SharedSystem: gib(8), LUID: 1}}, host: hwprobe.Host{TotalBytes: gib(16)}}.probe(t))
	if chip.Integrated != hwprobe.Known(true) || p.TotalBytes != gib(8) || p.Parts[0].TotalBytes != gib(0) {
		t.Errorf("%+v on %+v", chip, p)
	}
	card, p := only(t, pc{dxgi: []Adapter{{VendorID: 0x1002, DeviceID: 0x744c, DedicatedVideo: gib(0), LUID: 1}}}.probe(t))
	if p.TotalBytes != (hwprobe.Bytes{}) || card.State != hwprobe.StateDegraded {
		t.Errorf("a card without memory is %s with %v", card.State, p.TotalBytes)
	}
}
