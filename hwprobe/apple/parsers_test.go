package apple

import (
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func TestTheDriversOwnMemoryIsNotTheMemoryInUse(t *testing.T) {
	want := []accelerator{{registry: 0x10000050b, model: "Apple M4", cores: hwprobe.Known[uint64](10), inUse: hwprobe.Known[uint64](351141888), utilisation: hwprobe.Known(21.0)}}
	if got := parseRegistry(ioregM4); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestRegistryEntriesAreKeptApart(t *testing.T) {
	text := ioregM4 + "+-o AGXAcceleratorG17X  <class AGXAcceleratorG17X, id 0x100000775>\n  | {\n  |   \"model\" = \"Apple M5 Pro\"\n  |   \"PerformanceStatistics\" = {\"Device Utilization %\"=141}\n  | }\n"
	got := parseRegistry(text)
	if len(got) != 2 || got[1] != (accelerator{registry: 0x100000775, model: "Apple M5 Pro"}) {
		t.Errorf("%+v, want a second one of which the use is unknown", got)
	}
}

func TestHalfALineOfIoregIsUnknown(t *testing.T) {
	cut := ioregM4[:strings.Index(ioregM4, "351141888")+4]
	if got := parseRegistry(cut); len(got) != 1 || got[0].inUse != (hwprobe.Bytes{}) {
		t.Errorf("%+v, want the use unknown: it was cut after a few digits", got)
	}
}

func TestPagesAreOfTheSizeThatVMStatNames(t *testing.T) {
	small := strings.Replace(vmStat, "16384", "4096", 1)
	if got := parsePages(small); got.available != hwprobe.Known[uint64]((9436+915780+1639)*4096) || got.wired != hwprobe.Known[uint64](184732*4096) {
		t.Errorf("%+v", got)
	}
	for name, text := range map[string]string{
		"no page size":             strings.Replace(vmStat, "(page size of 16384 bytes)", "", 1),
		"a page size of 0":         strings.Replace(vmStat, "16384", "0", 1),
		"no speculative pages":     strings.Replace(vmStat, "Pages speculative", "Pages other", 1),
		"more than 64 bits":        strings.Replace(vmStat, " 9436.", " 18446744073709551615.", 1),
		"a number that is no page": strings.Replace(vmStat, " 9436.", " 9436x", 1),
	} {
		if got := parsePages(text); got.available != (hwprobe.Bytes{}) {
			t.Errorf("%s: %v, want unknown", name, got.available)
		}
	}
}

func TestSizesOfOtherLanguages(t *testing.T) {
	for text, want := range map[string]hwprobe.Bytes{
		"1536 MB": hwprobe.Known[uint64](1536 << 20), "4 GB": gib(4), "4\u00a0GB": gib(4), "4\u202fGB": gib(4), "1,5 GB": hwprobe.Known[uint64](1536 << 20),
		"1.5 GB": hwprobe.Known[uint64](1536 << 20), "8 gb": gib(8), "512 KB": hwprobe.Known[uint64](512 << 10),
		"1,536 MB": {}, // one and a half, or fifteen hundred
		"4 Go":     {}, "4 ГБ": {}, "4": {}, "GB": {}, "": {}, "-4 GB": {}, "0 GB": {}, "4 GB (shared)": {}, "999999999999 TB": {},
	} {
		if got := parseSize(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestDisplaysAreNoGPUs(t *testing.T) {
	got := parseProfiler([]byte(fixture.Text(t, "mac-system_profiler-m2max.json")))
	want := []gpu{{name: "Apple M2 Max", vendor: hwprobe.Apple, unified: hwprobe.Known(true), cores: hwprobe.Known[uint64](30), from: hwprobe.SourceProfiler}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOneOddValueOfSystemProfilerLeavesTheOthers(t *testing.T) {
	got := parseProfiler([]byte(`{"SPDisplaysDataType": [{"sppci_model": "Radeon Pro 560", "sppci_cores": 16, "spdisplays_vram": ["4 GB"]}, {"_name": 7}, {"_name": "Apple M3"}]}`))
	want := []gpu{
		{name: "Radeon Pro 560", vendor: hwprobe.AMD, unified: hwprobe.Known(false), from: hwprobe.SourceProfiler},
		{name: "Apple M3", vendor: hwprobe.Apple, unified: hwprobe.Known(true), from: hwprobe.SourceProfiler},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
