package apple

import (
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

func TestAClaimOnTheGPUCountsInMainMemoryToo(t *testing.T) {
	d, p := only(t, mac{metal: silicon(gib(72)), prints: map[string]string{"ioreg": ioregM4, "vm_stat": vmStat}, host: hwprobe.Host{TotalBytes: gib(96)}}.probe(t))
	want := []hwprobe.PoolPart{{Name: "shared", BorrowedOf: hwprobe.HostPool, TotalBytes: p.TotalBytes, FreeBytes: p.FreeBytes}}
	if p.Kind != hwprobe.PoolUnified || d.Pool != p.ID || !slices.Equal(p.Parts, want) || d.Integrated != hwprobe.Known(true) {
		t.Errorf("device %+v on pool %+v, want all of it borrowed of the host", d, p)
	}
}

func TestReadingsOfAnAppleGPU(t *testing.T) {
	f := mac{metal: silicon(gib(72)), prints: map[string]string{"ioreg": ioregM4, "vm_stat": vmStat}, host: hwprobe.Host{TotalBytes: gib(96)}}.probe(t)
	d, p := only(t, f)
	want := hwprobe.Device{ID: "gpu:apple-m2-max", Vendor: hwprobe.Apple, Name: "Apple M2 Max (10-core GPU)", Integrated: hwprobe.Known(true),
		State: hwprobe.StateOK, Pool: "gpu:apple-m2-max", Utilisation: hwprobe.Known(21.0)}
	if d != want || len(f.Warnings) != 0 {
		t.Errorf("got %+v, %v\nwant %+v", d, f.Warnings, want)
	}
	if p.TotalBytes != gib(72) || p.TotalSource != hwprobe.SourceMetal {
		t.Errorf("total %v from %q, want Metal's", p.TotalBytes, p.TotalSource)
	}
}

// ollama's log: "metal never updates free VRAM". Metal tells what the asking process has allocated, which is nothing here.
func TestFreeIsNotWhatThisProcessLeaves(t *testing.T) {
	busy := strings.Replace(ioregM4, `"In use system memory"=351141888`, `"In use system memory"=21474836480`, 1)
	pages := strings.Replace(vmStat, "Pages inactive:                               915780.", "Pages inactive: 9157800.", 1)
	_, p := only(t, mac{metal: silicon(gib(72)), prints: map[string]string{"ioreg": busy, "vm_stat": pages}, host: hwprobe.Host{TotalBytes: gib(96)}}.probe(t))
	if p.FreeBytes != gib(52) || p.FreeSource != hwprobe.SourceIORegistry {
		t.Errorf("free %v from %q, want the limit less 20 GiB that all processes have in use", p.FreeBytes, p.FreeSource)
	}
}

func TestFreeIsNoMoreThanThePagesThatCanBeHad(t *testing.T) {
	const available = (9436 + 915780 + 1639) * 16384
	for name, c := range map[string]struct {
		prints map[string]string
		host   hwprobe.Host
		want   hwprobe.Bytes
	}{
		"pages":                      {map[string]string{"ioreg": ioregM4, "vm_stat": vmStat}, hwprobe.Host{AvailableBytes: gib(1)}, hwprobe.Known[uint64](available)},
		"no vm_stat: the host's own": {map[string]string{"ioreg": ioregM4}, hwprobe.Host{AvailableBytes: gib(5)}, gib(5)},
		"nothing tells":              {map[string]string{"ioreg": ioregM4}, hwprobe.Host{}, hwprobe.Bytes{}},
	} {
		_, p := only(t, mac{metal: silicon(gib(72)), prints: c.prints, host: c.host}.probe(t))
		if p.FreeBytes != c.want || (p.FreeSource == hwprobe.SourceOS) != (c.want != hwprobe.Bytes{}) {
			t.Errorf("%s: free %v from %q, want %v", name, p.FreeBytes, p.FreeSource, c.want)
		}
	}
}

func TestWithoutIoregAllWiredMemoryCountsAsTheGPUs(t *testing.T) {
	_, p := only(t, mac{metal: silicon(gib(10)), prints: map[string]string{"vm_stat": vmStat}}.probe(t))
	if want := hwprobe.Known[uint64](10<<30 - 184732*16384); p.FreeBytes != want || p.FreeSource != hwprobe.SourceOS {
		t.Errorf("free %v from %q, want %v", p.FreeBytes, p.FreeSource, want)
	}
}

func TestNothingThatTellsTheUseIsNotNoUse(t *testing.T) {
	f := mac{metal: silicon(gib(10)), host: hwprobe.Host{AvailableBytes: gib(8)}}.probe(t)
	if _, p := only(t, f); p.FreeBytes != (hwprobe.Bytes{}) || !slices.Equal(codes(f), []hwprobe.WarningCode{hwprobe.WarnMemoryUnknown}) {
		t.Errorf("free %v, warnings %v; want unknown and a word about it", p.FreeBytes, codes(f))
	}
}

func TestOneGPUThatOnlyTheKernelNamesIsFoundWithoutMetal(t *testing.T) {
	f := mac{prints: map[string]string{"ioreg": strings.Replace(ioregM4, `"Apple M4"`, `<"Apple M4">`, 1)}, host: hwprobe.Host{TotalBytes: gib(16)}}.probe(t)
	d, p := only(t, f)
	if d.Name != "Apple M4 (10-core GPU)" || p.TotalSource != hwprobe.SourceEstimate || !slices.Equal(codes(f), []hwprobe.WarningCode{hwprobe.WarnMemoryEstimated}) {
		t.Errorf("%+v on %+v, warnings %v", d, p, codes(f))
	}
}

// An Intel Mac's order of GPUs is Metal's; the I/O registry has another one.
func TestTwoGPUsArePairedByRegistryIDAndNotByOrder(t *testing.T) {
	metal := []MetalDevice{
		{Name: "AMD Radeon Pro 560", RegistryID: 0x200, HasUnifiedMemory: hwprobe.Known(false), MaxWorkingSet: gib(4)},
		{Name: "Intel(R) HD Graphics 630", RegistryID: 0x100, HasUnifiedMemory: hwprobe.Known(true), MaxWorkingSet: hwprobe.Known[uint64](1536 << 20)},
	}
	ioreg := "+-o IntelAccelerator  <class IntelAccelerator, id 0x100, registered>\n    {\n      \"PerformanceStatistics\" = {\"Device Utilization %\"=7}\n    }\n" +
		"+-o AMDRadeonX4000_AMDBaffinGraphicsAccelerator  <class AMDRadeonX4000_AMDBaffinGraphicsAccelerator, id 0x200, registered>\n    {\n      \"PerformanceStatistics\" = {\"Device Utilization %\"=93}\n    }\n"
	f := mac{metal: metal, prints: map[string]string{"ioreg": ioreg}}.probe(t)
	if len(f.Devices) != 2 {
		t.Fatal(f.Devices)
	}
	card, chip := f.Devices[0], f.Devices[1]
	if card.Vendor != hwprobe.AMD || card.Utilisation != hwprobe.Known(93.0) || card.Integrated != hwprobe.Known(false) || f.Pools[0].Kind != hwprobe.PoolOfDevice || f.Pools[0].Parts != nil {
		t.Errorf("card %+v on %+v", card, f.Pools[0])
	}
	if chip.Vendor != hwprobe.Intel || chip.Utilisation != hwprobe.Known(7.0) || chip.Integrated != hwprobe.Known(true) || f.Pools[1].Kind != hwprobe.PoolUnified {
		t.Errorf("chip %+v on %+v", chip, f.Pools[1])
	}
}

func TestEqualCardsAreTwo(t *testing.T) {
	card := MetalDevice{Name: "AMD Radeon Pro W6800X Duo", HasUnifiedMemory: hwprobe.Known(false), MaxWorkingSet: gib(32)}
	f := mac{metal: []MetalDevice{card, card}}.probe(t)
	if len(f.Devices) != 2 || f.Devices[0].ID == f.Devices[1].ID || len(f.Pools) != 2 || f.Pools[1].ID != f.Devices[1].ID {
		t.Errorf("%+v on %+v", f.Devices, f.Pools)
	}
}

func TestMacWithoutAGPUHasNothingToWarnOf(t *testing.T) {
	if f := (mac{metal: []MetalDevice{}}).probe(t); len(f.Devices) != 0 || len(f.Warnings) != 0 {
		t.Errorf("%+v, want nothing", f)
	}
}

func TestNoGPUBecauseNothingAnswersIsAWarning(t *testing.T) {
	f := mac{}.probe(t)
	if len(f.Devices) != 0 || !f.Failed() || !slices.Equal(codes(f), []hwprobe.WarningCode{hwprobe.WarnGPUsUnreadable}) {
		t.Errorf("%+v, want a warning that GPUs may be there all the same", f)
	}
}
