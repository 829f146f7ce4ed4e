package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Where a recording is not what a probe reads, such as nvidia-smi's table, it is translated into that, and nothing is added:
// what the recording does not tell is left out.
var nvidiaRecordings = []recording{
	{"nvidia-sysfs-*.txtar", probeTreeFixture},
	{"nvidia-err-*", probeFailure},
	{"*gb10*.csv", probeGB10},
	{"gb10-nvml-calls.txt", probeGB10},
	{"gb10-gpud-memory.json", probeGPUd},
	{"nvidia-smi-jetson-addressing.query.csv", probeTwoJetsons},
	{"nvidia-smi-*.csv", func(t *testing.T, file string) []hwprobe.Report {
		return probeTool(t, "amd64", smiTool{csv: missingHeaders[file] + fixture.Text(t, file)})
	}},
	{"nvidia-smi-*.table.txt", probeTable},
	{"nvidia-smi-*.q.txt", func(t *testing.T, file string) []hwprobe.Report {
		return probeTool(t, "amd64", fromText(fixture.Text(t, file)))
	}},
	{"nvidia-smi-*L-*.txt", func(t *testing.T, file string) []hwprobe.Report {
		return probeTool(t, "amd64", fromList(fixture.Text(t, file)))
	}},
	{"nvidia-xml-*.xml", func(t *testing.T, file string) []hwprobe.Report {
		return probeTool(t, "amd64", smiTool{xml: fixture.Text(t, file)})
	}},
	{"nvidia-lspci-*.txt", func(t *testing.T, file string) []hwprobe.Report {
		return []hwprobe.Report{Probe(t.Context(), machine(fromLspci(fixture.Text(t, file)), absent{}, bigHost("amd64")))}
	}},
	{"tegrastats-*.txt", probeTegrastats},
	{"jetson-gopsutil-orin.txt", probeJetsonAgent},
	{"gpustack-detect-rtx4090-48g.json", probeDetector},
}

var nvidiaNoInput = map[string]string{}

const noMemoryInList = "the index says \"in file\", but --version and -L tell no memory"

var nvidiaAnswers = map[string]answer{
	"nvidia-smi-jetson-addressing.query.csv": {devices: 1, total: []string{"MemTotal"}, free: []string{"MemAvailable"}, unified: []string{"yes"},
		why: "the recording has a line each of two machines, which are probed one by one"},
	"nvidia-smi-2x-quadro-rtx4000-535.table.txt": {devices: 2, total: []string{"8589934592", "?"}, free: []string{"?"}, unified: []string{"no"},
		why: "the recording ends before the second card's total"},
	"nvidia-smi-h100-mig-linux-590.table.txt": {devices: 4, total: []string{"10468982784", "42412802048", "21072183296", "10468982784"},
		free: []string{"?"}, unified: []string{"no"}, why: "the report is ordered by id, where GPU instance 10 comes before 2; and the table " +
			"tells used and no free: the index subtracts, which is 1 MiB less than the free that -q tells of the same moment"},
	"nvidia-smi-h100-mig-linux-590.q.txt": {devices: 4, total: []string{"10468982784", "42412802048", "21072183296", "10468982784"},
		free:    []string{"10460594176", "42386587648", "21055406080", "10460594176"}, // 9976, 40423, 20080 and 9976 MiB
		unified: []string{"no"}, why: "\"in file\" are these; and the report is ordered by id"},
	"nvidia-smi-l40s-linux-595.q.txt": {devices: 1, total: []string{"48305799168"}, free: []string{"47668264960"}, unified: []string{"no"},
		why: "\"in file\" are the numbers of the index's last column"},
	"nvidia-smi-rtx2080s-windows-610.q.txt": {devices: 1, total: []string{"8589934592"}, free: []string{"7540310016"}, unified: []string{"no"},
		why: "\"in file\" are 8192 and 7191 MiB"},
	"nvidia-smi-rtx4080s-linux-595.q.txt": {devices: 1, total: []string{"17171480576"}, free: []string{"16093544448"}, unified: []string{"no"},
		why: "\"in file\" are the numbers of the index's last column"},
	"nvidia-smi-l40s-linux-595.L-version.txt":       {devices: 1, total: []string{"?"}, free: []string{"?"}, unified: []string{"no"}, why: noMemoryInList},
	"nvidia-smi-rtx2080s-windows-610.L-version.txt": {devices: 1, total: []string{"?"}, free: []string{"?"}, unified: []string{"no"}, why: noMemoryInList},
	"nvidia-smi-rtx4080s-linux-595.L-version.txt":   {devices: 1, total: []string{"?"}, free: []string{"?"}, unified: []string{"no"}, why: noMemoryInList},
	"nvidia-lspci-2x3080-20g-5090.txt": {devices: 2, total: []string{"?"}, free: []string{"?"}, unified: []string{"no"},
		why: "the third card is cut off, as the index says itself"},
	"gb10-gpud-memory.json": {devices: 1, total: []string{"128501256192"}, free: []string{"?"}, unified: []string{"yes"},
		why: "the recording's free is MemFree; MemAvailable, the right one, is not in it"},
	"gpustack-detect-rtx4090-48g.json": {devices: 2, total: []string{"51527024640"}, free: []string{"?"}, unified: []string{"no"},
		why: "the recording tells total and used; the driver's reserve is in neither, so free is not their difference"},
}

