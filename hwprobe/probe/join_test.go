package probe

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// adapter is the same card as the system lists it.
func adapter(d hwprobe.Device, total, free uint64) hwprobe.Findings {
	var f hwprobe.Findings
	d.Vendor, d.State, d.Pool, d.Name = hwprobe.NVIDIA, hwprobe.StateOK, d.ID, "Adapter"
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	p.SetTotal(hwprobe.Known(total), hwprobe.SourceDXGI)
	p.SetFree(hwprobe.Known(free), hwprobe.SourcePDH)
	f.Add(d, p)
	f.Warn(hwprobe.WarnNoPermission, d.ID, "m", "n")
	return f
}

// two is a Prober of a machine on which two parts find what the test says.
func two(first, second func() hwprobe.Findings) *Prober {
	part := func(find func() hwprobe.Findings) func(context.Context, source.Machine, hwprobe.Host) hwprobe.Findings {
		return func(context.Context, source.Machine, hwprobe.Host) hwprobe.Findings { return find() }
	}
	return newProber(Options{Machine: machine(fstest.MapFS{}, absent{}, bigHost("amd64"))}, []vendor{{"tool", part(first)}, {"system", part(second)}})
}

func TestOneDeviceFoundByTwoPartsIsOne(t *testing.T) {
	for name, link := range map[string]hwprobe.Device{
		"by address": {ID: "gpu:0x00000000_0x0000d4a3", PCI: "0000:0c:00.0", LUID: "0x00000000_0x0000d4a3"},
		"by UUID":    {ID: "gpu:0x00000000_0x0000d4a3", UUID: "GPU-gpu:0000:0c:00.0", LUID: "0x00000000_0x0000d4a3"},
		"by id":      {ID: "gpu:0000:0c:00.0", LUID: "0x00000000_0x0000d4a3"},
	} {
		tool := card("gpu:0000:0c:00.0", 16<<30, 12<<30)
		tool.Devices[0].PCI = "0000:0c:00.0"
		r := two(func() hwprobe.Findings { return tool }, func() hwprobe.Findings { return adapter(link, 15<<30, 11<<30) }).Probe(t.Context())
		checkConsistent(t, r)
		if len(r.Devices) != 1 || len(r.Pools) != 2 {
			t.Fatalf("%s: devices %+v, pools %+v", name, r.Devices, r.Pools)
		}
		if d := r.Devices[0]; d.Name != "Card" || d.LUID != "0x00000000_0x0000d4a3" || d.ID != "gpu:0000:0c:00.0" {
			t.Errorf("%s: %+v, want the tool's word and the system's LUID", name, d)
		}
		checkPool(t, r, "gpu:0000:0c:00.0", "17179869184", "12884901888")
		if r.Warnings[0].Device != "gpu:0000:0c:00.0" {
			t.Errorf("%s: the warning is about %s, which is not in the report", name, r.Warnings[0].Device)
		}
	}
}

// Cards in a virtual machine, and broken ones, may all have the UUID of zeros.
func TestTwoPlacesAreTwoDevices(t *testing.T) {
	var both hwprobe.Findings
	for _, address := range []string{"0000:0c:00.0", "0000:0d:00.0"} {
		one := card("gpu:"+address, 16<<30, 12<<30)
		one.Devices[0].PCI, one.Devices[0].UUID = address, "GPU-00000000-0000-0000-0000-000000000000"
		both.Add(one.Devices[0], one.Pools[0])
	}
	r := two(func() hwprobe.Findings { return both }, func() hwprobe.Findings { return hwprobe.Findings{} }).Probe(t.Context())
	checkConsistent(t, r)
	if len(r.Devices) != 2 || len(r.Pools) != 3 {
		t.Errorf("devices %+v, pools %+v", r.Devices, r.Pools)
	}
}

func TestPartitionsOfACardAreNotTheCard(t *testing.T) {
	instance := card("gpu:MIG-1", 10<<30, 9<<30)
	instance.Devices[0].PCI, instance.Devices[0].Partition = "0000:0c:00.0", "1g.10gb"
	r := two(func() hwprobe.Findings { return instance }, func() hwprobe.Findings {
		return adapter(hwprobe.Device{ID: "gpu:0000:0c:00.0", PCI: "0000:0c:00.0"}, 80<<30, 70<<30)
	}).Probe(t.Context())
	if len(r.Devices) != 2 || len(r.Pools) != 3 {
		t.Errorf("devices %+v, pools %+v; want the card and its part", r.Devices, r.Pools)
	}
}

// When the vendor's tool fails, the system still knows the card: that is better than what is remembered.
func TestWhatIsReadNowIsBetterThanWhatIsRemembered(t *testing.T) {
	tool := card("gpu:a", 16<<30, 12<<30)
	p := two(func() hwprobe.Findings { return tool }, func() hwprobe.Findings { return adapter(hwprobe.Device{ID: "gpu:a"}, 15<<30, 11<<30) })
	p.Probe(t.Context())
	tool = blind()
	r := p.Probe(t.Context())
	checkConsistent(t, r)
	checkPool(t, r, "gpu:a", "16106127360", "11811160064")
	if d := r.Devices[0]; len(r.Devices) != 1 || d.State != hwprobe.StateOK || d.AgeSeconds != 0 || d.UUID != "GPU-gpu:a" {
		t.Errorf("devices %+v", r.Devices)
	}
	tool = hwprobe.Findings{} // it works, and no more calls the card its own
	if r := p.Probe(t.Context()); len(r.Devices) != 1 || r.Devices[0].State != hwprobe.StateOK || len(r.Warnings) != 1 {
		t.Errorf("devices %+v, warnings %v", r.Devices, r.Warnings)
	}
	tool = blind("gpu:a") // it is there and its driver fails: that is the state, whatever the system says of its size
	if r := p.Probe(t.Context()); r.Devices[0].State != hwprobe.StateDegraded {
		t.Errorf("devices %+v", r.Devices)
	}
}

func TestPartitionsShareAPool(t *testing.T) {
	parts := func() hwprobe.Findings {
		f := card("gpu:a", 64<<30, 60<<30)
		second := f.Devices[0]
		second.ID, second.UUID, second.Partition = "gpu:a#1", "", "cpx"
		f.Add(second, f.Pools[0])
		return f
	}
	r := two(parts, func() hwprobe.Findings { return hwprobe.Findings{} }).Probe(t.Context())
	checkConsistent(t, r)
	if len(r.Devices) != 2 || r.Devices[1].Pool != "gpu:a" || len(r.Pools) != 2 {
		t.Errorf("devices %+v, pools %+v", r.Devices, r.Pools)
	}
}
