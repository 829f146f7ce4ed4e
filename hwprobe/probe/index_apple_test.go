package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/apple"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

var appleRecordings = []recording{
	{"mac-applegpuinfo.txt", probeAppleGPUInfo},
	{"mac-m1max-32g.txt", probeM1Max},
	{"mac-m5max-128g.txt", probeM5Max},
	{"mac-m2max-96g-decimal-comma.log", func(t *testing.T, file string) []hwprobe.Report {
		// A C program prints this with the locale's comma; the number behind it is Metal's, in MiB.
		return []hwprobe.Report{probeMetal(t, "Apple M2 Max", sizeIn(t, fixture.Text(t, file), `recommendedMaxWorkingSetSize  = (\S+) MB`, 20))}
	}},
	{"mac-m3-16g.txt", func(t *testing.T, file string) []hwprobe.Report {
		return []hwprobe.Report{probeMetal(t, "Apple M3", sizeIn(t, fixture.Text(t, file), `(\S+) GB GPU-available`, 30))}
	}},
	{"mac-m4-16g.txt", func(t *testing.T, file string) []hwprobe.Report {
		return []hwprobe.Report{probeMetal(t, "Apple M4", sizeIn(t, fixture.Text(t, file), `~(\S+) GB on`, 30))}
	}},
	{"mac-m2ultra-192g.log", func(t *testing.T, file string) []hwprobe.Report {
		// The log names the device and has no number that Metal gives: neither the limit nor the size of main memory.
		name := textIn(t, fixture.Text(t, file), `GPU name:\s+(.+)`)
		return []hwprobe.Report{probeMac(t, nil, 0, map[string]any{apple.CallMetal: []apple.MetalDevice{{Name: name, HasUnifiedMemory: hwprobe.Known(true)}}})}
	}},
	{"mac-spmemory-m1-8g.json", func(t *testing.T, file string) []hwprobe.Report {
		// The host's own reader asks hw.memsize, which is what this tool prints in GB. No source of GPUs was recorded.
		return []hwprobe.Report{probeMac(t, nil, sizeIn(t, fixture.Text(t, file), `"SPMemoryDataType" : "(\d+) GB"`, 30), nil)}
	}},
	{"mac-system_profiler-*.json", func(t *testing.T, file string) []hwprobe.Report {
		return []hwprobe.Report{probeMac(t, toolsByName{"system_profiler": fixture.Text(t, file)}, 0, nil)}
	}},
	{"mac-system_profiler-m3.txt", probeProfilerText},
}

var appleNoInput = map[string]string{}

var appleAnswers = map[string]answer{
	"mac-applegpuinfo.txt": {devices: 1, total: []string{"-"}, free: []string{"?"}, unified: []string{"yes"}, why: "the five machines " +
		"are probed one by one; the row's totals are main memory, which is the host's, and the recording's function compares them"},
	"mac-m2ultra-192g.log": {devices: 1, total: []string{"?"}, free: []string{"?"}, unified: []string{"yes"}, why: "the free bytes are " +
		"what ollama made of a limit and of page counts that the log does not have; a probe has nothing to make them of"},
	"mac-m3-16g.txt": {devices: 1, total: []string{"12713103196"}, free: []string{"?"}, unified: []string{"yes"}, why: "the same line " +
		"calls a machine of 16 GiB 16.00 GB, so its GB are GiB, rounded"},
	"mac-m4-16g.txt": {devices: 1, total: []string{"11456825262"}, free: []string{"?"}, unified: []string{"yes"}, why: "10.67 is two " +
		"thirds of 16, so these GB are GiB, rounded"},
	"mac-m5max-128g.txt": {devices: 1, total: []string{"115448720916"}, free: []string{"?"}, unified: []string{"yes"}, why: "the " +
		"row has one machine twice; the one with the raised limit is compared in the recording's function"},
	"mac-system_profiler-intel-two-gpus.json": {devices: 2, total: []string{"1610612736", "4294967296"}, free: []string{"?", "?"},
		unified: []string{"yes", "no"}, why: "the recording tells both sizes, as the row's own words say: 1536 MB and 4 GB"},
}

// probeMac probes a Mac with these tools, main memory and answers; 0 bytes are not told.
func probeMac(t *testing.T, tools toolsByName, ram uint64, calls map[string]any) hwprobe.Report {
	t.Helper()
	h := fixedHost{OS: "darwin", Arch: "arm64"}
	if ram > 0 {
		h.TotalBytes = hwprobe.Known(ram)
	}
	m := machine(fstest.MapFS{}, tools, h)
	m.OS = "darwin"
	for name, answer := range calls {
		m.Calls.(source.Calls)[name] = func(context.Context, ...string) (any, error) { return answer, nil }
	}
	return Probe(t.Context(), m)
}

// probeMetal probes a Mac of which only Metal's limit was recorded.
func probeMetal(t *testing.T, name string, limit uint64) hwprobe.Report {
	t.Helper()
	return probeMac(t, nil, 0, map[string]any{apple.CallMetal: []apple.MetalDevice{
		{Name: name, HasUnifiedMemory: hwprobe.Known(true), MaxWorkingSet: hwprobe.Known(limit)}}})
}

