package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/amd"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

var amdRecordings = []recording{
	{"amd-sysfs-strixhalo-gtt96.txtar", func(t *testing.T, file string) []hwprobe.Report { // reconstructed without the files that say which device it is
		root := fixture.Tree(t, file, sysfsCard("card1", "1002:1586", "0000:c5:00.0", nil)...)
		return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, bigHost("amd64")))}
	}},
	{"amd-sysfs-*.txtar", probeTreeFixture},
	{"amd-rocmsmi-*", probeROCmSMI},
	{"amd-smi-*.table.txt", func(t *testing.T, file string) []hwprobe.Report {
		return []hwprobe.Report{Probe(t.Context(), machine(hiddenSys(), toolsByName{"amd-smi": fixture.Text(t, file)}, bigHost("amd64")))}
	}},
	{"amd-dmesg-*.txt", probeAMDGPULog},
	{"amd-nomeminfo-debian-4.19.txt", func(t *testing.T, _ string) []hwprobe.Report { // "Vega 10 XT": the recorded Vega without what the recording says is not there
		root := fixture.Tree(t, "amd-sysfs-vega56-8g.txtar")
		for name := range root {
			if strings.HasPrefix(path.Base(name), "mem_info_") {
				delete(root, name)
			}
		}
		h := bigHost("amd64")
		h.Kernel = "4.19.132"
		return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, h))}
	}},
	{"amd-rocminfo-strixhalo-96g-old-kernel.txt", probeRocminfo},
	{"gpustack-detect-rx7800xt-x2.json", probeGPUStack},
	{"nvtop-laptop-3050ti-680m.json", probeNvtop},
}

var amdNoInput = map[string]string{
	"amd-fdinfo-890m-llm.txt":            "what one process uses: who owns the memory that is not free is not asked",
	"ollama-inference-compute-lines.txt": "what another program concluded of six machines; the numbers that it should have started from are in amd-rocmsmi-strixhalo-96g-carveout.txt and the tests of package amd",
}

const remark = "the index's cell has a remark or a formula beside the value"

var amdAnswers = map[string]answer{
	"amd-dmesg-cezanne-igpu.txt":       {devices: 1, total: []string{"8605663232"}, free: []string{"?"}, unified: []string{"yes"}, why: remark + ": 536870912 + 8068792320"},
	"amd-dmesg-strixhalo-96g-108g.txt": {devices: 1, total: []string{"136332627968"}, free: []string{"?"}, unified: []string{"yes"}, why: remark + ": 103079215104 + min(113246208000, host), and a host of the same kind has 33253412864"},
	"amd-rocminfo-strixhalo-96g-old-kernel.txt": {devices: 1, total: []string{"120130109440"}, free: []string{"?"}, unified: []string{"yes"},
		why: "the pool is both parts, 103079215104 + 17050894336; that ROCm sees only the second one there is a warning, which TestROCmOnAnOldKernelSeesOnlyGTT wants"},
	"amd-rocmsmi-strixhalo-96g-carveout.txt": {devices: 1, total: []string{"103079215104"}, free: []string{"78168338432"}, unified: []string{"yes"}, why: remark},
	"amd-rocmsmi-strixhalo-96g-lowpower.txt": {devices: 1, total: []string{"103079215104"}, free: []string{"102145671168"}, unified: []string{"yes"}, why: remark},
	"amd-rocmsmi-mi300x-cpx-partitions.txt": {devices: 7, total: []string{"206141652992"}, free: []string{"205843881984"}, unified: []string{"no"},
		why: "the index counts cards; to an engine each partition is a device of its own, and what must be there once is the memory: one pool that all of them draw on"},
	"nvtop-laptop-3050ti-680m.json": {devices: 2, total: []string{"4294967296", "16929173504"}, free: []string{"3944742912", "15715389440"}, unified: []string{"no", "yes"},
		why: "nvtop printed 3945594880 bytes free where nvidia-smi prints whole MiB, 3762"},
	"amd-smi-r9700-plus-igpu.table.txt": {devices: 2, total: []string{"?"}, free: []string{"?"}, unified: []string{"no", "-"},
		why: "the tool's 30576 MB is wrong for the first card, so its totals are not taken at all; and nothing in the table says that the second device is a processor's: its generic name is also that of a MI50 of 32 GB"},
}