// missingHeaders are the headers of recordings that have none; every query of a probe has one.
var missingHeaders = map[string]string{
	"nvidia-smi-vgpu-h100l.query.csv": "clocks.current.sm [MHz], memory.total [MiB], name\n",
}

// smiTool is a Runner whose nvidia-smi prints this, by what it is asked for. It does not understand what is empty.
type smiTool struct{ csv, xml, list string }

func (s smiTool) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	if name != "nvidia-smi" {
		return absent{}.Run(ctx, name)
	}
	text := s.csv
	if slices.Contains(args, "-x") {
		text = s.xml
	} else if slices.Contains(args, "-L") {
		text = s.list
	}
	if text == "" {
		return source.Output{Stdout: []byte("Invalid combination of input arguments.\n"), ExitCode: 2}, nil
	}
	return source.Output{Stdout: []byte(text)}, nil
}

func probeTool(t *testing.T, arch string, tool smiTool) []hwprobe.Report {
	return []hwprobe.Report{Probe(t.Context(), machine(fstest.MapFS{}, tool, bigHost(arch)))}
}

// table writes cells, a map per device, as the CSV of a query for just these fields.
func table(rows []map[string]string) string {
	names := []string{}
	for _, row := range rows {
		for name := range row {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var csv strings.Builder
	fmt.Fprintln(&csv, strings.Join(names, ", "))
	for _, row := range rows {
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = row[name]
			if _, told := row[name]; !told {
				cells[i] = "[Unknown Error]"
			}
		}
		fmt.Fprintln(&csv, strings.Join(cells, ", "))
	}
	return csv.String()
}

// probeFailure gives the text on either stream: which one it came on was not recorded.
func probeFailure(t *testing.T, file string) []hwprobe.Report {
	text := []byte(fixture.Text(t, file))
	return []hwprobe.Report{
		Probe(t.Context(), machine(fstest.MapFS{}, printed{Stdout: text, ExitCode: 9}, bigHost("amd64"))),
		Probe(t.Context(), machine(fstest.MapFS{}, printed{Stderr: text, ExitCode: 9}, bigHost("amd64"))),
	}
}

// probeGB10 has the host's memory read from the recorded meminfo.
func probeGB10(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	if strings.HasSuffix(file, "nvml-calls.txt") { // NOT_SUPPORTED is what nvidia-smi prints as [N/A] beside the name
		text = table([]map[string]string{{"name": "NVIDIA GB10", "memory.total [MiB]": "[N/A]", "memory.free [MiB]": "[N/A]"}})
	}
	m := realHost(fstest.MapFS{}, smiTool{csv: text})
	m.Arch = "arm64"
	return []hwprobe.Report{Probe(meminfo(t, fixture.Text(t, "gb10.meminfo.txt")), m)}
}

func probeGPUd(t *testing.T, file string) []hwprobe.Report {
	var told struct {
		Memories []struct {
			UUID    string `json:"uuid"`
			Bus     string `json:"bus_id"`
			Total   uint64 `json:"total_bytes"`
			Unified bool   `json:"is_unified_memory"`
		}
	}
	decode(t, file, &told)
	d := told.Memories[0]
	if !d.Unified {
		t.Fatal("not unified")
	}
	host := fixedHost{OS: "linux", Arch: "arm64", TotalBytes: hwprobe.Known(d.Total)}
	csv := table([]map[string]string{{"uuid": d.UUID, "pci.bus_id": d.Bus, "memory.total [MiB]": "[N/A]", "memory.free [MiB]": "[N/A]"}})
	return []hwprobe.Report{Probe(t.Context(), machine(fstest.MapFS{}, smiTool{csv: csv}, host))}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(fixture.Text(t, file)), into); err != nil {
		t.Fatal(err)
	}
}