func textIn(t *testing.T, text, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("no %s in %q", pattern, text)
	}
	return strings.TrimSpace(match[1])
}

// sizeIn reads a size, whose decimals may have a comma, in units of 2^shift bytes.
func sizeIn(t *testing.T, text, pattern string, shift uint) uint64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.Replace(textIn(t, text, pattern), ",", ".", 1), 64)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n * float64(uint64(1)<<shift))
}

// registryEntry is how ioreg prints an accelerator with these properties.
func registryEntry(properties ...string) string {
	return "+-o AGXAcceleratorG13X  <class AGXAcceleratorG13X, id 0x100000381, registered, matched, active, busy 0 (0 ms), retain 77>\n    {\n      " +
		strings.Join(properties, "\n      ") + "\n    }\n"
}

// probeAppleGPUInfo probes five machines of which the chip, its GPU cores and main memory were recorded: a library read the
// I/O registry and hw.memsize.
func probeAppleGPUInfo(t *testing.T, file string) []hwprobe.Report {
	var reports []hwprobe.Report
	for _, block := range strings.Split(strings.TrimSpace(fixture.Text(t, file)), "\n\n") {
		name, cores := textIn(t, block, `GPU name: (.+)`), textIn(t, block, `GPU core count: (\d+)`)
		ram := sizeIn(t, block, `GPU memory: (\d+) GB`, 30)
		r := probeMac(t, toolsByName{"ioreg": registryEntry(fmt.Sprintf("%q = %q", "model", name), fmt.Sprintf("%q = %s", "gpu-core-count", cores))}, ram, nil)
		checkPool(t, r, hwprobe.HostPool, strconv.FormatUint(ram, 10), "?")
		for _, d := range r.Devices {
			p, _ := r.Pool(d.Pool)
			if total := p.TotalBytes.Or(0); total == 0 || total >= ram || p.TotalSource != hwprobe.SourceEstimate {
				t.Errorf("%s: %d of %d bytes from %q, want less, named an estimate", d.Name, total, ram, p.TotalSource)
			}
			if want := fmt.Sprintf("%s (%s-core GPU)", name, cores); d.Name != want {
				t.Errorf("name %q, want %q", d.Name, want)
			}
		}
		reports = append(reports, r)
	}
	return reports
}

// probeM1Max: llama.cpp asks Metal for both numbers, and its own process was all that used the GPU.
func probeM1Max(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	limit, free := sizeIn(t, text, `\((\d+) MiB,`, 20), sizeIn(t, text, `, (\d+) MiB free`, 20)
	wired, err := strconv.ParseUint(textIn(t, text, `iogpu.wired_limit_mb: (\d+)`), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	ioreg := registryEntry(fmt.Sprintf(`"PerformanceStatistics" = {"In use system memory (driver)"=0,"In use system memory"=%d}`, limit-free))
	calls := map[string]any{apple.CallSysctl: wired, apple.CallMetal: []apple.MetalDevice{
		{Name: textIn(t, text, `MTL0: ([^(]+)`), RegistryID: 0x100000381, HasUnifiedMemory: hwprobe.Known(true), MaxWorkingSet: hwprobe.Known(limit)}}}
	pages := "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free: 2000000.\nPages inactive: 0.\nPages speculative: 0.\n" // more than the limit
	tools := toolsByName{"ioreg": ioreg, "vm_stat": pages}
	withMetal := probeMac(t, tools, 32<<30, calls)
	delete(calls, apple.CallMetal) // the setting alone gives the same limit
	tools["ioreg"] = strings.Replace(ioreg, "{\n", "{\n      \"model\" = \"Apple M1 Max\"\n", 1)
	return []hwprobe.Report{withMetal, probeMac(t, tools, 32<<30, calls)}
}

func probeM5Max(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	raised := probeMetal(t, "Apple M5 Max", sizeIn(t, text, `(\S+) GiB\s+# with iogpu`, 30))
	for _, d := range raised.Devices {
		checkPool(t, raised, d.Pool, "120259084288", "?")
	}
	return []hwprobe.Report{probeMetal(t, "Apple M5 Max", sizeIn(t, text, `(\S+) GiB\s+# stock`, 30))}
}

// probeProfilerText makes the JSON of system_profiler's text: these labels are the English ones of these keys.
func probeProfilerText(t *testing.T, file string) []hwprobe.Report {
	text := fixture.Text(t, file)
	gpu := map[string]string{"_name": textIn(t, text, `(?m)^    (\S.+):$`), "sppci_model": textIn(t, text, `Chipset Model: (.+)`),
		"sppci_cores": textIn(t, text, `Total Number of Cores: (\d+)`), "spdisplays_vendor": "sppci_vendor_" + textIn(t, text, `Vendor: (\w+)`)}
	printed, err := json.Marshal(map[string]any{"SPDisplaysDataType": []any{gpu}})
	if err != nil {
		t.Fatal(err)
	}
	return []hwprobe.Report{probeMac(t, toolsByName{"system_profiler": string(printed)}, 0, nil)}
}
