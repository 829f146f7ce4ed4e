package apple

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// gpustack#1375 and whichllm#152: tools that took all of main memory, or 75 % of it, were both wrong.
func TestTheLimitIsMetalsAndNoRatio(t *testing.T) {
	for _, limit := range []uint64{11453246122, 27262976000, 115448720916, 120259084288} {
		_, p := only(t, mac{metal: silicon(hwprobe.Known(limit)), wired: 1024, host: hwprobe.Host{TotalBytes: gib(128)}}.probe(t))
		if p.TotalBytes != hwprobe.Known(limit) || p.TotalSource != hwprobe.SourceMetal {
			t.Errorf("total %v from %q, want Metal's %d", p.TotalBytes, p.TotalSource, limit)
		}
	}
}

func TestWithoutMetalsLimitTheOwnersSettingCountsAndThenAnEstimate(t *testing.T) {
	for name, c := range map[string]struct {
		wired any
		ram   hwprobe.Bytes
		want  hwprobe.Bytes
		from  hwprobe.Source
	}{
		"set":                                  {26000, gib(32), hwprobe.Known[uint64](27262976000), hwprobe.SourceSysctl},
		"set to more than there is":            {1 << 20, gib(32), gib(32), hwprobe.SourceSysctl},
		"set, main memory unknown":             {26000, hwprobe.Bytes{}, hwprobe.Bytes{}, ""},
		"set to what no number of bytes holds": {uint64(1 << 60), gib(16), hwprobe.Known[uint64](11338713606), hwprobe.SourceEstimate},
		"0 is the default, not no memory":      {0, gib(16), hwprobe.Known[uint64](11338713606), hwprobe.SourceEstimate},
		"no such setting":                      {nil, gib(32), hwprobe.Known[uint64](22677427278), hwprobe.SourceEstimate},
		"a large machine":                      {nil, gib(96), gib(72), hwprobe.SourceEstimate},
		"no number":                            {"26000", gib(96), gib(72), hwprobe.SourceEstimate},
		"nothing":                              {nil, hwprobe.Bytes{}, hwprobe.Bytes{}, ""},
	} {
		f := mac{metal: silicon(hwprobe.Known[uint64](0)), wired: c.wired, host: hwprobe.Host{TotalBytes: c.ram}}.probe(t)
		d, p := only(t, f)
		if p.TotalBytes != c.want || p.TotalSource != c.from {
			t.Errorf("%s: total %v from %q, want %v from %q", name, p.TotalBytes, p.TotalSource, c.want, c.from)
		}
		if (d.State == hwprobe.StateDegraded) != (c.from == "") || len(f.Warnings) == 0 {
			t.Errorf("%s: %s, warnings %v", name, d.State, codes(f))
		}
	}
}

// What is estimated must be less than every limit that was recorded of such a machine.
func TestTheEstimateIsNeverMoreThanAMacAllows(t *testing.T) {
	for _, recorded := range []struct{ ram, limit uint64 }{{16 << 30, 11456825262}, {16 << 30, 12713103196}, {96 << 30, 77309411328}, {128 << 30, 115448720916}} {
		if got := estimate(hwprobe.Known(recorded.ram)).Or(0); got == 0 || got > recorded.limit {
			t.Errorf("%d of %d, more than the recorded %d", got, recorded.ram, recorded.limit)
		}
	}
}

func TestAnIntelMacsChipIsNotGivenAnAppleLimit(t *testing.T) {
	f := mac{metal: []MetalDevice{{Name: "Intel(R) HD Graphics 630", HasUnifiedMemory: hwprobe.Known(true)}}, wired: 26000, host: hwprobe.Host{TotalBytes: gib(32)}}.probe(t)
	if d, p := only(t, f); p.TotalBytes != (hwprobe.Bytes{}) || d.State != hwprobe.StateDegraded {
		t.Errorf("total %v, %s; want unknown", p.TotalBytes, d.State)
	}
}

func TestSysctlsOfBothWidthsAreNumbers(t *testing.T) {
	for _, c := range []struct {
		raw  []byte
		want hwprobe.Bytes
	}{
		{[]byte{0x90, 0x65, 0, 0}, hwprobe.Known[uint64](26000)},
		{[]byte{0, 0, 0, 0, 8, 0, 0, 0}, gib(32)},
		{[]byte{0, 0, 0, 0}, hwprobe.Known[uint64](0)},
		{[]byte("Apple M2\x00"), hwprobe.Bytes{}},
		{nil, hwprobe.Bytes{}},
	} {
		if got := integer(c.raw); got != c.want {
			t.Errorf("%v: %v, want %v", c.raw, got, c.want)
		}
	}
}
