package nvidia

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func TestUnifiedDevicesDrawOnTheHostPoolOnly(t *testing.T) {
	yes, no, open := hwprobe.Known(true), hwprobe.Known(false), hwprobe.Flag{}
	for name, c := range map[string]struct {
		os, arch string
		row      string
		unified  hwprobe.Flag
	}{
		"GB10":                {"linux", "arm64", csvRow("GPU-1", "NVIDIA GB10", "0000000F:01:00.0", "[N/A]", "[N/A]", "[N/A]", "ATS", "12.1"), yes},
		"GB10, older driver":  {"linux", "arm64", csvRow("GPU-1", "NVIDIA GB10", "0000000F:01:00.0", "Not Supported", "Not Supported", "[N/A]", "[N/A]", "[N/A]"), yes},
		"Thor":                {"linux", "arm64", csvRow("GPU-1", "NVIDIA Thor", "00000000:01:00.0", "[N/A]", "[N/A]", "[N/A]", "ATS", "11.0"), yes},
		"Orin":                {"linux", "arm64", csvRow("[N/A]", "Orin (nvgpu)", "[N/A]", "[N/A]", "[N/A]", "[N/A]", "[N/A]", "[N/A]"), yes},
		"a carve-out":         {"linux", "arm64", csvRow("GPU-1", "NVIDIA N1X", "0000000F:01:00.0", "8128 MiB", "7929 MiB", "[N/A]", "ATS", "[N/A]"), yes},
		"a carve-out of WDDM": {"windows", "arm64", csvRow("GPU-1", "NVIDIA RTX Spark", "00000000:01:00.0", "8128 MiB", "7929 MiB", "[N/A]", "[N/A]", "12.1"), yes}, // unsloth#11208
		// Grace Hopper uses the processor's page tables and has 96 GB of its own; HMM is software and runs on ordinary cards.
		"GH200":                           {"linux", "arm64", csvRow("GPU-1", "NVIDIA GH200 480GB", "00000009:01:00.0", "97871 MiB", "97000 MiB", "Disabled", "ATS", "9.0"), no},
		"HMM":                             {"linux", "amd64", csvRow("GPU-1", "NVIDIA L40S", "00000000:01:00.0", "46068 MiB", "45460 MiB", "[N/A]", "HMM", "8.9"), no},
		"a card in an ARM server":         {"linux", "arm64", csvRow("GPU-1", "NVIDIA L40S", "00000000:01:00.0", "46068 MiB", "45460 MiB", "[N/A]", "None", "8.9"), no},
		"an error is not shared memory":   {"linux", "arm64", csvRow("GPU-1", "NVIDIA X", "00000000:01:00.0", "[Unknown Error]", "[Unknown Error]", "[N/A]", "[N/A]", "[N/A]"), open},
		"a split card in an ARM server":   {"linux", "arm64", csvRow("GPU-1", "NVIDIA A100-SXM4-80GB", "00000001:01:00.0", "[N/A]", "[N/A]", "[N/A]", "None", "8.0"), no},
		"V100 beside POWER9":              {"linux", "ppc64le", csvRow("GPU-1", "Tesla V100-SXM2-16GB", "00000004:04:00.0", "16160 MiB", "16000 MiB", "[N/A]", "ATS", "7.0"), no},
		"a device that says nothing":      {"linux", "arm64", csvRow("GPU-1", "[Unknown Error]", "00000000:01:00.0", "[N/A]", "[N/A]", "[N/A]", "[N/A]", "[N/A]"), open},
		"a PC's card without a memory":    {"linux", "amd64", csvRow("GPU-1", "GRID T4", "00000000:01:00.0", "[N/A]", "[N/A]", "[N/A]", "[N/A]", "7.5"), no},
		"missing rights are no carve-out": {"linux", "arm64", csvRow("GPU-1", "NVIDIA A100", "00000000:01:00.0", "[Insufficient Permissions]", "[Insufficient Permissions]", "[N/A]", "None", "[N/A]"), open},
	} {
		m := pc(smi{csv: header + c.row}, nil)
		m.OS, m.Arch = c.os, c.arch
		f := find(t, m)
		hostOnly := len(f.Pools) == 0 && f.Devices[0].Pool == hwprobe.HostPool && f.Devices[0].State == hwprobe.StateOK
		if f.Devices[0].Integrated != c.unified || hostOnly != (c.unified == yes) {
			t.Errorf("%s: device %+v on pools %+v", name, f.Devices[0], f.Pools)
		}
	}
}

func TestUnifiedDeviceKeepsItsReadings(t *testing.T) {
	m := pc(smi{csv: fixture.Text(t, "nvidia-smi-gb10.query.csv")}, nil)
	m.Arch = "arm64"
	d := find(t, m).Devices[0]
	if d.Temperature != hwprobe.Known(35.0) || d.Power != hwprobe.Known(11.17) || d.Utilisation != hwprobe.Known(0.0) {
		t.Errorf("%+v", d)
	}
}

func TestUnifiedDeviceNeedsNoXML(t *testing.T) {
	var asked [][]string
	m := pc(smi{csv: header + csvRow("GPU-1", "NVIDIA GB10", "0000000F:01:00.0", "[N/A]", "[N/A]", "[N/A]", "ATS", "12.1"), asked: &asked}, nil)
	m.Arch = "arm64"
	if f := find(t, m); len(asked) != 1 || len(f.Warnings) != 0 {
		t.Errorf("asked %v, %+v", asked, f)
	}
}
