package probe

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/pciids"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	"github.com/loopkeeper/loopkeeper/hwprobe/windows"
)

var windowsRecordings = []recording{
	{"win-carveout-810.txt", probeCarveOut},
	{"win-cim-intel-uhd.txt", probePNPDevices},
	{"win-gwmi-uhd630-1050ti.txt", probePNPDevices},
	{"win-directx-registry-luid-8060s.md", probeDirectXTable},
	{"win-dxcore-four-machines.md", probeDXCore},
	{"win-enum-dxgi-cezanne.txt", func(t *testing.T, file string) []hwprobe.Report {
		text := fixture.Text(t, file)
		return []hwprobe.Report{probePC(t, windowsPC{adapters: []windows.Adapter{{Description: textIn(t, text, `Adapter \(1\): (.+)`),
			LUID: hexIn(t, text, `LUID: 0x(\w+)`, 16), VendorID: uint32(hexIn(t, text, `Vendor ID: 0x(\w+)`, 16)), DeviceID: uint32(hexIn(t, text, `Device ID: 0x(\w+)`, 16))}}})}
	}},
	{"win-fastfetch-8060s.json", probeFastfetch},
	{"win-registry-a770-memorysize.txt", probeLegacySize},
	{"win-three-sources-4070ti.md", probeThreeSources},
	{"win-wmi-gtx1660.txt", func(t *testing.T, file string) []hwprobe.Report {
		text := fixture.Text(t, file) // AdapterRAM is not carried over: nothing that a probe reads has it
		return []hwprobe.Report{probePC(t, windowsPC{adapters: []windows.Adapter{
			{Description: textIn(t, text, `Caption +: (.+)`), VendorID: vendorByName[textIn(t, text, `AdapterCompatibility +: (\w+)`)]}}})}
	}},
	{"win-wmic-4090-uhd770.txt", func(t *testing.T, file string) []hwprobe.Report {
		var adapters []windows.Adapter
		for _, line := range regexp.MustCompile(`(?m)^\d+ +VideoController\d +(.+?) +5$`).FindAllStringSubmatch(fixture.Text(t, file), -1) {
			adapters = append(adapters, named(line[1]))
		}
		return []hwprobe.Report{probePC(t, windowsPC{adapters: adapters})}
	}},
}

var windowsNoInput = map[string]string{
	"win-cim-amd16g.txt": "only AdapterRAM was recorded, which no probe asks for: it has 32 bits and says 4 GB of every larger card",
}

const hostsMemory = "a processor's graphics whose own limits the recording does not tell draw on the host's memory, and the machine tells that"

var windowsAnswers = map[string]answer{
	"win-cim-intel-uhd.txt":      {devices: 1, total: []string{"MemTotal"}, free: []string{"MemAvailable"}, unified: []string{"yes"}, why: hostsMemory},
	"win-enum-dxgi-cezanne.txt":  {devices: 1, total: []string{"MemTotal"}, free: []string{"MemAvailable"}, unified: []string{"yes"}, why: hostsMemory},
	"win-gwmi-uhd630-1050ti.txt": {devices: 2, total: []string{"MemTotal", "?"}, free: []string{"MemAvailable", "?"}, unified: []string{"yes", "no"}, why: hostsMemory},
	"win-wmic-4090-uhd770.txt":   {devices: 2, total: []string{"?", "MemTotal"}, free: []string{"?", "MemAvailable"}, unified: []string{"no", "yes"}, why: hostsMemory},
	"win-dxcore-four-machines.md": {devices: 4, total: []string{"19402850304", "17242783744", "8511291392", "8282701824"}, free: []string{"?"},
		unified: []string{"yes", "yes", "yes", "no"}, why: "the adapters of the four machines are probed as one machine's"},
	"win-registry-a770-memorysize.txt": {devices: 1, total: []string{"?"}, free: []string{"?"}, unified: []string{"no"}, why: "the row's total is '?' with a remark"},
	"win-wmi-gtx1660.txt":              {devices: 1, total: []string{"?"}, free: []string{"?"}, unified: []string{"no"}, why: "the row's total is '?' with a remark"},
	"win-three-sources-4070ti.md": {devices: 2, total: []string{"12878610432", "?"}, free: []string{"?", "?"}, unified: []string{"no", "yes"}, why: "536870912 is what " +
		"the firmware set aside for the second device; how much of main memory it may use besides was not recorded, and the recording's function compares the part"},
}

