package hwprobe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// den is a machine with a card, an integrated device that nothing can be placed on yet, and a unified one.
func den() Report {
	return Report{Version: ReportVersion,
		Devices: []Device{
			{ID: "gpu:0000:0c:00.0", PCI: "0000:0c:00.0", UUID: "GPU-1", LUID: "0x00000000_0x0000d4a3", State: StateOK, Pool: "gpu:0000:0c:00.0"},
			{ID: "gpu:0000:64:00.0", PCI: "0000:64:00.0", State: StateUnsupported, Pool: "gpu:0000:64:00.0", Integrated: Known(true)},
			{ID: "gpu:MIG-1", PCI: "0000:0c:00.0", UUID: "MIG-1", Partition: "1g.10gb", State: StateOK, Pool: HostPool},
		},
		Pools: []Pool{
			{ID: HostPool, Kind: PoolUnified, TotalBytes: Known[uint64](64 << 30), TotalSource: SourceOS, FreeBytes: Known[uint64](32 << 30), FreeSource: SourceOS},
			{ID: "gpu:0000:0c:00.0", Kind: PoolOfDevice, TotalBytes: Known[uint64](16 << 30), TotalSource: SourceNVIDIASMI, FreeBytes: Known[uint64](10 << 30), FreeSource: SourceNVIDIASMI},
			{ID: "gpu:0000:64:00.0", Kind: PoolUnified},
		},
		Warnings: []Warning{{Code: WarnMemoryUnknown, Device: "gpu:0000:64:00.0", Message: "m", Next: "n"}, {Code: WarnToolMissing, Message: "m", Next: "n"}},
	}
}

func TestPoolOverrides(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		override    PoolOverride
		pool        string
		total, free Bytes
		reserve     uint64
		free2       Source
	}{
		"smaller than probed takes from what is free": {PoolOverride{Pool: "GPU-1", TotalBytes: Known[uint64](12 * gib)}, "gpu:0000:0c:00.0", Known[uint64](12 * gib), Known[uint64](6 * gib), 0, SourceOverride},
		"much smaller leaves nothing":                 {PoolOverride{Pool: "gpu:0000:0c:00.0", TotalBytes: Known[uint64](2 * gib)}, "gpu:0000:0c:00.0", Known[uint64](2 * gib), Known[uint64](0), 0, SourceOverride},
		"larger frees nothing":                        {PoolOverride{Pool: "00000000:0C:00.0", TotalBytes: Known[uint64](24 * gib)}, "gpu:0000:0c:00.0", Known[uint64](24 * gib), Known[uint64](10 * gib), 0, SourceNVIDIASMI},
		"where nothing was probed":                    {PoolOverride{Pool: "0000:64:00.0", TotalBytes: Known[uint64](8 * gib)}, "gpu:0000:64:00.0", Known[uint64](8 * gib), Bytes{}, 0, ""},
		"a reserve changes no number":                 {PoolOverride{Pool: HostPool, ReserveBytes: 4 * gib}, HostPool, Known[uint64](64 * gib), Known[uint64](32 * gib), 4 * gib, SourceOS},
		"a device's pool":                             {PoolOverride{Pool: "mig-1", ReserveBytes: 4 * gib}, HostPool, Known[uint64](64 * gib), Known[uint64](32 * gib), 4 * gib, SourceOS},
	} {
		r := Overrides{Pools: []PoolOverride{c.override}}.Apply(den())
		p, _ := r.Pool(c.pool)
		if p.TotalBytes != c.total || p.FreeBytes != c.free || p.ReserveBytes != c.reserve || p.FreeSource != c.free2 {
			t.Errorf("%s: %+v", name, p)
		}
		if _, pinned := c.override.TotalBytes.Value(); (p.TotalSource == SourceOverride) != pinned || len(r.Warnings) != 2 {
			t.Errorf("%s: source %s, warnings %v", name, p.TotalSource, r.Warnings)
		}
	}
}

