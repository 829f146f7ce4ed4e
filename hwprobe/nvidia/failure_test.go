package nvidia

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

func TestFailureTextsAreTold(t *testing.T) {
	for _, c := range []struct {
		text string // or the name of a fixture
		lost string // the address of the card that it names
		code hwprobe.WarningCode
	}{
		{"nvidia-err-container-unknown.txt", "", hwprobe.WarnAccessLost},
		{"nvidia-err-no-comm.txt", "", hwprobe.WarnDriverNotLoaded},
		{"nvidia-err-version-mismatch-new.txt", "", hwprobe.WarnDriverMismatch},
		{"nvidia-err-version-mismatch-old.txt", "", hwprobe.WarnDriverMismatch},
		{"nvidia-err-gpu-lost.txt", "0000:02:00.0", hwprobe.WarnDeviceLost},
		{"nvidia-err-gpu-lost-wrapped.txt", "0000:03:00.0", hwprobe.WarnDeviceLost},
		{"nvidia-err-handle-unknown-nospace.txt", "0000:07:00.0", hwprobe.WarnDeviceLost},
		{"nvidia-err-handle-unknown-short-domain.txt", "0000:ba:80.0", hwprobe.WarnDeviceLost},
		{"Unable to detect the device handle for GPU0000:B1:00.0: Unknown Error", "0000:b1:00.0", hwprobe.WarnDeviceLost}, // Easy-GPU-PV#276
		{"Failed to initialize NVML: GPU access blocked by the operating system\nFailed to properly shut down NVML: GPU access blocked by the operating system", "", hwprobe.WarnAccessLost},
		{"Failed to initialize NVML: N/A\nFailed to properly shut down NVML: N/A", "", hwprobe.WarnAccessLost}, // WSL#11755
		{"Failed to initialize NVML: Insufficient Permissions", "", hwprobe.WarnNoPermission},
		{"Failed to initialize NVML: Driver Not Loaded", "", hwprobe.WarnDriverNotLoaded},
		{"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed", "", hwprobe.WarnDriverNotLoaded},
		{"something else", "", hwprobe.WarnToolFailed},
	} {
		text := c.text
		if strings.HasSuffix(text, ".txt") {
			text = fixture.Text(t, text)
		}
		// Which stream the texts go to, and with which code, was not recorded.
		for _, m := range []smi{{csv: text, code: 255}, {stderr: text, code: 255}, {csv: text}} {
			f := find(t, pc(m, nil))
			if got := warned(f); !slices.Equal(got, []hwprobe.WarningCode{c.code}) {
				t.Errorf("%s: warnings %v, want %s", c.text, got, c.code)
			}
			switch {
			case c.lost == "" && len(f.Devices) != 0:
				t.Errorf("%s: devices %+v, want none", c.text, f.Devices)
			case c.lost != "" && (len(f.Devices) != 1 || f.Devices[0].PCI != c.lost || f.Devices[0].State != hwprobe.StateLost):
				t.Errorf("%s: devices %+v, want %s lost", c.text, f.Devices, c.lost)
			}
		}
	}
}

func TestExitCodesTellWhatTheTextDoesNot(t *testing.T) {
	for code, want := range map[int]hwprobe.WarningCode{
		4: hwprobe.WarnNoPermission, 9: hwprobe.WarnDriverNotLoaded, 12: hwprobe.WarnDriverNotLoaded, 15: hwprobe.WarnDeviceLost,
		16: hwprobe.WarnNeedsReset, 17: hwprobe.WarnAccessLost, 18: hwprobe.WarnDriverMismatch, 255: hwprobe.WarnToolFailed, 1: hwprobe.WarnToolFailed,
	} {
		if got := warned(find(t, pc(smi{csv: "?", code: code}, nil))); !slices.Equal(got, []hwprobe.WarningCode{want}) {
			t.Errorf("exit code %d: %v, want %s", code, got, want)
		}
	}
}

