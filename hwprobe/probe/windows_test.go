package probe

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/pciids"
	"github.com/loopkeeper/loopkeeper/hwprobe/windows"
)

// twoCards is what DXGI and the graphics kernel say of two equal cards, in another order than nvidia-smi.
func twoCards() windowsPC {
	card := windows.Adapter{Description: "NVIDIA GeForce RTX 3090", VendorID: pciids.NVIDIA, DeviceID: 0x2204, DedicatedVideo: hwprobe.Known[uint64](24 << 30)}
	first, second := card, card
	first.LUID, second.LUID = 7, 8
	return windowsPC{adapters: []windows.Adapter{first, second},
		kernel:   []windows.KernelAdapter{{LUID: 8, Address: &windows.BusAddress{Bus: 1}}, {LUID: 7, Address: &windows.BusAddress{Bus: 12}}},
		counters: map[string][]windows.CounterValue{`\GPU Adapter Memory(*)\Dedicated Usage`: {{Instance: "luid_0x00000000_0x00000007_phys_0", Value: 5 << 30}}}}
}

func TestCardsThatNVIDIASMIAndWindowsTellAreNotCountedTwice(t *testing.T) {
	pc := twoCards()
	pc.tools = toolsByName{"nvidia-smi": "name, uuid, pci.bus_id, memory.total [MiB], memory.free [MiB]\n" +
		"NVIDIA GeForce RTX 3090, GPU-1, 00000000:01:00.0, 24576 MiB, 24000 MiB\nNVIDIA GeForce RTX 3090, GPU-2, 00000000:0C:00.0, 24576 MiB, 18000 MiB\n"}
	r := probePC(t, pc)
	checkConsistent(t, r)
	if len(r.Devices) != 2 || len(r.Pools) != 3 || len(r.Warnings) != 0 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct{ uuid, luid, free string }{{"GPU-1", "0x00000000_0x00000008", "25165824000"}, {"GPU-2", "0x00000000_0x00000007", "18874368000"}} {
		d := r.Devices[i]
		if d.UUID != want.uuid || d.LUID != want.luid {
			t.Errorf("%s has %s and %s, want %+v", d.ID, d.UUID, d.LUID, want)
		}
		checkPool(t, r, d.Pool, "25769803776", want.free)
		if p, _ := r.Pool(d.Pool); p.TotalSource != hwprobe.SourceNVIDIASMI {
			t.Errorf("%s: total from %q, want the vendor's own tool", d.ID, p.TotalSource)
		}
	}
}

func TestCardsAreFoundOnWindowsWithoutNVIDIASMI(t *testing.T) {
	r := probePC(t, twoCards())
	checkConsistent(t, r)
	if len(r.Devices) != 2 {
		t.Fatalf("%+v", r.Devices)
	}
	checkPool(t, r, "gpu:0000:0c:00.0", "25769803776", "20401094656")
	checkPool(t, r, "gpu:0000:01:00.0", "25769803776", "?") // the counters do not name it
}