// windowsPC is what Windows answers on a machine.
type windowsPC struct {
	adapters []windows.Adapter
	kernel   []windows.KernelAdapter
	registry map[string][]windows.RegistryKey
	counters map[string][]windows.CounterValue
	tools    toolsByName
	host     fixedHost // bigHost where nothing of it was recorded
}

func probePC(t *testing.T, pc windowsPC) hwprobe.Report {
	t.Helper()
	if pc.host == (fixedHost{}) {
		pc.host = bigHost("amd64")
	}
	m := machine(fstest.MapFS{}, pc.tools, pc.host)
	m.OS = "windows"
	calls := m.Calls.(source.Calls)
	if pc.adapters != nil {
		calls[windows.CallDXGI] = func(context.Context, ...string) (any, error) { return pc.adapters, nil }
	}
	if pc.kernel != nil {
		calls[windows.CallKernel] = func(context.Context, ...string) (any, error) { return pc.kernel, nil }
	}
	calls[windows.CallRegistry] = func(_ context.Context, args ...string) (any, error) { return pc.registry[args[0]], nil }
	if pc.counters != nil {
		calls[windows.CallCounters] = func(context.Context, ...string) (any, error) { return pc.counters, nil }
	}
	return Probe(t.Context(), m)
}

const (
	directXKey  = `SOFTWARE\Microsoft\DirectX`
	displaysKey = `SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}`
	pciKey      = `SYSTEM\CurrentControlSet\Enum\PCI`
)

// vendorByName has the vendors' ids, deviceByName what the public PCI id list says of the names in recordings that leave the
// ids out; a probe never goes from a name to an id.
var (
	vendorByName = map[string]uint32{"NVIDIA": pciids.NVIDIA, "AMD": pciids.AMD, "Intel": pciids.Intel, "Intel(R)": pciids.Intel, "Qualcomm": 0x4d4f4351}
	deviceByName = map[string]uint32{"Radeon(TM) 8060S Graphics": 0x1586, "Radeon 860M": 0x1114, "Arc 140V GPU (16GB)": 0x64a0, "UHD Graphics 770": 0x4680,
		"GeForce RTX 4090": 0x2684, "RTX 5060 Laptop GPU": 0x2d19, "Adreno X1-85 GPU": 0}
)

func named(name string) windows.Adapter {
	vendor, device, _ := strings.Cut(name, " ")
	return windows.Adapter{Description: name, VendorID: vendorByName[vendor], DeviceID: deviceByName[device]}
}

