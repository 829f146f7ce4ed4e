package probe

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/intel"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

var intelRecordings = []recording{
	{"intel-sysfs-*.txtar", probeTreeFixture},
	{"intel-xe-vram_mm-a750.txt", func(t *testing.T, file string) []hwprobe.Report { // the file alone was recorded, of a card on xe
		root := intelCard("card0", "8086:56a1", "0000:03:00.0", "xe")
		root["sys/kernel/debug/dri/0000:03:00.0/tile0/vram_mm"] = &fstest.MapFile{Data: []byte(fixture.Text(t, file))}
		return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, bigHost("amd64")))}
	}},
	{"intel-dmesg-b580.txt", func(t *testing.T, file string) []hwprobe.Report {
		// xe logs the size of the region that it answers with; what is used was not logged.
		total := hexIn(t, fixture.Text(t, file), `Total VRAM: 0x([0-9a-f]+)`, 16)
		return []hwprobe.Report{probeIntel(t, intelCard("card0", "8086:e20b", "0000:03:00.0", "xe"), intel.CallXeRegions,
			[]intel.XeRegion{{Class: 0, TotalSize: 64 << 30}, {Class: 1, Instance: 1, TotalSize: total}})}
	}},
	{"intel-levelzero-a770-nonroot.txt", func(t *testing.T, file string) []hwprobe.Report {
		// Level Zero passes on what i915 answers. The row's answer is what root is told; what others are told is free = total,
		// which TestFreeThatEqualsTotalIsUnknown takes.
		text := fixture.Text(t, file)
		return []hwprobe.Report{probeIntel(t, intelCard("card0", "8086:56a0", "0000:03:00.0", "i915"), intel.CallI915Regions, []intel.I915Region{{Class: 0, ProbedSize: 64 << 30, UnallocatedSize: 64 << 30},
			{Class: 1, ProbedSize: hexIn(t, text, `non-root: free (\d+) \(equal to total\)`, 10), UnallocatedSize: hexIn(t, text, `root:     free (\d+)`, 10)}})}
	}},
	{"intel-lspci-mixed.txt", probeLspci},
}

var intelNoInput = map[string]string{
	"intel-clinfo-a750-wsl.txt": "OpenCL is not asked, because its size is a share of the card's; WSL shows no card to Linux, and the Windows side is asked instead",
	"intel-xe-fdinfo.txt":       "what one process uses: who owns the memory that is not free is not asked",
}

const unifiedPool = "a processor's graphics draw on the host's memory, whose size the machine tells, if not this recording"

var intelAnswers = map[string]answer{
	"intel-sysfs-tigerlake-igpu-xe.txtar": {devices: 1, total: []string{"MemTotal"}, free: []string{"MemAvailable"}, unified: []string{"yes"}, why: unifiedPool},
	"intel-lspci-mixed.txt": {devices: 5, total: []string{"MemTotal", "?", "MemTotal", "?", "?"}, free: []string{"MemAvailable", "?", "MemAvailable", "?", "?"},
		unified: []string{"yes", "no", "yes", "no", "no"}, why: unifiedPool},
}

// intelCard is the files of a card with a render node and nothing else.
func intelCard(name, id, pci, driver string) fstest.MapFS {
	dir := "sys/class/drm/" + name + "/device/"
	return mapFS([]string{dir + "vendor", "0x8086\n", dir + "drm/renderD128/dev", "226:128\n",
		dir + "uevent", "DRIVER=" + driver + "\nPCI_CLASS=30000\nPCI_ID=" + strings.ToUpper(id) + "\nPCI_SLOT_NAME=" + pci + "\n"})
}

// probeIntel probes a machine whose driver answers a call.
func probeIntel(t *testing.T, root fstest.MapFS, call string, regions any) hwprobe.Report {
	t.Helper()
	m := machine(root, absent{}, bigHost("amd64"))
	m.Calls.(source.Calls)[call] = func(context.Context, ...string) (any, error) { return regions, nil }
	return Probe(t.Context(), m)
}

func hexIn(t *testing.T, text, pattern string, base int) uint64 {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("no %s in %q", pattern, text)
	}
	n, err := strconv.ParseUint(match[1], base, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var lspciLine = regexp.MustCompile(`^0000:(\S+) .*\[(8086:[0-9a-f]{4})\]`)

// probeLspci probes the cards that lspci listed. The lines are of several machines, and addresses occur twice, so each line
// gets a PCI domain of its own here.
func probeLspci(t *testing.T, file string) []hwprobe.Report {
	root := fstest.MapFS{}
	for i, line := range strings.Split(strings.TrimSpace(fixture.Text(t, file)), "\n") {
		match := lspciLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatal(line)
		}
		for name, data := range intelCard(fmt.Sprintf("card%d", i), match[2], fmt.Sprintf("%04d:%s", i, match[1]), "xe") {
			root[name] = data
		}
	}
	return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, bigHost("amd64")))}
}