// probeTreeFixture probes a recorded /sys on a machine without vendor tools.
func probeTreeFixture(t *testing.T, file string) []hwprobe.Report {
	return []hwprobe.Report{Probe(t.Context(), machine(fixture.Tree(t, file), absent{}, bigHost("amd64")))}
}

// toolsByName is a Runner of tools that each print one text; others are not installed.
type toolsByName map[string]string

func (o toolsByName) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	text, installed := o[name]
	if !installed {
		return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return source.Output{Stdout: []byte(text)}, nil
}

// hiddenSys is a container that may use the GPUs and does not see /sys.
func hiddenSys() fs.FS { return fstest.MapFS{"dev/kfd": {}} }

// sysfsCard is the names and texts of a card's files. Values are of files below its device directory.
func sysfsCard(name, id, pci string, values map[string]string) []string {
	dir := "sys/class/drm/" + name + "/device/"
	files := []string{dir + "vendor", "0x" + id[:4] + "\n", dir + "uevent", "DRIVER=amdgpu\nPCI_ID=" + strings.ToUpper(id) + "\nPCI_SLOT_NAME=" + pci + "\n"}
	for file, text := range values {
		files = append(files, dir+file, text+"\n")
	}
	return files
}

func mapFS(files []string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		root[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return root
}

// smiAdded are lines of rocm-smi's text that a probe's own query also asks for and the recording's did not: which device
// it is, as the row's machine or the same report (ROCm/legacy-rocm-build#4750 lists the MI300X's as 0x74a1) says.
var smiAdded = map[string]string{
	"amd-rocmsmi-strixhalo-96g-carveout.txt": "GPU[0]\t\t: Card Model: 0x1586\n",
	"amd-rocmsmi-strixhalo-96g-lowpower.txt": "GPU[0]\t\t: Card Model: 0x1586\n",
}

func probeROCmSMI(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file) + smiAdded[file]
	switch file {
	case "amd-rocmsmi-mi50x2-cezanne.product.txt": // two queries of one machine; the probe's asks both at once
		text = fixture.Text(t, "amd-rocmsmi-mi50x2-cezanne.vram.txt") + text
	case "amd-rocmsmi-mi50x2-cezanne.vram.txt":
		text += fixture.Text(t, "amd-rocmsmi-mi50x2-cezanne.product.txt")
	case "amd-rocmsmi-mi300x-cpx-partitions.txt": // partitions of one card have one bus; which is not recorded and only joins them
		for i := range 7 {
			text += fmt.Sprintf("GPU[%d]      : PCI Bus: 0000:0C:00.0\nGPU[%d]      : Card Model: 0x74a1\n", i, i)
		}
	}
	r := Probe(t.Context(), machine(hiddenSys(), toolsByName{"rocm-smi": text}, bigHost("amd64")))
	if strings.Contains(file, "partitions") && len(r.Pools) != 2 {
		t.Errorf("pools %+v, want the host's and the card's", r.Pools)
	}
	return []hwprobe.Report{r}
}

var amdgpuReady = regexp.MustCompile(`(\d+)M of (VRAM|GTT) memory ready`)

// probeAMDGPULog probes the files of the driver that logged "512M of VRAM memory ready" at its start, in which it prints the
// same sizes that the files tell, in MiB. What is used was not logged.
func probeAMDGPULog(t *testing.T, file string) []hwprobe.Report {
	values := map[string]string{}
	for _, match := range amdgpuReady.FindAllStringSubmatch(fixture.Text(t, file), -1) {
		size, err := strconv.ParseUint(match[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		values["mem_info_"+strings.ToLower(match[2])+"_total"] = strconv.FormatUint(size<<20, 10)
	}
	id, h := "1002:1638", bigHost("amd64")
	if strings.Contains(file, "strixhalo") { // 128 GB of which 96 GiB are set aside: the host of host-free-strixhalo-96g-carveout.txt
		id, h.TotalBytes, h.AvailableBytes = "1002:1586", hwprobe.Known[uint64](33253412864), hwprobe.Known[uint64](17243918336)
	}
	root := mapFS(sysfsCard("card0", id, "0000:c5:00.0", values))
	return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, h))}
}

