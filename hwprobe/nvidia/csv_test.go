package nvidia

import (
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func TestReadingsOfADevice(t *testing.T) {
	f := find(t, pc(smi{csv: fixture.Text(t, "nvidia-smi-rtx2080s-windows-610.query-load.csv")}, nil))
	want := hwprobe.Device{
		ID: "gpu:0000:0c:00.0", Vendor: hwprobe.NVIDIA, Name: "NVIDIA GeForce RTX 2080 SUPER", PCI: "0000:0c:00.0",
		UUID: "GPU-00000000-0000-0000-0000-000000000000", Integrated: hwprobe.Known(false), Driver: "610.62", State: hwprobe.StateOK,
		Pool: "gpu:0000:0c:00.0", Utilisation: hwprobe.Known(7.0), Temperature: hwprobe.Known(44.0), Power: hwprobe.Known(97.99),
	}
	if len(f.Devices) != 1 || f.Devices[0] != want || len(f.Warnings) != 0 {
		t.Errorf("got %+v\nwant %+v", f, want)
	}
}

func TestFreeIsNotTotalMinusUsedWhichHidesTheReserve(t *testing.T) {
	f := find(t, pc(smi{csv: fixture.Text(t, "nvidia-smi-rtx2080s-windows-610.query-idle.csv")}, nil)) // used 797, reserved 205 MiB
	checkPools(t, f, "gpu:0000:0c:00.0 8192 7191")
}

func TestOneUnreadableCellLeavesTheOthers(t *testing.T) {
	d := find(t, pc(smi{csv: fixture.Text(t, "nvidia-smi-rtx2080ti-unknown-error.query.csv")}, nil)).Devices[0]
	if d.Name != "GeForce RTX 2080 Ti" || d.Utilisation != hwprobe.Known(100.0) || d.Temperature != hwprobe.Known(56.0) || d.Power != hwprobe.Known(228.82) {
		t.Errorf("device %+v", d)
	}
}

func TestAColumnIsFoundByItsNameNotItsPlace(t *testing.T) {
	f := find(t, pc(smi{csv: "memory.free [MiB], uuid, memory.total [MiB]\n7191 MiB, GPU-1, 8192 MiB\n"}, nil))
	checkPools(t, f, "gpu:GPU-1 8192 7191")
}

func TestMemoryCellsAreNumbersOrUnknown(t *testing.T) {
	for _, c := range []struct{ header, total, free, want string }{
		{"memory.total [MiB], memory.free [MiB]", "8192 MiB", "7191 MiB", "8192 7191"},
		{"memory.total [MiB], memory.free [MiB]", "8192", "7191", "8192 7191"}, // --format=nounits
		{"memory.total, memory.free", "8192", "0", "8192 0"},                   // a full card has a known zero
		{"memory.total [GiB], memory.free [MiB]", "8", "1", "? ?"},
		{"memory.total [MiB], memory.free [MiB]", "8 GiB", "1 MiB", "? ?"},
		{"memory.total [MiB], memory.free [MiB]", "0 MiB", "0 MiB", "? ?"},
		{"memory.total [MiB], memory.free [MiB]", "8192 MiB", "9000 MiB", "? ?"},
		{"memory.total [MiB], memory.free [MiB]", "17592186044424 MiB", "1 MiB", "? ?"}, // 2^64 bytes and 8 MiB
		{"memory.total [MiB], memory.free [MiB]", "-1 MiB", "ERR!", "? ?"},
		{"memory.total [MiB], memory.free [MiB]", "8192,00 MiB", "1", "? ?"},
	} {
		f := find(t, pc(smi{csv: "uuid, " + c.header + "\nGPU-1, " + c.total + ", " + c.free + "\n"}, nil))
		if strings.Contains(c.total, ",") { // a decimal comma is a cell too many: no row at all
			if len(f.Devices) != 0 || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnToolFailed}) {
				t.Errorf("%s: %+v", c.total, f)
			}
			continue
		}
		t.Log(c.total, c.free)
		checkPools(t, f, "gpu:GPU-1 "+c.want)
	}
}

func TestNoValueIsUnknownNotZero(t *testing.T) {
	for _, cell := range []string{"N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Insufficient Permissions]", "[Unknown Error]",
		"[Requested functionality has been deprecated]", "ERR!", "", "None", "[Deprecated; will be removed]"} {
		f := find(t, pc(smi{csv: "uuid, name, utilization.gpu [%], temperature.gpu, power.draw [W], memory.total [MiB], memory.free [MiB]\n" +
			"GPU-1, x" + strings.Repeat(", "+cell, 5) + "\n"}, nil))
		d := f.Devices[0]
		if d.Utilisation != (hwprobe.Number{}) || d.Temperature != (hwprobe.Number{}) || d.Power != (hwprobe.Number{}) {
			t.Errorf("%q became a number: %+v", cell, d)
		}
		checkPools(t, f, "gpu:GPU-1 ? ?")
	}
}

func TestReadingsThatCannotBeAreUnknown(t *testing.T) {
	f := find(t, pc(smi{csv: "uuid, utilization.gpu [%], temperature.gpu, power.draw [W], memory.total [MiB]\nGPU-1, 240 %, -300, -5 W, 8 MiB\nGPU-2, NaN, Inf, 1e999 W, 8 MiB\n"}, nil))
	for _, d := range f.Devices {
		if d.Utilisation != (hwprobe.Number{}) || d.Temperature != (hwprobe.Number{}) || d.Power != (hwprobe.Number{}) {
			t.Errorf("%+v", d)
		}
	}
	if len(f.Devices) != 2 {
		t.Errorf("devices %+v", f.Devices)
	}
}

func TestDriverVersionWithARemarkAboutItsFuture(t *testing.T) {
	csv := "uuid, driver_version, memory.total [MiB]\nGPU-1, 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead], 8 MiB\n"
	if d := find(t, pc(smi{csv: csv}, nil)).Devices[0]; d.Driver != "610.57.04" {
		t.Errorf("driver %q", d.Driver)
	}
}

func TestADeviceThatIsToldTwiceIsCountedOnce(t *testing.T) {
	row := csvRow("GPU-1", "NVIDIA L40S", "00000000:01:00.0", "46068 MiB", "45460 MiB", "[N/A]", "HMM", "8.9")
	checkPools(t, find(t, pc(smi{csv: header + row + row}, nil)), "gpu:0000:01:00.0 46068 45460")
}