func probeTwoJetsons(t *testing.T, file string) []hwprobe.Report {
	var reports []hwprobe.Report
	for line := range strings.Lines(fixture.Text(t, file)) {
		reports = append(reports, probeTool(t, "arm64", smiTool{csv: "addressing_mode, memory.total [MiB], name\n" + line})...)
	}
	return reports
}

func probeTable(t *testing.T, file string) []hwprobe.Report {
	arch := "amd64"
	if strings.Contains(file, "gb10") {
		arch = "arm64"
	}
	return probeTool(t, arch, fromTable(fixture.Text(t, file)))
}

var (
	tableCard     = regexp.MustCompile(`^\|\s+\d+\s+(\S.*?)\s+(?:On|Off|WDDM|TCC|N/A)\s+\|\s+([0-9A-F]+:[0-9A-F]{2}:[0-9A-F]{2}\.\d)`)
	tableReadings = regexp.MustCompile(`^\|\s*\S+\s+(\d+)C\s+P\d+\s+\S+ /\s+\S+\s*\|\s+(?:\d+MiB /\s+(\d+)MiB|(Not Supported))\s+\|\s+(\S+)`)
	tableInstance = regexp.MustCompile(`^\|\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)\s+\|\s+\d+MiB /\s+(\d+)MiB`)
	tableMIG      = regexp.MustCompile(`^\|[^|]*\|[^|]*\|\s+Enabled \|`)
)

// fromTable translates nvidia-smi's table for people. It has no free memory, and cuts names.
func fromTable(text string) smiTool {
	var rows []map[string]string
	var instances strings.Builder
	for line := range strings.Lines(text) {
		if card := tableCard.FindStringSubmatch(line); card != nil {
			rows = append(rows, map[string]string{"name": card[1], "pci.bus_id": card[2]})
		} else if now := tableReadings.FindStringSubmatch(line); now != nil {
			row := rows[len(rows)-1]
			row["temperature.gpu"], row["utilization.gpu [%]"] = now[1], now[4]
			if row["memory.total [MiB]"] = now[2]; now[3] != "" {
				row["memory.total [MiB]"], row["memory.free [MiB]"] = now[3], now[3]
			}
		} else if part := tableInstance.FindStringSubmatch(line); part != nil {
			fmt.Fprintf(&instances, "<mig_device><index>%s</index><gpu_instance_id>%s</gpu_instance_id><compute_instance_id>%s</compute_instance_id>"+
				"<fb_memory_usage><total>%s MiB</total></fb_memory_usage></mig_device>", part[3], part[1], part[2], part[4])
		} else if tableMIG.MatchString(line) {
			rows[len(rows)-1]["mig.mode.current"] = "Enabled"
		}
	}
	tool := smiTool{csv: table(rows)}
	if instances.Len() > 0 {
		tool.xml = fmt.Sprintf(`<nvidia_smi_log><gpu id="%s"><mig_devices>%s</mig_devices></gpu></nvidia_smi_log>`, rows[0]["pci.bus_id"], &instances)
	}
	return tool
}

