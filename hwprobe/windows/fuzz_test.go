package windows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// fuzzedPC answers each call with given bytes.
type fuzzedPC struct{ dxgi, kernel, registry, counters []byte }

func (p fuzzedPC) Call(_ context.Context, name string, _ ...string) ([]byte, error) {
	return map[string][]byte{CallDXGI: p.dxgi, CallKernel: p.kernel, CallRegistry: p.registry, CallCounters: p.counters}[name], nil
}

func marshal(f *testing.F, value any) []byte {
	f.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// checkFound holds what is true whatever Windows answers.
func checkFound(t *testing.T, found hwprobe.Findings, input string) {
	t.Helper()
	ids := map[string]bool{}
	for _, d := range found.Devices {
		if address, ok := hwprobe.PCIAddress(d.PCI); ids[d.ID] || d.Name == "" || d.PCI != "" && (!ok || address != d.PCI) {
			t.Errorf("device %+v", d)
		}
		ids[d.ID] = true
	}
	for _, p := range found.Pools {
		total, known := p.TotalBytes.Value()
		if !ids[p.ID] || known && p.FreeBytes.Or(0) > total || p.Kind == hwprobe.PoolOfDevice && known && total == 0 {
			t.Errorf("pool %+v", p)
		}
		if p.Kind == hwprobe.PoolOfDevice && p.TotalSource == hwprobe.SourceDXGI && !strings.Contains(input, "dedicated_system") && !strings.Contains(input, fmt.Sprint(total)) {
			t.Errorf("%d is not in the input", total)
		}
	}
}

func FuzzAdapters(f *testing.F) {
	f.Add(marshal(f, radeons(7, 8)), marshal(f, []KernelAdapter{at(8, 3), at(7, 12)}), marshal(f, counters(map[string][2]int64{"luid_0x00000000_0x00000007_phys_0": {1 << 30, 0}})))
	f.Add([]byte(`[{"vendor_id":4098,"device_id":5510,"dedicated_video_memory":8354103296,"shared_system_memory":12696061952,"adapter_luid":86826}]`), []byte(`[{"adapter_luid":86826,"type":35}]`), []byte(`{}`))
	f.Add([]byte(`[{"vendor_id":1297040209},{"vendor_id":7893}]`), []byte(`null`), []byte(`null`))
	f.Fuzz(func(t *testing.T, dxgi, kernel, counters []byte) {
		calls := fuzzedPC{dxgi: dxgi, kernel: kernel, registry: []byte("[]"), counters: counters}
		host := hwprobe.Host{TotalBytes: gib(32), AvailableBytes: gib(8)}
		checkFound(t, Probe(t.Context(), source.Machine{OS: "windows", Arch: "amd64", Files: fstest.MapFS{}, Calls: calls}, host), string(dxgi))
	})
}

// FuzzRegistry answers every question to the registry with the same keys, also in DXGI's place.
func FuzzRegistry(f *testing.F) {
	key, device := driver("0000", radeon, "3,0,0", RegistryValue{Hex: "0000a0ff02000000"})
	record := RegistryKey{Name: "{1}", Values: map[string]RegistryValue{"Description": {Text: "AMD Radeon RX 7900 XT"}, "VendorId": number(0x1002),
		"DeviceId": number(0x744c), "DedicatedVideoMemory": number(19 << 30), "AdapterLuid": number(7)}}
	f.Add(marshal(f, []RegistryKey{key, device, record}))
	f.Add([]byte(`[{"name":"0001","values":{"MatchingDeviceId":{"text":"PCI\\VEN_8086&DEV_56A0"},"HardwareInformation.qwMemorySize":{"hex":"00f0ff7f"},"VendorId":{"number":32902},"DeviceId":{"number":22176}}}]`))
	f.Fuzz(func(t *testing.T, registry []byte) {
		calls := fuzzedPC{dxgi: []byte("no answer"), kernel: []byte("null"), registry: registry, counters: []byte("null")}
		found := Probe(t.Context(), source.Machine{OS: "windows", Arch: "amd64", Files: fstest.MapFS{}, Calls: calls}, hwprobe.Host{TotalBytes: gib(32)})
		checkFound(t, found, string(registry))
	})
}

func FuzzLocation(f *testing.F) {
	f.Add(`@System32\drivers\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,0,0)`)
	f.Add(`PCI\VEN_8086&DEV_9BC4&SUBSYS_170D1043&REV_05\3&11583659&0&10`)
	f.Fuzz(func(t *testing.T, text string) {
		if address := parseLocation(text); address != "" {
			if normal, ok := hwprobe.PCIAddress(address); !ok || normal != address {
				t.Errorf("%q", address)
			}
		}
		if ids := parseIDs(text); ids != (deviceIDs{}) && !strings.Contains(strings.ToLower(text), fmt.Sprintf("ven_%04x&dev_%04x", ids.vendor, ids.device)) {
			t.Errorf("%+v is not in the input", ids)
		}
	})
}

func FuzzCounters(f *testing.F) {
	f.Add(counterBuffer(0x1000, CounterValue{Instance: "luid_0x00000000_0x0001532a_phys_0", Value: 947 << 20}), uint64(0x1000), uint32(1))
	f.Add([]byte{}, uint64(1<<64-1), uint32(1<<32-1))
	f.Fuzz(func(t *testing.T, buffer []byte, base uint64, count uint32) {
		values := decodeCounters(buffer, base, count)
		if len(values) > int(count) || len(values)*counterItemSize > len(buffer) {
			t.Errorf("%d values of %d bytes", len(values), len(buffer))
		}
		for luid := range sumByLUID(values) {
			name := fmt.Sprintf("luid_0x%08x_0x%08x_phys_", luid>>32, uint32(luid))
			if !slices.ContainsFunc(values, func(v CounterValue) bool { return strings.HasPrefix(strings.ToLower(v.Instance), name) }) {
				t.Errorf("no instance names %#x", luid)
			}
		}
	})
}
