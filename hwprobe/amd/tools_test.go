package amd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func TestToolsAreAskedOnlyWhereFilesAreHidden(t *testing.T) {
	const smi = "GPU[0]\t\t: VRAM Total Memory (B): 34342961152\n"
	none := fstest.MapFS{"sys/class/drm/version": {}}
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want int
	}{
		{"a container without /sys", hidden(), 1},
		{"a machine without a compute driver", fstest.MapFS{"dev/null": {}}, 0},
		{"a machine that shows that it has no card", fixture.Write(none, "dev/kfd", ""), 0},
		{"a card that tells its memory", fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar"), 1},
	} {
		f := probe(t, c.root, tools{"rocm-smi": smi, "amd-smi": errBroken}, host())
		if len(f.Devices) != c.want || len(f.Warnings) != 0 {
			t.Errorf("%s: devices %+v, warnings %+v", c.name, f.Devices, f.Warnings)
		}
	}
}

func TestToolFillsInWhatTheCardDoesNotTellByAddress(t *testing.T) {
	smi := "GPU[0] : PCI Bus: 0000:0D:00.0\nGPU[0] : VRAM Total Memory (B): 2147483648\n" +
		"GPU[1] : PCI Bus: 0000:0F:00.0\nGPU[1] : VRAM Total Memory (B): 17095983104\nGPU[1] : VRAM Total Used Memory (B): 95983104\n"
	f := probe(t, fixture.Tree(t, "amd-sysfs-rx9070xt-no-meminfo.txtar"), tools{"rocm-smi": smi}, host())
	want := hwprobe.Pool{ID: "gpu:0000:0f:00.0", Kind: hwprobe.PoolOfDevice, TotalBytes: hwprobe.Known[uint64](17095983104), TotalSource: hwprobe.SourceROCmSMI,
		FreeBytes: hwprobe.Known[uint64](17000000000), FreeSource: hwprobe.SourceROCmSMI}
	if len(f.Devices) != 1 || len(f.Pools) != 1 || fmt.Sprint(f.Pools[0]) != fmt.Sprint(want) || f.Devices[0].State != hwprobe.StateOK || len(f.Warnings) != 0 {
		t.Errorf("%+v\n%+v\n%+v", f.Devices, f.Pools, f.Warnings)
	}
}

func TestToolThatFailsIsSaid(t *testing.T) {
	for _, c := range []struct {
		tools tools
		want  []hwprobe.WarningCode
	}{
		{tools{}, nil},
		{tools{"rocm-smi": errBroken}, []hwprobe.WarningCode{hwprobe.WarnToolFailed}},
		{tools{"rocm-smi": fmt.Errorf("run rocm-smi: %w", context.DeadlineExceeded)}, []hwprobe.WarningCode{hwprobe.WarnToolTimeout}},
		{tools{"rocm-smi": "ERROR:root:Driver not initialized (amdgpu not found in modules)\n"}, nil},
		{tools{"rocm-smi": "", "amd-smi": "usage: amd-smi [-h]\n"}, nil},
	} {
		if f := probe(t, hidden(), c.tools, host()); !slices.Equal(codes(f), c.want) || len(f.Devices) != 0 {
			t.Errorf("%v: %+v %+v", c.tools, f.Devices, f.Warnings)
		}
	}
}

// rocm-smi does not know the cards of other drivers, so asking it again and again would cost for nothing.
func TestToolIsNotAskedForACardOfAnotherDriver(t *testing.T) {
	const uevent = "sys/class/drm/card0/device/uevent"
	root := fixture.Write(card(fstest.MapFS{}, "card0", "1002:6818", "0000:01:00.0"), uevent, "DRIVER=radeon\nPCI_ID=1002:6818\nPCI_SLOT_NAME=0000:01:00.0\n")
	if f := probe(t, root, tools{"rocm-smi": errBroken}, host()); !slices.Equal(codes(f), []hwprobe.WarningCode{hwprobe.WarnMemoryUnknown}) {
		t.Errorf("warnings %+v", f.Warnings)
	}
}

// LocalAI#12058: rocm-smi's VRAM is 512 MiB, and the memory is in the GTT that it tells beside it.
func TestToolsGTTCountsForAnAPU(t *testing.T) {
	smi := `{"card0": {"Card Model": "0x1586", "VRAM Total Memory (B)": "536870912", "VRAM Total Used Memory (B)": "36870912", "GTT Total Memory (B)": "133680857088", "GTT Total Used Memory (B)": "680857088"}}`
	f := probe(t, hidden(), tools{"rocm-smi": smi}, host())
	if p := f.Pools[0]; p.TotalBytes != hwprobe.Known[uint64](536870912+133680857088) || p.Kind != hwprobe.PoolUnified || len(p.Parts) != 2 {
		t.Errorf("pool %+v", p)
	}
}

func TestWarningsAroundTheOutputAreSkipped(t *testing.T) {
	const warning = "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status {card0}\n\n"
	for _, file := range []string{"amd-rocmsmi-rx7900xt.json", "amd-rocmsmi-rx7900xt.csv", "amd-rocmsmi-mi50x2-cezanne.vram.txt"} {
		text := fixture.Text(t, file)
		plain := probe(t, hidden(), tools{"rocm-smi": text}, host())
		warned := probe(t, hidden(), tools{"rocm-smi": "\n" + warning + text + warning}, host())
		if len(plain.Devices) == 0 || fmt.Sprint(plain) != fmt.Sprint(warned) {
			t.Errorf("%s:\n%+v\n%+v", file, plain, warned)
		}
	}
}

