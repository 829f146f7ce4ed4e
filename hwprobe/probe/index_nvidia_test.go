package probe

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

var nvidiaRecordings = []recording{
	{"nvidia-sysfs-*.txtar", probeTreeFixture},
	{"nvidia-err-*", probeFailure},
	{"*gb10*.csv", func(t *testing.T, file string) []hwprobe.Report {
		ctx := meminfo(t, readFixture(t, "gb10.meminfo.txt"))
		return []hwprobe.Report{Probe(ctx, realHost(fstest.MapFS{}, printed{Stdout: []byte(readFixture(t, file))}))}
	}},
	{"nvidia-smi-*.csv", probeCSV},
}

var nvidiaNoInput = map[string]string{}

var nvidiaAnswers = map[string]answer{
	"nvidia-smi-jetson-addressing.query.csv": {devices: 1, total: []string{"MemTotal"}, free: []string{"MemAvailable"}, unified: []string{"yes"},
		why: "the recording has a line each of two machines, which are probed one by one"},
}

// missingHeaders are the headers of recordings that have none; every query of a probe has one.
var missingHeaders = map[string]string{
	"nvidia-smi-jetson-addressing.query.csv": "addressing_mode, memory.total [MiB], name\n",
	"nvidia-smi-vgpu-h100l.query.csv":        "clocks.current.sm [MHz], memory.total [MiB], name\n",
}

func probeCSV(t *testing.T, file string) []hwprobe.Report {
	var reports []hwprobe.Report
	for _, body := range machines(file, readFixture(t, file)) {
		out := printed{Stdout: []byte(missingHeaders[file] + body)}
		reports = append(reports, Probe(t.Context(), machine(fstest.MapFS{}, out, bigHost("amd64"))))
	}
	return reports
}

// machines splits the one recording that has a line each of two machines.
func machines(name, text string) []string {
	if name == "nvidia-smi-jetson-addressing.query.csv" {
		return strings.Split(strings.TrimSpace(text), "\n")
	}
	return []string{text}
}

// probeFailure gives the text on either stream: which one it came on was not recorded.
func probeFailure(t *testing.T, file string) []hwprobe.Report {
	text := []byte(readFixture(t, file))
	return []hwprobe.Report{
		Probe(t.Context(), machine(fstest.MapFS{}, printed{Stdout: text, ExitCode: 9}, bigHost("amd64"))),
		Probe(t.Context(), machine(fstest.MapFS{}, printed{Stderr: text, ExitCode: 9}, bigHost("amd64"))),
	}
}
