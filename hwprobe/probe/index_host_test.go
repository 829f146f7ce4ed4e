package probe

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

var hostRecordings = []recording{
	{"gb10.meminfo.txt", probeMeminfo},
	{"host-meminfo-*", probeMeminfo},
	{"host-no-gpu-*", probeMeminfo},
}

var hostNoInput = map[string]string{}

var hostAnswers = map[string]answer{
	"host-no-gpu-2core-vm.txt": {total: []string{"25276502016"}, free: []string{"24592920576"}, why: "the recording says " +
		"MemAvailable: 24016524 kB, which is 24592920576 bytes; the index's 24225292288 occurs nowhere in it"},
	"host-meminfo-container-4090.txt": {total: []string{"1081805053952"}, free: []string{"901556957184"}, why: "the limit of " +
		"90 GB stands in the index's words only; the recording is the machine's meminfo"},
}

// probeMeminfo lets the real reader of the host read a recorded /proc/meminfo.
func probeMeminfo(t *testing.T, file string) []hwprobe.Report {
	text := readFixture(t, file)
	if !strings.Contains(text, "MemTotal") {
		t.Fatal("no meminfo")
	}
	return []hwprobe.Report{Probe(meminfo(t, text), realHost(fstest.MapFS{}, absent{}))}
}