// A broken driver is not a machine without a GPU: the kernel still shows the card.
func TestCardWithoutAnAnswerIsDegradedAndUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		source.Runner
		code hwprobe.WarningCode
	}{
		"driver mismatch":      {smi{csv: fixture.Text(t, "nvidia-err-version-mismatch-new.txt"), code: 18}, hwprobe.WarnDriverMismatch},
		"no tool":              {smi{path: "nowhere"}, hwprobe.WarnToolMissing},
		"no tool, by a shell":  {smi{stderr: "sh: 1: nvidia-smi: not found", code: 127}, hwprobe.WarnToolMissing},
		"no devices":           {smi{csv: "No devices were found\n", code: 6}, hwprobe.WarnDriverNotLoaded},
		"lost in a container":  {smi{csv: fixture.Text(t, "nvidia-err-container-unknown.txt"), code: 255}, hwprobe.WarnAccessLost},
		"lists another card":   {smi{csv: fixture.Text(t, "nvidia-smi-l40s-linux-595.query-idle.csv")}, hwprobe.WarnDriverNotLoaded},
		"a card of the server": {smi{csv: "No devices were found\n", code: 6}, hwprobe.WarnDriverNotLoaded},
	} {
		tree := fixture.Tree(t, "nvidia-sysfs-rtx4080-drm-only.txtar")
		if name == "a card of the server" { // without a display nothing is below /sys/class/drm
			tree = onPCI("0000:09:00.0", "nvidia", "active")
		}
		f := find(t, pc(c.Runner, tree))
		d := f.Devices[len(f.Devices)-1]
		if d.State != hwprobe.StateDegraded || d.PCI != "0000:09:00.0" || d.Integrated != hwprobe.Known(false) {
			t.Errorf("%s: device %+v, want the card, degraded", name, d)
		}
		if len(f.Warnings) != 1 || f.Warnings[0].Code != c.code || f.Warnings[0].Device != d.ID {
			t.Errorf("%s: warnings %+v, want one %s about the card", name, f.Warnings, c.code)
		}
	}
}

func TestMachineWithoutACardHasNothingToWarnOf(t *testing.T) {
	for name, runner := range map[string]source.Runner{
		"no tool": smi{path: "nowhere"}, "no devices": smi{csv: "No devices were found\n", code: 6},
		"no tool, by a shell": smi{stderr: "/bin/sh: 1: nvidia-smi: not found", code: 127},
	} {
		if f := find(t, pc(runner, nil)); len(f.Devices) != 0 || len(f.Warnings) != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestALostCardDoesNotHideTheOthers(t *testing.T) {
	out := fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv") + fixture.Text(t, "nvidia-err-gpu-lost.txt")
	f := find(t, pc(smi{csv: out, code: 15}, nil))
	if len(f.Devices) != 2 || f.Devices[0].State != hwprobe.StateOK || f.Devices[1].State != hwprobe.StateLost || f.Devices[1].PCI != "0000:02:00.0" {
		t.Fatalf("devices %+v, want 01:00.0 ok and 02:00.0 lost", f.Devices)
	}
	checkPools(t, f, "gpu:0000:01:00.0 16376 15348", "gpu:0000:02:00.0 ? ?")
}

func TestCardsThatAnOldToolGaveUpOnAreAskedForAgain(t *testing.T) {
	m := smi{csv: fixture.Text(t, "nvidia-err-gpu-lost.txt"), code: 15, only: map[string]string{
		"0000:01:00.0": fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv")}}
	tree := joined(onPCI("0000:01:00.0", "nvidia", "active"), onPCI("0000:02:00.0", "nvidia", "active"))
	f := find(t, pc(m, tree))
	if len(f.Devices) != 2 || f.Devices[1].State != hwprobe.StateLost || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnDeviceLost}) {
		t.Errorf("%+v", f)
	}
	checkPools(t, f, "gpu:0000:01:00.0 16376 15348", "gpu:0000:02:00.0 ? ?")
	m.only = map[string]string{}
	if f = find(t, pc(m, tree)); len(f.Devices) != 2 || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnDeviceLost, hwprobe.WarnToolFailed}) {
		t.Errorf("nothing to be had: %+v", f)
	}
}

