package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/doctor"
	"github.com/loopkeeper/loopkeeper/hwprobe"
)

func bytesOf(n float64) hwprobe.Bytes { return hwprobe.Known(uint64(n * (1 << 30))) }

func pool(id string, kind hwprobe.PoolKind, total, free hwprobe.Bytes, from hwprobe.Source) hwprobe.Pool {
	p := hwprobe.Pool{ID: id, Kind: kind}
	p.SetTotal(total, from)
	p.SetFree(free, from)
	return p
}

// workshop is a machine with something of everything: a card, an APU, a card that is lost, a partition, a hidden one.
func workshop() hwprobe.Report {
	lost := pool("gpu:0000:41:00.0", hwprobe.PoolOfDevice, bytesOf(24), hwprobe.Bytes{}, hwprobe.SourceLastKnown)
	lost.TotalAgeSeconds = 190
	apu := pool("gpu:0000:64:00.0", hwprobe.PoolUnified, bytesOf(64.5), bytesOf(60.25), hwprobe.SourceAMDGPUSysfs)
	apu.Parts = []hwprobe.PoolPart{{Name: "vram", TotalBytes: bytesOf(0.5), FreeBytes: bytesOf(0.25)},
		{Name: "gtt", BorrowedOf: hwprobe.HostPool, TotalBytes: bytesOf(64), FreeBytes: bytesOf(60)}}
	card := pool("gpu:0000:0c:00.0", hwprobe.PoolOfDevice, bytesOf(12), bytesOf(7), hwprobe.SourceNVIDIASMI)
	card.SetTotal(bytesOf(12), hwprobe.SourceOverride)
	card.ReserveBytes = 2 << 30
	return hwprobe.Report{Version: hwprobe.ReportVersion,
		Host: hwprobe.Host{Hostname: "workshop", OS: "linux", Arch: "amd64", CPU: "AMD Ryzen 9 7950X3D 16-Core Processor with a long name", Cores: 32},
		Devices: []hwprobe.Device{
			{ID: "gpu:0000:0c:00.0", Vendor: hwprobe.NVIDIA, Name: "NVIDIA GeForce RTX 4080 SUPER of the long-named kind", State: hwprobe.StateOK,
				Pool: "gpu:0000:0c:00.0", Utilisation: hwprobe.Known(97.0), Temperature: hwprobe.Known(71.0)},
			{ID: "gpu:0000:41:00.0", Vendor: hwprobe.NVIDIA, Name: "NVIDIA GeForce RTX 3090", State: hwprobe.StateLost, AgeSeconds: 190, Pool: "gpu:0000:41:00.0"},
			{ID: "gpu:0000:64:00.0", Vendor: hwprobe.AMD, Name: "AMD Radeon 890M", State: hwprobe.StateOK, Forced: true, Pool: "gpu:0000:64:00.0", Integrated: hwprobe.Known(true),
				Utilisation: hwprobe.Known(0.0)},
			{ID: "gpu:0000:81:00.0", Vendor: hwprobe.Intel, Name: "Intel \x1b[31mArc B580", State: hwprobe.StateDegraded, Pool: "gpu:0000:81:00.0"},
			{ID: "gpu:GPU-2", Vendor: hwprobe.NVIDIA, Name: "NVIDIA GB10", State: hwprobe.StateAsleep, Pool: hwprobe.HostPool, Integrated: hwprobe.Known(true)},
		},
		Hidden: []hwprobe.Device{{ID: "gpu:0000:05:00.0", Name: "GeForce GT 710", Pool: "gpu:0000:05:00.0", State: hwprobe.StateOK}},
		Pools: []hwprobe.Pool{pool(hwprobe.HostPool, hwprobe.PoolUnified, bytesOf(121.7), bytesOf(80), hwprobe.SourceOS), card, lost, apu,
			{ID: "gpu:0000:81:00.0", Kind: hwprobe.PoolOfDevice}},
		Warnings: []hwprobe.Warning{{Code: hwprobe.WarnNoPermission, Device: "gpu:0000:81:00.0", Message: "Intel Arc B580: /dev/dri/renderD130 may not be opened, so its memory is unknown",
			Next: "add the user that runs loopkeeper to the group render: sudo usermod -aG render $USER, and log in again"}},
	}
}

func TestProbeScreens(t *testing.T) {
	blind := hwprobe.Report{Host: hwprobe.Host{Hostname: "den", OS: "linux", Arch: "arm64"}, Pools: []hwprobe.Pool{pool(hwprobe.HostPool, hwprobe.PoolOfHost, bytesOf(31.2), bytesOf(20), hwprobe.SourceCgroup)},
		Warnings: []hwprobe.Warning{{Code: hwprobe.WarnToolTimeout, Message: "run nvidia-smi: no end after 20s: context deadline exceeded", Next: "see dmesg for Xid errors"}}}
	alone := blind
	alone.Warnings = nil
	for name, c := range map[string]struct {
		style  Style
		report hwprobe.Report
	}{
		"probe-80": {Style{Unicode: true, Width: 80}, workshop()}, "probe": {Style{}, workshop()},
		"probe-blind-80": {Style{Unicode: true, Width: 80}, blind}, "probe-none-80": {Style{Unicode: true, Width: 80}, alone},
	} {
		got := Probe(c.style, c.report)
		golden(t, name, got)
		for line := range strings.Lines(got) {
			if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); c.style.Width > 0 && w > c.style.Width {
				t.Errorf("%s: a line of %d cells: %q", name, w, line)
			}
			if strings.Contains(line, "\x1b") || strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

// What is unknown must not look like nothing or like everything.
func TestUnknownIsNoBar(t *testing.T) {
	for _, p := range []hwprobe.Pool{{}, pool("a", hwprobe.PoolOfDevice, bytesOf(8), hwprobe.Bytes{}, hwprobe.SourceDRM)} {
		if got := poolFill(Style{}, p.TotalBytes, p.FreeBytes); got != "?" {
			t.Errorf("%+v: %q", p, got)
		}
	}
	if got := poolFill(Style{}, bytesOf(8), bytesOf(0)); got != strings.Repeat("%", poolBar) {
		t.Errorf("a full pool is %q", got)
	}
	if got := poolFill(Style{}, bytesOf(8), bytesOf(9)); got != strings.Repeat(".", poolBar) {
		t.Errorf("a pool that is free is %q", got)
	}
}

func TestDoctorScreen(t *testing.T) {
	found := []doctor.Finding{
		{Level: doctor.OK, Part: "settings", Text: "/home/ada/.config/loopkeeper/loopkeeper.yaml"},
		{Level: doctor.Error, Part: "hardware", Text: "gpu:0000:41:00.0: NVIDIA GeForce RTX 3090 is gone: it was last seen 3m10s ago", Next: "check its power and cable"},
		{Level: doctor.OK, Part: "hardware", Text: "NVIDIA GeForce RTX 4080 SUPER, 7.0 of 16.0 GiB free"},
		{Level: doctor.Warning, Part: "ollama", Text: "OLLAMA_NUM_PARALLEL=4 and worker.slots is 1 (default): calls wait, or memory for slots is wasted",
			Next: "set worker.slots: 4, or OLLAMA_NUM_PARALLEL=1 for Ollama, then restart Ollama"},
		{Level: doctor.OK, Part: "discovery", Text: "mDNS on eth0"},
	}
	golden(t, "doctor-80", Doctor(Style{Unicode: true, Width: 80}, found))
	golden(t, "doctor", Doctor(Style{}, found))
}