// textFields are the CSV's names of lines of "nvidia-smi -q", by section and key.
var textFields = map[string]string{
	"/Product Name": "name", "/GPU UUID": "uuid", "PCI/Bus Id": "pci.bus_id", "/Addressing Mode": "addressing_mode", "MIG Mode/Current": "mig.mode.current",
	"FB Memory Usage/Total": "memory.total [MiB]", "FB Memory Usage/Free": "memory.free [MiB]", "Utilization/GPU": "utilization.gpu [%]",
	"Temperature/GPU Current Temp": "temperature.gpu", "GPU Power Readings/Average Power Draw": "power.draw [W]",
}

// instanceElements are the XML's names of lines of a MIG device.
var instanceElements = map[string]string{
	"Index": "<index>%s</index>", "GPU Instance ID": "<gpu_instance_id>%s</gpu_instance_id>", "Compute Instance ID": "<compute_instance_id>%s</compute_instance_id>",
	"Shared FB Memory Usage/Total": "<fb_memory_usage><total>%s</total>", "Shared FB Memory Usage/Free": "<free>%s</free></fb_memory_usage>",
}

// fromText translates the text of "nvidia-smi -q" of one card. Four spaces are a level.
func fromText(text string) smiTool {
	row := map[string]string{}
	var sections [4]string
	var instances strings.Builder
	for line := range strings.Lines(text) {
		level := (len(line) - len(strings.TrimLeft(line, " "))) / 4
		key, value, leaf := strings.Cut(strings.TrimSpace(line), " : ")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !leaf && level < len(sections):
			sections[level] = key
			if level == 1 && key == "MIG Device" {
				instances.WriteString("</mig_device><mig_device>")
			}
		case level == 0 && key == "Driver Version":
			row["driver_version"] = value
		case level == 1 && textFields["/"+key] != "":
			row[textFields["/"+key]] = value
		case level == 2 && sections[1] != "MIG Device" && textFields[sections[1]+"/"+key] != "":
			row[textFields[sections[1]+"/"+key]] = value
		case level == 2 && sections[1] == "MIG Device" && instanceElements[key] != "":
			fmt.Fprintf(&instances, instanceElements[key], value)
		case level == 3 && sections[1] == "MIG Device" && instanceElements[sections[2]+"/"+key] != "":
			fmt.Fprintf(&instances, instanceElements[sections[2]+"/"+key], value)
		}
	}
	tool := smiTool{csv: table([]map[string]string{row})}
	if parts, has := strings.CutPrefix(instances.String(), "</mig_device>"); has {
		tool.xml = fmt.Sprintf(`<nvidia_smi_log><gpu id="%s"><mig_devices>%s</mig_device></mig_devices></gpu></nvidia_smi_log>`, row["pci.bus_id"], parts)
	}
	return tool
}

// fromList translates "nvidia-smi -L": names and UUIDs, and which cards are split.
func fromList(text string) smiTool {
	var rows []map[string]string
	for _, card := range regexp.MustCompile(`(?m)^GPU \d+: (.*) \(UUID: (\S+)\)(\n  MIG)?`).FindAllStringSubmatch(text, -1) {
		row := map[string]string{"name": card[1], "uuid": card[2]}
		if card[3] != "" {
			row["mig.mode.current"] = "Enabled"
		}
		rows = append(rows, row)
	}
	return smiTool{csv: table(rows), list: text}
}

