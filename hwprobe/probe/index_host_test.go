package probe

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

var hostRecordings = []recording{
	{"gb10.meminfo.txt", probeMeminfo},
	{"host-meminfo-*", probeMeminfo},
	{"host-no-gpu-*", probeMeminfo},
	{"host-free-*", probeFree},
}

var hostNoInput = map[string]string{}

var hostAnswers = map[string]answer{
	"host-no-gpu-2core-vm.txt": {total: []string{"25276502016"}, free: []string{"24592920576"}, why: "the recording says " +
		"MemAvailable: 24016524 kB, which is 24592920576 bytes; the index's 24225292288 occurs nowhere in it"},
	"host-meminfo-container-4090.txt": {total: []string{"1081805053952"}, free: []string{"901556957184"}, why: "the limit of " +
		"90 GB stands in the index's words only; the recording is the machine's meminfo"},
}

// probeMeminfo probes a machine with a recorded /proc/meminfo; what stands before it in the recording is no part of it.
func probeMeminfo(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	i := strings.Index(text, "MemTotal")
	if i < 0 {
		t.Fatal("no meminfo")
	}
	return []hwprobe.Report{probeProc(t, text[i:])}
}

// probeProc probes a machine of which nothing but /proc/meminfo is known.
func probeProc(t *testing.T, meminfo string) hwprobe.Report {
	return Probe(t.Context(), machine(fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}, absent{}, fixedHost{Arch: "amd64"}))
}

// probeFree writes free(1)'s table as the file that free reads: its columns are total, used, free, shared, buff/cache and
// available, in KiB.
func probeFree(t *testing.T, file string) []hwprobe.Report {
	_, row, _ := strings.Cut(fixture.Text(t, file), "Mem:")
	columns := strings.Fields(row)
	if len(columns) < 6 {
		t.Fatal("no row of memory")
	}
	return []hwprobe.Report{probeProc(t, fmt.Sprintf("MemTotal: %s kB\nMemFree: %s kB\nMemAvailable: %s kB\n", columns[0], columns[2], columns[5]))}
}