func TestAWarningAboutAWorkingCardDoesNotLoseIt(t *testing.T) {
	out := fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv") + "WARNING: infoROM is corrupted at gpu 0000:01:00.0\n"
	f := find(t, pc(smi{csv: out, code: 14}, nil))
	if len(f.Devices) != 1 || f.Devices[0].State != hwprobe.StateOK || len(f.Warnings) != 1 || f.Warnings[0].Device != f.Devices[0].ID ||
		strings.Contains(f.Warnings[0].Message, "not answer") {
		t.Errorf("%+v", f)
	}
	checkPools(t, f, "gpu:0000:01:00.0 16376 15348")
}

func TestCellsThatSayThatACardIsGone(t *testing.T) {
	for cell, want := range map[string]struct {
		hwprobe.State
		hwprobe.WarningCode
	}{
		"[GPU is lost]":        {hwprobe.StateLost, hwprobe.WarnDeviceLost},
		"[GPU requires reset]": {hwprobe.StateDegraded, hwprobe.WarnNeedsReset},
	} {
		f := find(t, pc(smi{csv: header + csvRow("GPU-1", "x", "00000000:01:00.0", cell, cell, "[N/A]", "[N/A]", "8.9")}, nil))
		if f.Devices[0].State != want.State || !slices.Equal(warned(f), []hwprobe.WarningCode{want.WarningCode}) {
			t.Errorf("%s: %+v", cell, f)
		}
	}
}

// failing is a Runner that cannot run anything to its end for this reason.
type failing struct {
	printed string
	err     error
}

func (f failing) Run(context.Context, string, ...string) (source.Output, error) {
	return source.Output{Stdout: []byte(f.printed)}, f.err
}

func TestToolThatDoesNotEndIsAWarning(t *testing.T) {
	for err, want := range map[error]hwprobe.WarningCode{
		os.ErrPermission: hwprobe.WarnToolFailed, errors.New("exec format error"): hwprobe.WarnToolFailed, source.ErrStuck: hwprobe.WarnToolTimeout,
		context.DeadlineExceeded: hwprobe.WarnToolTimeout, source.ErrOutputTooLarge: hwprobe.WarnToolFailed,
	} {
		f := find(t, pc(failing{"", err}, nil))
		if !slices.Equal(warned(f), []hwprobe.WarningCode{want}) || !strings.Contains(f.Warnings[0].Message, err.Error()) {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

func TestHalfALineIsNoSmallerCard(t *testing.T) {
	whole := fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv") + "2026/06/26 11:59:44.226, 1, GPU-2, x, 00000000:02:00.0, 595, 595, 16376 MiB, 434 MiB, 5"
	f := find(t, pc(failing{whole, context.DeadlineExceeded}, nil))
	checkPools(t, f, "gpu:0000:01:00.0 16376 15348")
	if !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnToolTimeout}) {
		t.Errorf("%+v", f.Warnings)
	}
	f = find(t, pc(failing{"uuid, memory.total [MiB]\nGPU-1, 8192 MiB\nGPU-2, 81", context.DeadlineExceeded}, nil))
	checkPools(t, f, "gpu:GPU-1 8192 ?")
	// The same by a tool that ends well: the card is there, and nothing is known of it.
	f = find(t, pc(smi{csv: whole}, fstest.MapFS{}))
	checkPools(t, f, "gpu:0000:01:00.0 16376 15348", "gpu:0000:02:00.0 ? ?")
}

func TestATimeOfDayIsNoAddress(t *testing.T) {
	if got := addresses("11:59:44.2 11:59:44.226 GPU0000:07:00.0"); !slices.Equal(got, []string{"0000:07:00.0"}) {
		t.Errorf("%v", got)
	}
}
