package apple

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

func seed(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", pattern))
	if err != nil || len(files) == 0 {
		f.Fatal(pattern, err)
	}
	for _, file := range files {
		f.Add(fixture.Text(f, filepath.Base(file)))
	}
}

// inText fails for a number that the text does not hold, digit by digit.
func inText(t *testing.T, text string, number hwprobe.Bytes) {
	t.Helper()
	if n, known := number.Value(); known && !strings.Contains(text, fmt.Sprint(n)) {
		t.Errorf("%d is not in the input", n)
	}
}

func FuzzRegistry(f *testing.F) {
	f.Add(ioregM4)
	f.Add(strings.ReplaceAll(ioregM4, `"Apple M4"`, `<"Apple M1">`))
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range parseRegistry(text) {
			inText(t, text, a.inUse)
			inText(t, text, a.cores)
			if a.utilisation.Or(0) < 0 || a.utilisation.Or(0) > 100 || !strings.Contains(text, a.model) {
				t.Errorf("%+v", a)
			}
		}
	})
}

func FuzzPages(f *testing.F) {
	f.Add(vmStat)
	f.Fuzz(func(t *testing.T, text string) {
		got := parsePages(text)
		for name, bytes := range map[string]hwprobe.Bytes{"Pages inactive:": got.available, "Pages wired down:": got.wired} {
			if bytes != (hwprobe.Bytes{}) && !(strings.Contains(text, name) && strings.Contains(text, "page size of ")) {
				t.Errorf("%v bytes of pages that the input does not count", bytes)
			}
		}
	})
}

func FuzzProfiler(f *testing.F) {
	seed(f, "mac-system_profiler-*.json")
	f.Fuzz(func(t *testing.T, text string) {
		for _, g := range parseProfiler([]byte(text)) {
			if g.name == "" || g.memory == hwprobe.Known[uint64](0) || g.vendor == hwprobe.Apple && g.memory != (hwprobe.Bytes{}) {
				t.Errorf("%+v", g)
			}
			if g.memory != (hwprobe.Bytes{}) && !strings.Contains(text, "spdisplays_vram") && !strings.Contains(text, `\u`) {
				t.Errorf("%v bytes that the input does not tell", g.memory)
			}
		}
	})
}

// fuzzedMac answers every question with the same bytes.
type fuzzedMac struct{ metal, sysctl, printed []byte }

func (m fuzzedMac) Call(_ context.Context, name string, _ ...string) ([]byte, error) {
	if name == CallMetal {
		return m.metal, nil
	}
	return m.sysctl, nil
}

func (m fuzzedMac) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	if name == "system_profiler" {
		return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return source.Output{Stdout: m.printed}, nil
}

func FuzzMetal(f *testing.F) {
	f.Add([]byte(`[{"name":"Apple M1 Max","registry_id":4294968587,"has_unified_memory":true,"recommended_max_working_set_size":27262976000,"current_allocated_size":0}]`), []byte("26000"), []byte(ioregM4+vmStat))
	f.Add([]byte(`[{"name":"AMD Radeon Pro 560","has_unified_memory":false},{"name":"","recommended_max_working_set_size":-1}]`), []byte("0"), []byte(vmStat))
	f.Add([]byte(`null`), []byte(`null`), []byte(ioregM4))
	f.Fuzz(func(t *testing.T, metal, sysctl, printed []byte) {
		answers := fuzzedMac{metal, sysctl, printed}
		found := Probe(t.Context(), source.Machine{OS: "darwin", Files: fstest.MapFS{}, Commands: answers, Calls: answers}, hwprobe.Host{TotalBytes: gib(32), AvailableBytes: gib(8)})
		ids := map[string]bool{}
		for i, d := range found.Devices {
			p := found.Pools[i] // every GPU of a Mac has a pool
			if ids[d.ID] || p.ID != d.ID || p.TotalBytes == hwprobe.Known[uint64](0) || p.FreeBytes.Or(0) > p.TotalBytes.Or(0) && p.TotalBytes != (hwprobe.Bytes{}) {
				t.Errorf("%+v on %+v", d, p)
			}
			ids[d.ID] = true
			if p.TotalSource == hwprobe.SourceMetal {
				inText(t, string(metal), p.TotalBytes)
			}
		}
	})
}