// probeRocminfo probes the files behind a recording of two commands: the first one prints a file, the second one the memory
// that the compute driver gives ROCm, which on an APU is the GTT limit.
func probeRocminfo(t *testing.T, file string) []hwprobe.Report {
	match := regexp.MustCompile(`(?s)\n(\d+)\s+#.*Size:\s+(\d+)\(`).FindStringSubmatch(fixture.Text(t, file))
	if match == nil {
		t.Fatal("the recording reads otherwise than expected")
	}
	kib, err := strconv.ParseUint(match[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	gtt := strconv.FormatUint(kib<<10, 10)
	root := mapFS(sysfsCard("card0", "1002:1586", "0000:c6:00.0", map[string]string{"mem_info_vram_total": match[1], "mem_info_gtt_total": gtt}))
	h := bigHost("amd64")
	h.Kernel = "6.15.0" // "kernel <= 6.15"
	return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, h))}
}

// probeGPUStack probes the files that GPUStack's detector read: it prints the driver's bytes as MiB, and the compute
// driver's target as "gfx1101".
func probeGPUStack(t *testing.T, file string) []hwprobe.Report {
	var found []struct {
		Name     string
		UUID     string
		Target   string `json:"compute_capability"`
		Total    uint64 `json:"memory"`
		Used     uint64 `json:"memory_used"`
		Busy     int    `json:"cores_utilization"`
		Appendix struct {
			BDF  string
			Card int `json:"card_id"`
		}
	}
	if err := json.Unmarshal([]byte(fixture.Text(t, file)), &found); err != nil {
		t.Fatal(err)
	}
	var files []string
	for i, g := range found {
		files = append(files, sysfsCard(fmt.Sprintf("card%d", g.Appendix.Card), "1002:ffff", g.Appendix.BDF, map[string]string{
			"product_name": g.Name, "gpu_busy_percent": strconv.Itoa(g.Busy), "unique_id": strings.TrimPrefix(g.UUID, "GPU-"),
			"mem_info_vram_total": strconv.FormatUint(g.Total<<20, 10), "mem_info_vram_used": strconv.FormatUint(g.Used<<20, 10),
		})...)
		bus, err := strconv.ParseUint(g.Appendix.BDF[5:7], 16, 8)
		if err != nil || g.Target != "gfx1101" {
			t.Fatal(g.Target, err)
		}
		node := fmt.Sprintf("sys/class/kfd/kfd/topology/nodes/%d/properties", i+1)
		files = append(files, node, fmt.Sprintf("gfx_target_version 110001\nlocation_id %d\ndomain 0\n", bus<<8))
	}
	return []hwprobe.Report{Probe(t.Context(), machine(mapFS(files), absent{}, bigHost("amd64")))}
}

// probeNvtop probes what nvtop read: of the NVIDIA card by the library behind nvidia-smi, of the AMD one the driver's
// files. nvtop prints an APU's VRAM and GTT as one sum, which stands for the VRAM here, and "CPU Fan" for what the driver
// says is an APU; it prints no addresses, and the two here only tell the devices apart.
func probeNvtop(t *testing.T, file string) []hwprobe.Report {
	var found []struct {
		Name  string `json:"device_name"`
		Fan   string `json:"fan_speed"`
		Total string `json:"mem_total"`
		Used  string `json:"mem_used"`
		Free  string `json:"mem_free"`
	}
	if err := json.Unmarshal([]byte(fixture.Text(t, file)), &found); err != nil || len(found) != 2 || found[1].Fan != "CPU Fan" {
		t.Fatal(found, err)
	}
	mib := func(bytes string) string {
		n, err := strconv.ParseUint(bytes, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatUint(n>>20, 10) + " MiB"
	}
	nvidia, apu := found[0], found[1]
	smi := "uuid, name, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n" +
		fmt.Sprintf("GPU-0, %s, 00000000:01:00.0, %s, %s, %s\n", nvidia.Name, mib(nvidia.Total), mib(nvidia.Used), mib(nvidia.Free))
	files := sysfsCard("card1", "1002:1681", "0000:e6:00.0", map[string]string{"product_name": apu.Name, "mem_info_vram_total": apu.Total, "mem_info_vram_used": apu.Used})
	m := machine(mapFS(append(files, "sys/class/drm/card1/device/drm/renderD128/dev", "226:128\n")), toolsByName{"nvidia-smi": smi}, bigHost("amd64"))
	m.Calls.(source.Calls)[amd.CallFusion] = func(context.Context, ...string) (any, error) {
		return amd.DeviceInfo{DeviceID: 0x1681, IDsFlags: 1}, nil
	}
	return []hwprobe.Report{Probe(t.Context(), m)}
}
