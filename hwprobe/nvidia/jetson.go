package nvidia

import (
	"context"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// board is a Jetson or another board with a Tegra chip, whose GPU shares the host's memory and is on no PCI bus.
type board struct {
	model  string // "NVIDIA Jetson Orin Nano Developer Kit"
	driver string // version of Jetson Linux, "L4T 36.4.3"; empty where it is not told
}

var releasePattern = regexp.MustCompile(`# R(\d+) \(release\), REVISION: ([\d.]+)`)

// findBoard reads which board it is; ok is false on other machines. Either file may be missing: a container may see only
// the device tree.
func findBoard(root fs.FS) (b board, ok bool) {
	release := source.ReadText(root, "etc/nv_tegra_release")
	nul := func(r rune) bool { return r == 0 }
	compatible := strings.FieldsFunc(source.ReadText(root, "proc/device-tree/compatible"), nul)
	tegra := slices.ContainsFunc(compatible, func(s string) bool { return strings.HasPrefix(s, "nvidia,tegra") })
	b.model = strings.TrimSpace(strings.TrimRight(source.ReadText(root, "proc/device-tree/model"), "\x00"))
	if release == "" && !tegra && !strings.Contains(b.model, "Jetson") {
		return board{}, false
	}
	if b.model == "" {
		b.model = "NVIDIA Jetson"
	}
	if match := releasePattern.FindStringSubmatch(release); match != nil {
		b.driver = "L4T " + match[1] + "." + match[2]
	}
	return b, true
}

// addJetson adds a board's GPU where nvidia-smi, which older boards do not have, told of no device, and reads what
// nvidia-smi does not tell of one. A board with a card in its slot has no other GPU.
func (f *finder) addJetson(ctx context.Context) {
	b, ok := findBoard(f.machine.Files)
	if !ok {
		return
	}
	if len(f.found.Devices) == 0 {
		f.add(hwprobe.Device{ID: "gpu:tegra", Vendor: hwprobe.NVIDIA, Name: b.model, Integrated: hwprobe.Known(true), Driver: b.driver,
			State: hwprobe.StateOK, Pool: hwprobe.HostPool}, hwprobe.Pool{})
	}
	for i := range f.found.Devices {
		if d := &f.found.Devices[i]; d.Pool == hwprobe.HostPool {
			now := readings{d.Utilisation, d.Temperature, d.Power}.completed(kernelReadings(f.machine.Files))
			if now.utilisation == (hwprobe.Number{}) || now.temperature == (hwprobe.Number{}) {
				now = now.completed(parseTegrastats(runTegrastats(ctx, f.machine.Commands)))
			}
			d.Utilisation, d.Temperature, d.Power = now.utilisation, now.temperature, now.power
		}
	}
}

// loads are where the nvgpu driver shows how busy the GPU is, in thousandths.
var loads = []string{"sys/devices/gpu.0/load", "sys/devices/platform/gpu.0/load", "sys/class/devfreq/*.gpu/device/load",
	"sys/class/devfreq/*.g[avp]1*b/device/load"}

// kernelReadings are what sysfs tells without a process.
func kernelReadings(root fs.FS) readings {
	var r readings
	for _, pattern := range loads {
		files, _ := fs.Glob(root, pattern)
		for _, file := range files {
			if load, known := source.ReadScaled(root, file, 10).Value(); known && load >= 0 && load <= 100 {
				r = r.completed(readings{utilisation: hwprobe.Known(load)})
			}
		}
	}
	zones, _ := fs.Glob(root, "sys/class/thermal/thermal_zone*")
	for _, zone := range zones {
		kind := strings.ToLower(source.ReadText(root, zone+"/type"))
		if kind == "gpu-therm" || kind == "gpu-thermal" { // older boards, newer boards
			if heat, known := source.ReadScaled(root, zone+"/temp", 1e3).Value(); known && heat > -200 { // a GPU that is off: -256
				r = r.completed(readings{temperature: hwprobe.Known(heat)})
			}
		}
	}
	return r
}
