package nvidia

import (
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const (
	release = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025\n"
	model   = "NVIDIA Jetson Orin Nano Developer Kit\x00"
)

func jetson(tool source.Runner, pairs ...string) source.Machine {
	m := pc(tool, fixture.Write(fstest.MapFS{}, pairs...))
	m.Arch = "arm64"
	return m
}

func TestTegrastatsLines(t *testing.T) {
	for file, want := range map[string]readings{
		"tegrastats-orin-nano.txt":      {hwprobe.Known(0.0), hwprobe.Known(49.031), hwprobe.Known(4.824)},
		"tegrastats-orin-nano-busy.txt": {hwprobe.Known(63.0), hwprobe.Known(53.343), hwprobe.Known(12.479)},
		"tegrastats-tx2.txt":            {hwprobe.Known(0.0), hwprobe.Known(39.5), hwprobe.Known(5.297)},
	} {
		if got := parseTegrastats(strings.TrimSpace(fixture.Text(t, file))); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	for line, want := range map[string]readings{
		"": {},
		"RAM 1/2MB GR3D_FREQ 12%@[305] gpu@-256C tj@41.5C": {utilisation: hwprobe.Known(12.0), temperature: hwprobe.Known(41.5)}, // the GPU is off
		"GR3D_FREQ 400% GPU@x POM_5V_IN 2532/2698":         {power: hwprobe.Known(2.532)},                                        // Nano's rail
		"GR3D_FREQ off SOMEGPU@50C VDD_INX 5/5":            {},
	} {
		if got := parseTegrastats(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func TestAJetsonWithoutNVIDIASMIIsADeviceOnTheHostPool(t *testing.T) {
	none := smi{path: "nowhere"}
	for name, m := range map[string]source.Machine{
		"both files":               jetson(none, "etc/nv_tegra_release", release, "proc/device-tree/model", model),
		"a container":              jetson(none, "proc/device-tree/model", model),
		"a board without a Jetson": jetson(none, "proc/device-tree/model", "quill\x00", "proc/device-tree/compatible", "nvidia,p2771-0000\x00nvidia,tegra186\x00"),
		"no device tree":           jetson(none, "etc/nv_tegra_release", release),
	} {
		f := find(t, m)
		if len(f.Devices) != 1 || f.Devices[0].Pool != hwprobe.HostPool || f.Devices[0].Integrated != hwprobe.Known(true) ||
			f.Devices[0].State != hwprobe.StateOK || f.Devices[0].Name == "" || strings.Contains(f.Devices[0].Name, "\x00") || len(f.Warnings) != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	d := find(t, jetson(none, "etc/nv_tegra_release", release, "proc/device-tree/model", model)).Devices[0]
	if d.Name != "NVIDIA Jetson Orin Nano Developer Kit" || d.Driver != "L4T 36.4.3" {
		t.Errorf("%+v", d)
	}
	if f := find(t, jetson(none, "proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\x00", "proc/device-tree/compatible", "raspberrypi,5-model-b\x00brcm,bcm2712\x00")); len(f.Devices) != 0 {
		t.Errorf("a Raspberry Pi: %+v", f)
	}
}

func TestTegrastatsNeverEndsByItself(t *testing.T) {
	stream := fixture.Text(t, "tegrastats-orin-nano-busy.txt") + fixture.Text(t, "tegrastats-orin-nano.txt")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := find(t, jetson(smi{path: "nowhere", tegrastats: stream}, "proc/device-tree/model", model))
		if took := time.Since(start); took != tegrastatsTime {
			t.Errorf("took %v", took)
		}
		if d := f.Devices[0]; d.Utilisation != hwprobe.Known(63.0) || d.Power != hwprobe.Known(12.479) {
			t.Errorf("%+v", d)
		}
	})
	if line := runTegrastats(t.Context(), failing{"RAM 61", nil}); line != "" {
		t.Errorf("half a line: %q", line)
	}
}

func TestAJetsonsReadingsComeFromTheKernelWhereItHasThem(t *testing.T) {
	for name, load := range map[string]string{
		"Nano": "sys/devices/gpu.0/load", "Xavier": "sys/class/devfreq/17000000.gv11b/device/load", "Orin": "sys/class/devfreq/17000000.gpu/device/load",
	} {
		// Were tegrastats run, it would say 63 % and 53 C.
		m := jetson(smi{path: "nowhere", tegrastats: fixture.Text(t, "tegrastats-orin-nano-busy.txt")}, "proc/device-tree/model", model, load, "427\n",
			"sys/class/devfreq/15340000.vic/device/load", "990\n",
			"sys/class/thermal/thermal_zone0/type", "CPU-therm\n", "sys/class/thermal/thermal_zone0/temp", "90000\n",
			"sys/class/thermal/thermal_zone1/type", "gpu-thermal\n", "sys/class/thermal/thermal_zone1/temp", "47250\n")
		if d := find(t, m).Devices[0]; d.Utilisation != hwprobe.Known(42.7) || d.Temperature != hwprobe.Known(47.25) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	off := kernelReadings(fixture.Write(fstest.MapFS{}, "sys/class/thermal/thermal_zone1/type", "gpu-thermal\n", "sys/class/thermal/thermal_zone1/temp", "-256000\n", "sys/devices/gpu.0/load", "70000\n"))
	if off != (readings{}) {
		t.Errorf("a GPU that is off has readings: %v", off)
	}
}

func TestAJetsonWithNVIDIASMIIsOneDeviceWithTheReadingsThatItLacks(t *testing.T) { // JetPack 6: name and UUID, all else N/A
	csv := header + "c48b0d9f-0000-0000-0000-000000000000, Orin (nvgpu), [N/A], 540.4.0, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]\n"
	f := find(t, jetson(smi{csv: csv}, "proc/device-tree/model", model, "sys/devices/platform/gpu.0/load", "50\n"))
	if len(f.Devices) != 1 || f.Devices[0].ID != "gpu:c48b0d9f-0000-0000-0000-000000000000" || f.Devices[0].Utilisation != hwprobe.Known(5.0) ||
		f.Devices[0].Pool != hwprobe.HostPool || len(f.Warnings) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestACardInAJetsonsSlotIsTheOnlyDevice(t *testing.T) {
	csv := fixture.Text(t, "nvidia-smi-l40s-linux-595.query-idle.csv")
	f := find(t, jetson(smi{csv: csv}, "etc/nv_tegra_release", release, "sys/devices/platform/gpu.0/load", "50\n"))
	if len(f.Devices) != 1 || f.Devices[0].PCI != "0000:01:00.0" || f.Devices[0].Utilisation != hwprobe.Known(100.0) {
		t.Errorf("%+v", f)
	}
}
