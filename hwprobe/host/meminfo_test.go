package host

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

func TestMeminfo(t *testing.T) {
	for name, c := range map[string]struct{ text, total, available string }{
		"a kernel of today":   {"MemTotal: 16115528 kB\nMemFree: 8577628 kB\nMemAvailable: 11225936 kB\nBuffers: 1 kB\n", "16502300672", "11495358464"},
		"before 3.14":         {"MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 300 kB\nShmem: 50 kB\n", "1024000", "378880"},
		"before 2.6.32":       {"MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 300 kB\n", "1024000", "430080"},
		"half a file":         {"MemTotal: 1000 kB\nMemFree: 100 kB\nBuff", "1024000", "unknown"},
		"more than there is":  {"MemTotal: 1000 kB\nMemAvailable: 2000 kB\n", "1024000", "1024000"},
		"another unit":        {"MemTotal: 1000 MB\nMemAvailable: 2000\n", "unknown", "unknown"},
		"no 64-bit number":    {"MemTotal: 18014398509481984 kB\nMemAvailable: -1 kB\n", "unknown", "unknown"},
		"a total of zero":     {"MemTotal: 0 kB\nMemAvailable: 0 kB\n", "unknown", "0"},
		"nothing left":        {"MemTotal: 1000 kB\nMemFree: 60 kB\nMemAvailable: 0 kB\n", "1024000", "0"}, // the kernel says 0 for less than nothing: si_mem_available
		"all ones":            {"MemTotal: 18014398509481983 kB\nMemAvailable: 18014398509481983 kB\n", "unknown", "18446744073709550592"},
		"32 bits and swap":    {"MemTotal: 3989004 kB\nMemFree: 9 kB\nMemAvailable: 8 kB\nSwapCached: 7 kB\nHighTotal: 3131000 kB\nLowTotal: 858004 kB\nSwapTotal: 99999999 kB\nSwapFree: 99999999 kB\n", "4084740096", "8192"},
		"huge pages":          {"MemTotal: 1000 kB\nMemAvailable: 100 kB\nHugePages_Total: 400\nHugePages_Free: 400\nHugepagesize: 2 kB\nHugetlb: 800 kB\n", "1024000", "102400"},
		"nothing of the kind": {"hello\n", "unknown", "unknown"},
	} {
		if total, available := meminfo(c.text); total.String() != c.total || available.String() != c.available {
			t.Errorf("%s: %v, %v; want %s, %s", name, total, available, c.total, c.available)
		}
	}
}

// The file is the machine's own word; the call is for systems that have no such file.
func TestReadTakesTheFileBeforeTheCall(t *testing.T) {
	m := source.Machine{OS: "linux", Arch: "arm64", Files: fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 1000 kB\nMemAvailable: 500 kB\n")}}, Calls: source.Calls{}}
	h, warnings := Read(t.Context(), m)
	if h.TotalBytes != hwprobe.Known[uint64](1024000) || h.AvailableBytes != hwprobe.Known[uint64](512000) || h.OS != "linux" || h.Arch != "arm64" {
		t.Errorf("got %+v", h)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "name and processor") {
		t.Errorf("warnings %v, want that the rest of the host is unknown", warnings)
	}
	m.Files = fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 0 kB\nMemAvailable: 0 kB\n")}}
	if h, warnings = Read(t.Context(), m); h.TotalBytes != (hwprobe.Bytes{}) || len(warnings) != 1 {
		t.Errorf("got %+v, %v; want unknown", h, warnings)
	}
	m.Files = fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 1000 kB\nMemAvailable: 0 kB\n")}}
	if h, _ = Read(t.Context(), m); h.AvailableBytes != hwprobe.Known[uint64](0) {
		t.Errorf("got %+v; zero is a measurement", h)
	}
	m.Files = fstest.MapFS{}
	m.Calls = source.Calls{CallHost: func(context.Context, ...string) (any, error) {
		return hwprobe.Host{TotalBytes: hwprobe.Known[uint64](1 << 30), AvailableBytes: hwprobe.Known[uint64](2 << 30)}, nil
	}}
	if h, _ = Read(t.Context(), m); h.AvailableBytes != hwprobe.Known[uint64](1<<30) {
		t.Errorf("got %+v; no more is available than there is", h)
	}
}

// FuzzMeminfo holds that every number is in the text, or a sum of such, and that no more is available than there is.
func FuzzMeminfo(f *testing.F) {
	files, _ := filepath.Glob("../testdata/*meminfo*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 300 kB\nShmem: 50 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		total, available := meminfo(text)
		if n, known := total.Value(); known && (n%1024 != 0 || !strings.Contains(text, strconv.FormatUint(n/1024, 10))) {
			t.Errorf("%d bytes are not in %q", n, text)
		}
		if n, known := total.Value(); known && available.Or(0) > n {
			t.Errorf("%v of %d bytes are available", available, n)
		}
		if !strings.Contains(text, "MemAvailable") && !strings.Contains(text, "MemFree") && available != (hwprobe.Bytes{}) {
			t.Errorf("%v bytes are available, and nothing says so", available)
		}
	})
}
