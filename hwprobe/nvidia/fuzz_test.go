package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// seed adds the fixtures whose names match.
func seed(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join("..", "testdata", pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
}

// checkTold holds that no memory size is invented: each stands in the input, in MiB.
func checkTold(t *testing.T, input string, sizes ...hwprobe.Bytes) {
	t.Helper()
	for _, size := range sizes {
		if n, known := size.Value(); known && (n%(1<<20) != 0 || !strings.Contains(input, strconv.FormatUint(n>>20, 10))) {
			t.Errorf("%d bytes are not in the input", n)
		}
	}
}

// checkReading holds that a reading lies within its limits and that its whole part, where it is short enough to be printed
// in one way, stands in the input.
func checkReading(t *testing.T, input string, n hwprobe.Number, least, most float64) {
	t.Helper()
	v, known := n.Value()
	if !known {
		return
	}
	if v < least || v > most {
		t.Errorf("impossible reading %v", v)
	}
	if digits := fmt.Sprintf("%d", int64(v)); v >= 1 && v < 1e6 && !strings.ContainsAny(input, "eExXpP_") && !strings.Contains(input, digits) {
		t.Errorf("reading %v is not in the input", v)
	}
}

func FuzzCSV(f *testing.F) {
	seed(f, "nvidia-smi-*.csv", "gb10*.csv")
	f.Add(header + csvRow("GPU-1", "NVIDIA GB10", "0000000F:01:00.0", "[N/A]", "[N/A]", "Enabled", "ATS", "12.1"))
	f.Fuzz(func(t *testing.T, input string) {
		for _, arch := range []string{"amd64", "arm64"} {
			m := pc(smi{csv: input}, nil)
			m.Arch = arch
			found := find(t, m)
			for _, p := range found.Pools {
				checkTold(t, input, p.TotalBytes, p.FreeBytes)
			}
			for _, d := range found.Devices {
				checkReading(t, input, d.Utilisation, 0, 100)
				checkReading(t, input, d.Temperature, absoluteZero, 1e308)
				checkReading(t, input, d.Power, 0, 1e308)
			}
		}
	})
}

func FuzzXML(f *testing.F) {
	seed(f, "nvidia-xml-*.xml")
	f.Fuzz(func(t *testing.T, input string) {
		found := find(t, pc(smi{xml: input}, nil))
		for _, p := range found.Pools {
			if !strings.Contains(input, "&") { // else a size may be written with character references
				checkTold(t, input, p.TotalBytes, p.FreeBytes)
			}
		}
		for _, g := range parseXML([]byte(input)) {
			if total, _ := g.memory(); g.cells["memory.total"] == "" && total != (hwprobe.Bytes{}) {
				t.Errorf("total %v of no cell", total)
			}
		}
	})
}

func FuzzList(f *testing.F) {
	seed(f, "nvidia-smi-*L-*.txt")
	f.Fuzz(func(t *testing.T, input string) {
		for _, l := range parseList(input) {
			if l.uuid == "" || l.parent == "" || !strings.Contains(input, l.uuid) || !strings.Contains(input, l.parent) {
				t.Errorf("%+v", l)
			}
		}
		find(t, pc(smi{csv: a100("40960 MiB", "40315 MiB"), list: input}, nil))
	})
}

func FuzzTegrastats(f *testing.F) {
	seed(f, "tegrastats-*.txt")
	f.Fuzz(func(t *testing.T, input string) {
		r := parseTegrastats(input)
		checkReading(t, input, r.utilisation, 0, 100)
		checkReading(t, input, r.temperature, -200, 1e3)
		if p, known := r.power.Value(); known && (p < 0 || !strings.Contains(input, "/")) {
			t.Errorf("power %v", p)
		}
	})
}

func FuzzFailureText(f *testing.F) {
	seed(f, "nvidia-err-*.txt")
	f.Fuzz(func(t *testing.T, input string) {
		for _, address := range addresses(input) {
			if normal, ok := hwprobe.PCIAddress(address); !ok || normal != address || !strings.Contains(strings.ToLower(input), address[len(address)-8:]) {
				t.Errorf("address %q", address)
			}
		}
		for code := range 20 {
			found := find(t, pc(smi{stderr: input, code: code}, onPCI("0000:02:00.0", "nvidia", "active")))
			if len(found.Devices) == 0 || len(found.Warnings) == 0 {
				t.Errorf("code %d: the card is not told: %+v", code, found)
			}
			for _, p := range found.Pools {
				checkTold(t, "", p.TotalBytes, p.FreeBytes)
			}
		}
	})
}