// fromLspci translates "lspci -nnk" into the files of the PCI bus.
func fromLspci(text string) fs.FS {
	files := fstest.MapFS{}
	device := regexp.MustCompile(`(?m)^(\S+) [^\[]*\[(\w{4})\]: .*\[(\w{4}:\w{4})\] \(rev \w+\)(?:\n\t.*)*?(?:\n\tKernel driver in use: (\S+))?$`)
	for _, d := range device.FindAllStringSubmatch(text, -1) {
		uevent := fmt.Sprintf("DRIVER=%s\nPCI_CLASS=%s00\nPCI_ID=%s\nPCI_SLOT_NAME=0000:%s\n", d[4], d[2], strings.ToUpper(d[3]), d[1])
		files["sys/bus/pci/devices/0000:"+d[1]+"/uevent"] = &fstest.MapFile{Data: []byte(uevent)}
	}
	return files
}

// stream is a Runner whose tegrastats prints this until it is ended.
type stream string

func (s stream) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	if name != "tegrastats" {
		return absent{}.Run(ctx, name, args...)
	}
	return source.Output{Stdout: []byte(s)}, context.DeadlineExceeded
}

// probeTegrastats takes the host's memory from the line, too: used leaves out what the kernel can drop.
func probeTegrastats(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	ram := regexp.MustCompile(`RAM (\d+)/(\d+)MB`).FindStringSubmatch(text)
	used, err1 := strconv.ParseUint(ram[1], 10, 64)
	total, err2 := strconv.ParseUint(ram[2], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal("no memory")
	}
	host := fixedHost{OS: "linux", Arch: "arm64", TotalBytes: hwprobe.Known(total << 20), AvailableBytes: hwprobe.Known((total - used) << 20)}
	board := fstest.MapFS{"etc/nv_tegra_release": {Data: []byte("# R36 (release), REVISION: 4.3\n")}}
	r := Probe(t.Context(), machine(board, stream(strings.TrimSpace(text)+"\n"), host))
	if r.Devices[0].Utilisation == (hwprobe.Number{}) {
		t.Error("utilisation is unknown")
	}
	return []hwprobe.Report{r}
}

// probeJetsonAgent has the name of the device and the host's memory; the agent's MemoryTotal of 0 is [N/A] misread.
func probeJetsonAgent(t *testing.T, file string) []hwprobe.Report {
	told := regexp.MustCompile(`Mem:([\d.]+) MemUsed:([\d.]+) .*Name:(.*?) Temperature`).FindStringSubmatch(fixture.Text(t, file))
	total, err1 := strconv.ParseFloat(told[1], 64)
	used, err2 := strconv.ParseFloat(told[2], 64)
	if err1 != nil || err2 != nil {
		t.Fatal("no memory")
	}
	const gibibyte = 1 << 30
	host := fixedHost{OS: "linux", Arch: "arm64", TotalBytes: hwprobe.Known(uint64(total * gibibyte)), AvailableBytes: hwprobe.Known(uint64((total - used) * gibibyte))}
	csv := table([]map[string]string{{"name": told[3], "memory.total [MiB]": "[N/A]", "memory.free [MiB]": "[N/A]"}})
	return []hwprobe.Report{Probe(t.Context(), machine(fstest.MapFS{}, smiTool{csv: csv}, host))}
}

func probeDetector(t *testing.T, file string) []hwprobe.Report {
	var told []struct {
		Name, UUID string
		Driver     string `json:"driver_version"`
		Memory     uint64 // MiB
		Appendix   struct{ BDF string }
	}
	decode(t, file, &told)
	var rows []map[string]string
	for _, d := range told {
		rows = append(rows, map[string]string{"name": d.Name, "uuid": d.UUID, "driver_version": d.Driver, "pci.bus_id": d.Appendix.BDF,
			"memory.total [MiB]": fmt.Sprint(d.Memory, " MiB")})
	}
	return probeTool(t, "amd64", smiTool{csv: table(rows)})
}