func TestHiddenDeviceGoesWithItsPoolAndStaysInSight(t *testing.T) {
	before, _ := json.Marshal(den())
	r := den()
	for _, name := range []string{"0X00000000_0X0000D4A3", "gpu:0000:64:00.0", "MIG-1"} {
		r = Overrides{Devices: []DeviceOverride{{Device: name, Hide: true, Force: true}}}.Apply(r)
	}
	if len(r.Devices) != 0 || len(r.Pools) != 1 || r.Pools[0].Kind != PoolOfHost || len(r.Hidden) != 3 {
		t.Errorf("got %+v", r)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Code != WarnToolMissing {
		t.Errorf("warnings %+v, want the one that is not about a hidden device", r.Warnings)
	}
	given := den()
	Overrides{Devices: []DeviceOverride{{Device: "GPU-1", Hide: true}, {Device: "0000:64:00.0", Force: true}}, Pools: []PoolOverride{{Pool: HostPool, ReserveBytes: 1}}}.Apply(given)
	if after, _ := json.Marshal(given); string(after) != string(before) {
		t.Errorf("the given report was changed:\n%s\n%s", before, after)
	}
}

func TestForcedDeviceIsUsable(t *testing.T) {
	r := Overrides{Devices: []DeviceOverride{{Device: "0000:64:00.0", Force: true}, {Device: "GPU-1", Force: true}}}.Apply(den())
	if d, _ := r.Device("gpu:0000:64:00.0"); !d.Forced || d.State != StateOK {
		t.Errorf("device %+v", d)
	}
	if d, _ := r.Device("gpu:0000:0c:00.0"); !d.Forced || d.State != StateOK {
		t.Errorf("device %+v", d)
	}
	if d, _ := r.Device("gpu:MIG-1"); d.Forced {
		t.Errorf("the card's override is taken for its partition's: %+v", d)
	}
}

func TestOverrideThatMatchesNothingIsNamed(t *testing.T) {
	r := Overrides{Devices: []DeviceOverride{{Device: "GPU-9", Hide: true}, {Device: "", Force: true}}, Pools: []PoolOverride{{Pool: "hots", ReserveBytes: 1}}}.Apply(den())
	var codes []WarningCode
	for _, w := range r.Warnings[2:] {
		codes = append(codes, w.Code)
	}
	if !slices.Equal(codes, []WarningCode{WarnOverride, WarnOverride, WarnOverride}) {
		t.Fatalf("warnings %+v", r.Warnings)
	}
	if w := r.Warnings[2]; !strings.Contains(w.Message, `"hots"`) || !strings.Contains(w.Next, "gpu:0000:0c:00.0") {
		t.Errorf("warning %+v names neither the override nor what there is", w)
	}
	if r := (Overrides{}).Apply(den()); len(r.Warnings) != 2 {
		t.Errorf("no override, and warnings %+v", r.Warnings)
	}
}

func TestMainPoolIsWhatTheAcceleratorUses(t *testing.T) {
	with := func(change func(*Report)) Report { r := den(); change(&r); return r }
	second := Device{ID: "gpu:0000:0d:00.0", State: StateLost, Pool: "gpu:0000:0d:00.0"}
	for name, c := range map[string]struct {
		report Report
		want   string
	}{
		"a card beside integrated graphics": {den(), "gpu:0000:0c:00.0"},
		"integrated graphics alone":         {with(func(r *Report) { r.Devices = r.Devices[1:] }), HostPool}, // the other one is unsupported
		"no device":                         {Report{Pools: []Pool{{ID: HostPool, Kind: PoolOfHost}}}, HostPool},
		"two cards": {with(func(r *Report) {
			r.Devices, r.Pools = append(r.Devices, second), append(r.Pools, Pool{ID: second.Pool, Kind: PoolOfDevice})
		}), ""},
	} {
		r := Overrides{Pools: []PoolOverride{{Pool: MainPool, TotalBytes: Known[uint64](5)}}}.Apply(c.report)
		pinned := ""
		for _, p := range r.Pools {
			if p.TotalSource == SourceOverride {
				pinned += p.ID
			}
		}
		warned := slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == WarnOverride })
		if pinned != c.want || warned != (c.want == "") {
			t.Errorf("%s: %q, warned %v", name, pinned, warned)
		}
	}
}