// The same card on ROCm 4.3 and 6.1.2, whose keys differ; 4.3 printed the vendor's id for the names.
func TestKeysThatChangedBetweenVersions(t *testing.T) {
	old := probe(t, hidden(), tools{"rocm-smi": fixture.Text(t, "amd-rocmsmi-rx6700xt-rocm430.json")}, host()).Devices[0]
	recent := probe(t, hidden(), tools{"rocm-smi": fixture.Text(t, "amd-rocmsmi-rx6700xt-rocm612.json")}, host()).Devices[0]
	want := hwprobe.Device{ID: "gpu:0000:07:00.0", Vendor: hwprobe.AMD, Name: "AMD Radeon (1002:73df)", PCI: "0000:07:00.0", Integrated: hwprobe.Known(false), Driver: "amdgpu",
		State: hwprobe.StateOK, Pool: "gpu:0000:07:00.0", Utilisation: hwprobe.Known(0.0), Temperature: hwprobe.Known(45.0), Power: hwprobe.Known(6.0)}
	if old != want {
		t.Errorf("got  %+v\nwant %+v", old, want)
	}
	want.Name = "Navi 22 [Radeon RX 6700/6700 XT / 6800M]"
	if recent != want {
		t.Errorf("got  %+v\nwant %+v", recent, want)
	}
}

func TestValueThatIsNotToldIsUnknown(t *testing.T) {
	smi := `{"card0": {"Card Series": "AMD Radeon Graphics", "PCI Bus": "N/A", "Unique ID": "N/A", "GPU use (%)": "N/A", "Temperature (Sensor edge) (C)": "N/A",
		"Average Graphics Package Power (W)": "N/A", "VRAM Total Memory (B)": "N/A", "VRAM Total Used Memory (B)": "17"}, "system": {"Driver version": "6.3.6"}}`
	f := probe(t, hidden(), tools{"rocm-smi": smi}, host())
	want := hwprobe.Device{ID: "gpu:amd-0", Vendor: hwprobe.AMD, Name: "AMD Radeon Graphics", Driver: "amdgpu", State: hwprobe.StateDegraded, Pool: "gpu:amd-0"}
	if len(f.Devices) != 1 || f.Devices[0] != want || f.Pools[0].TotalBytes != (hwprobe.Bytes{}) || f.Pools[0].FreeBytes != (hwprobe.Bytes{}) {
		t.Errorf("%+v %+v", f.Devices, f.Pools)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Message, "rocm-smi does not tell") {
		t.Errorf("warnings %+v", f.Warnings)
	}
}

// Two idle cards of one kind tell the same numbers; only the bus says what is one card.
func TestEqualCardsAreNotTakenForPartitions(t *testing.T) {
	const memory = "GPU[%d] : VRAM Total Memory (B): 21458059264\nGPU[%d] : VRAM Total Used Memory (B): 27856896\n"
	same := fmt.Sprintf(memory, 0, 0) + fmt.Sprintf(memory, 1, 1)
	for name, c := range map[string]struct {
		text  string
		cards int
	}{
		"without a bus":                   {same, 2},
		"two buses":                       {same + "GPU[0] : PCI Bus: 0000:03:00.0\nGPU[1] : PCI Bus: 0000:07:00.0\n", 2},
		"one bus":                         {same + "GPU[0] : PCI Bus: 0000:03:00.0\nGPU[1] : PCI Bus: 0000:03:00.0\n", 1},
		"partitions printed as functions": {same + "GPU[0] : PCI Bus: 0000:03:00.0\nGPU[1] : PCI Bus: 0000:03:00.1\n", 1},
	} {
		if f := probe(t, hidden(), tools{"rocm-smi": c.text}, host()); len(f.Devices) != 2 || len(f.Pools) != c.cards {
			t.Errorf("%s: %d devices, %d pools", name, len(f.Devices), len(f.Pools))
		}
	}
}

// ROCm#5832: amd-smi said 30576 MB of a card of 32 GB.
func TestAMDSMIsTotalIsNotTaken(t *testing.T) {
	f := probe(t, hidden(), tools{"amd-smi": fixture.Text(t, "amd-smi-r9700-plus-igpu.table.txt")}, host())
	if len(f.Devices) != 2 || len(f.Warnings) != 2 {
		t.Fatalf("%+v %+v", f.Devices, f.Warnings)
	}
	want := hwprobe.Device{ID: "gpu:0000:03:00.0", Vendor: hwprobe.AMD, Name: "Radeon AI PRO R9700", PCI: "0000:03:00.0", Integrated: hwprobe.Known(false), Driver: "amdgpu",
		State: hwprobe.StateDegraded, Pool: "gpu:0000:03:00.0", Utilisation: hwprobe.Known(8.0), Temperature: hwprobe.Known(30.0), Power: hwprobe.Known(32.0)}
	if f.Devices[0] != want {
		t.Errorf("got  %+v\nwant %+v", f.Devices[0], want)
	}
	if d := f.Devices[1]; d.PCI != "0000:0d:00.0" || d.Utilisation != (hwprobe.Number{}) || d.Temperature != (hwprobe.Number{}) || d.Power != (hwprobe.Number{}) {
		t.Errorf("N/A became a number: %+v", d)
	}
	for _, p := range f.Pools {
		if p.TotalBytes != (hwprobe.Bytes{}) || p.FreeBytes != (hwprobe.Bytes{}) {
			t.Errorf("pool %+v", p)
		}
	}
}
