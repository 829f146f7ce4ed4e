package probe

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

var amdRecordings = []recording{
	{"amd-sysfs-strixhalo-gtt96.txtar", func(t *testing.T, file string) []hwprobe.Report { // reconstructed without the files that say which device it is
		dir := "sys/class/drm/card1/device/"
		root := tree(t, file, dir+"vendor", "0x1002\n", dir+"uevent", "DRIVER=amdgpu\nPCI_ID=1002:1586\nPCI_SLOT_NAME=0000:c5:00.0\n")
		return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, bigHost("amd64")))}
	}},
	{"amd-sysfs-*.txtar", probeTreeFixture},
}

var amdNoInput = map[string]string{}

var amdAnswers = map[string]answer{}

// probeTreeFixture probes a recorded /sys on a machine without vendor tools.
func probeTreeFixture(t *testing.T, file string) []hwprobe.Report {
	return []hwprobe.Report{Probe(t.Context(), machine(tree(t, file), absent{}, bigHost("amd64")))}
}