// probePNPDevices probes adapters of which WMI's names and PNPDeviceIDs were recorded, in the order of the file. A PNPDeviceID
// has the ids that DXGI gives.
func probePNPDevices(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	var adapters []windows.Adapter
	for _, match := range regexp.MustCompile(`PCI\\VEN_(\w{4})&DEV_(\w{4})&SUBSYS_(\w{8})&REV_(\w\w)`).FindAllStringSubmatch(text, -1) {
		var id [4]uint32
		for i, digits := range match[1:] {
			n, err := strconv.ParseUint(digits, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			id[i] = uint32(n)
		}
		adapters = append(adapters, windows.Adapter{VendorID: id[0], DeviceID: id[1], SubSysID: id[2], Revision: id[3]})
	}
	return []hwprobe.Report{probePC(t, windowsPC{adapters: adapters})}
}

// probeCarveOut: what Windows calls the machine's memory is what the firmware left of the 32 GiB; the row says whose the 8 GiB
// are, a 780M's (1002:1900 in a Ryzen 8845HS).
func probeCarveOut(t *testing.T, file string) []hwprobe.Report {
	total := sizeIn(t, fixture.Text(t, file), `os_total_gib=(\S+)`, 30)
	r := probePC(t, windowsPC{adapters: []windows.Adapter{{VendorID: pciids.AMD, DeviceID: 0x1900, DedicatedVideo: hwprobe.Known[uint64](8 << 30),
		SharedSystem: hwprobe.Known(total / 2)}}, host: fixedHost{OS: "windows", Arch: "amd64", TotalBytes: hwprobe.Known(total)}})
	checkPool(t, r, hwprobe.HostPool, "25580843008", "?") // neither the installed 32 GiB nor less by what the device may borrow
	for _, d := range r.Devices {
		checkPool(t, r, d.Pool, strconv.FormatUint(8<<30+total/2, 10), "?")
	}
	return []hwprobe.Report{r}
}

// tableRows are the cells of a markdown table without its header.
func tableRows(text, firstHeader string) [][]string {
	_, table, _ := strings.Cut(text, "| "+firstHeader)
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	return rows
}

// probeDirectXTable probes the registry's records and the counters as two tables have them. The 8060S is 1002:1586.
func probeDirectXTable(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	pc := windowsPC{registry: map[string][]windows.RegistryKey{}, counters: map[string][]windows.CounterValue{}}
	for _, row := range tableRows(text, "Description") {
		number := func(cell string) windows.RegistryValue {
			n, err := strconv.ParseUint(cell, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return windows.RegistryValue{Number: hwprobe.Known(n)}
		}
		values := map[string]windows.RegistryValue{"Description": {Text: row[0]}, "VendorId": number(row[1]), "AdapterLuid": number(row[2])}
		if strings.Contains(row[0], "8060S") {
			values["DeviceId"] = number("5510")
		}
		pc.registry[directXKey] = append(pc.registry[directXKey], windows.RegistryKey{Name: row[0], Values: values})
	}
	for _, row := range tableRows(text, "instance") {
		for i, path := range []string{`\GPU Adapter Memory(*)\Dedicated Usage`, `\GPU Adapter Memory(*)\Shared Usage`} {
			n, err := strconv.ParseFloat(row[2+i], 64)
			if err != nil {
				t.Fatal(err)
			}
			pc.counters[path] = append(pc.counters[path], windows.CounterValue{Instance: row[0], Value: int64(n * 1e9)})
		}
	}
	r := probePC(t, pc)
	if len(r.Devices) != 1 || r.Devices[0].LUID != "0x00000000_0x0001532a" {
		t.Errorf("devices %+v, want the 8060S with the LUID that the counters have", r.Devices)
	}
	return []hwprobe.Report{r}
}

// probeDXCore: DXCore gives the numbers of DXGI's description. The adapters of four machines get LUIDs in the file's order.
func probeDXCore(t *testing.T, file string) []hwprobe.Report {
	pc := windowsPC{}
	for _, row := range tableRows(fixture.Text(t, file), "Feature") {
		a := named(row[1])
		if _, listed := deviceByName[strings.SplitN(row[1], " ", 2)[1]]; !listed {
			t.Fatalf("no id for %s", row[1])
		}
		a.DedicatedVideo = hwprobe.Known(sizeIn(t, strings.ReplaceAll(row[2], ",", ""), `(\d+) MiB dedicated`, 20))
		a.SharedSystem = hwprobe.Known(sizeIn(t, strings.ReplaceAll(row[2], ",", ""), `(\d+) MiB shared`, 20))
		a.LUID = uint64(len(pc.adapters) + 1)
		pc.adapters = append(pc.adapters, a)
	}
	return []hwprobe.Report{probePC(t, pc)}
}

// probeFastfetch: fastfetch reads DirectX' records and prints the LUID as deviceId. It leaves the PCI ids out.
func probeFastfetch(t *testing.T, file string) []hwprobe.Report {
	var modules []struct {
		Result []struct {
			Name     string
			DeviceID uint64
			Memory   struct{ Dedicated, Shared struct{ Total uint64 } }
		}
	}
	if err := json.Unmarshal([]byte(fixture.Text(t, file)), &modules); err != nil {
		t.Fatal(err)
	}
	var records []windows.RegistryKey
	for _, g := range modules[0].Result {
		a, number := named(g.Name), func(n uint64) windows.RegistryValue { return windows.RegistryValue{Number: hwprobe.Known(n)} }
		records = append(records, windows.RegistryKey{Name: "{1}", Values: map[string]windows.RegistryValue{
			"Description": {Text: g.Name}, "VendorId": number(uint64(a.VendorID)), "DeviceId": number(uint64(a.DeviceID)), "AdapterLuid": number(g.DeviceID),
			"DedicatedVideoMemory": number(g.Memory.Dedicated.Total), "SharedSystemMemory": number(g.Memory.Shared.Total)}})
	}
	return []hwprobe.Report{probePC(t, windowsPC{registry: map[string][]windows.RegistryKey{directXKey: records}})}
}

// probeLegacySize: the value stands in the driver's key of an Arc A770, 8086:56a0, which DXGI lists.
func probeLegacySize(t *testing.T, file string) []hwprobe.Report {
	raw := strings.ReplaceAll(textIn(t, fixture.Text(t, file), `MemorySize = ([0-9A-F ]+)`), " ", "")
	return []hwprobe.Report{probePC(t, windowsPC{adapters: []windows.Adapter{{VendorID: pciids.Intel, DeviceID: 0x56a0}},
		registry: map[string][]windows.RegistryKey{displaysKey: {{Name: "0000", Values: map[string]windows.RegistryValue{
			"MatchingDeviceId": {Text: `PCI\VEN_8086&DEV_56A0`}, "HardwareInformation.MemorySize": {Hex: raw}}}}}})}
}

// probeThreeSources probes the first box: the card as nvidia-smi and the registry have it, and the processor's graphics, whose
// chip was not recorded and is taken to be Raphael (1002:164e), as are both addresses.
func probeThreeSources(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	driver := func(name, id, pattern string, slot string) (windows.RegistryKey, windows.RegistryKey) {
		size := windows.RegistryValue{Number: hwprobe.Known(hexIn(t, text, pattern, 10))}
		return windows.RegistryKey{Name: name, Values: map[string]windows.RegistryValue{"MatchingDeviceId": {Text: `PCI\` + id}, "HardwareInformation.qwMemorySize": size}},
			windows.RegistryKey{Name: id + `\4&1`, Values: map[string]windows.RegistryValue{"Driver": {Text: `{4d36e968-e325-11ce-bfc1-08002be10318}\` + name},
				"LocationInformation": {Text: `@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(` + slot + `)`}}}
	}
	cardDriver, cardDevice := driver("0000", "VEN_10DE&DEV_2782", `qwMemorySize. \| (\d+) \(`, "1,0,0")
	ownDriver, ownDevice := driver("0001", "VEN_1002&DEV_164E", `qwMemorySize. \| \d+ \([^|]+\| (\d+)`, "16,0,0")
	r := probePC(t, windowsPC{
		adapters: []windows.Adapter{{VendorID: pciids.NVIDIA, DeviceID: 0x2782, LUID: 1}, {VendorID: pciids.AMD, DeviceID: 0x164e, LUID: 2}},
		kernel:   []windows.KernelAdapter{{LUID: 2, Address: &windows.BusAddress{Bus: 16}}, {LUID: 1, Address: &windows.BusAddress{Bus: 1}}},
		registry: map[string][]windows.RegistryKey{displaysKey: {cardDriver, ownDriver}, pciKey: {ownDevice, cardDevice}},
		tools: toolsByName{"nvidia-smi": "name, uuid, pci.bus_id, memory.total [MiB]\nNVIDIA GeForce RTX 4070 Ti, GPU-1, 00000000:01:00.0, " +
			textIn(t, text, "memory.total. \\| (\\d+ MiB)") + "\n"},
	})
	if p, _ := r.Pool("gpu:0000:10:00.0"); len(p.Parts) != 2 || p.Parts[0].TotalBytes != hwprobe.Known[uint64](536870912) {
		t.Errorf("pool %+v, want 536870912 bytes set aside", p)
	}
	return []hwprobe.Report{r}
}
