package probe

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// probeSMI probes an ordinary PC whose nvidia-smi prints this.
func probeSMI(t *testing.T, root fs.FS, out source.Output) hwprobe.Report {
	t.Helper()
	r := Probe(t.Context(), machine(root, printed(out), bigHost("amd64")))
	checkConsistent(t, r)
	return r
}

// warned returns the codes of a report's warnings.
func warned(r hwprobe.Report) []hwprobe.WarningCode {
	var codes []hwprobe.WarningCode
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestFailureTextsAreTold(t *testing.T) {
	for _, c := range []struct {
		file, lost string // lost: the address of the card that the text names
		code       hwprobe.WarningCode
	}{
		{"nvidia-err-container-unknown.txt", "", hwprobe.WarnAccessLost},
		{"nvidia-err-no-comm.txt", "", hwprobe.WarnDriverNotLoaded},
		{"nvidia-err-version-mismatch-new.txt", "", hwprobe.WarnDriverMismatch},
		{"nvidia-err-version-mismatch-old.txt", "", hwprobe.WarnDriverMismatch},
		{"nvidia-err-gpu-lost.txt", "0000:02:00.0", hwprobe.WarnDeviceLost},
		{"nvidia-err-gpu-lost-wrapped.txt", "0000:03:00.0", hwprobe.WarnDeviceLost},
		{"nvidia-err-handle-unknown-nospace.txt", "0000:07:00.0", hwprobe.WarnDeviceLost},
		{"nvidia-err-handle-unknown-short-domain.txt", "0000:ba:80.0", hwprobe.WarnDeviceLost},
	} {
		t.Run(c.file, func(t *testing.T) {
			r := probeSMI(t, fstest.MapFS{}, source.Output{Stderr: []byte(readFixture(t, c.file)), ExitCode: 9})
			if got := warned(r); !slices.Equal(got, []hwprobe.WarningCode{c.code}) {
				t.Errorf("warnings %v, want %s", got, c.code)
			}
			switch {
			case c.lost == "" && len(r.Devices) != 0:
				t.Errorf("devices %+v, want none", r.Devices)
			case c.lost != "" && (len(r.Devices) != 1 || r.Devices[0].PCI != c.lost || r.Devices[0].State != hwprobe.StateLost):
				t.Errorf("devices %+v, want %s lost", r.Devices, c.lost)
			}
		})
	}
}

// A broken driver is not a machine without a GPU: sysfs still shows the card.
func TestCardWithoutAnAnswerIsDegradedAndUnknown(t *testing.T) {
	for _, c := range []struct {
		name string
		source.Runner
		code hwprobe.WarningCode
	}{
		{"driver mismatch", printed{Stdout: []byte(readFixture(t, "nvidia-err-version-mismatch-new.txt")), ExitCode: 18}, hwprobe.WarnDriverMismatch},
		{"no tool", absent{}, hwprobe.WarnToolMissing},
		{"no tool, by a shell", printed{Stderr: []byte("sh: 1: nvidia-smi: not found"), ExitCode: 127}, hwprobe.WarnToolMissing},
		{"no devices", printed{Stdout: []byte("No devices were found\n"), ExitCode: 6}, hwprobe.WarnDriverNotLoaded},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, "nvidia-sysfs-rtx4080-drm-only.txtar")
			r := Probe(t.Context(), machine(root, c.Runner, bigHost("amd64")))
			checkConsistent(t, r)
			if len(r.Devices) != 1 || r.Devices[0].State != hwprobe.StateDegraded || r.Devices[0].PCI != "0000:09:00.0" {
				t.Fatalf("devices %+v, want the card, degraded", r.Devices)
			}
			if len(r.Warnings) != 1 || r.Warnings[0].Code != c.code || r.Warnings[0].Device != r.Devices[0].ID {
				t.Errorf("warnings %+v, want one %s about the card", r.Warnings, c.code)
			}
			checkPool(t, r, r.Devices[0].Pool, "?", "?")
		})
	}
}

func TestMachineWithoutACardHasNothingToWarnOf(t *testing.T) {
	for name, runner := range map[string]source.Runner{
		"no tool": absent{}, "no devices": printed{Stdout: []byte("No devices were found\n"), ExitCode: 6},
		"no tool, by a shell": printed{Stderr: []byte("/bin/sh: 1: nvidia-smi: not found"), ExitCode: 127},
	} {
		r := Probe(t.Context(), machine(fstest.MapFS{}, runner, bigHost("amd64")))
		if len(r.Devices) != 0 || len(r.Warnings) != 0 || len(r.Pools) != 1 || r.Pools[0].Kind != hwprobe.PoolOfHost {
			t.Errorf("%s: %+v, want the host pool alone", name, r)
		}
	}
}

func TestALostCardDoesNotHideTheOthers(t *testing.T) {
	out := readFixture(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv") + readFixture(t, "nvidia-err-gpu-lost.txt")
	r := probeSMI(t, fstest.MapFS{}, source.Output{Stdout: []byte(out), ExitCode: 15})
	if len(r.Devices) != 2 || r.Devices[0].State != hwprobe.StateOK || r.Devices[1].State != hwprobe.StateLost || r.Devices[1].PCI != "0000:02:00.0" {
		t.Fatalf("devices %+v, want 01:00.0 ok and 02:00.0 lost", r.Devices)
	}
	checkPool(t, r, r.Devices[0].Pool, "17171480576", "16093544448")
	checkPool(t, r, r.Devices[1].Pool, "?", "?")
}

func TestOneUnreadableCellLeavesTheOthers(t *testing.T) {
	r := probeSMI(t, fstest.MapFS{}, source.Output{Stdout: []byte(readFixture(t, "nvidia-smi-rtx2080ti-unknown-error.query.csv"))})
	d := r.Devices[0]
	if d.Name != "GeForce RTX 2080 Ti" || d.Utilisation != hwprobe.Known(100.0) || d.Temperature != hwprobe.Known(56.0) || d.Power != hwprobe.Known(228.82) {
		t.Errorf("device %+v", d)
	}
}

func TestReadingsOfADevice(t *testing.T) {
	r := probeSMI(t, fstest.MapFS{}, source.Output{Stdout: []byte(readFixture(t, "nvidia-smi-rtx2080s-windows-610.query-load.csv"))})
	want := hwprobe.Device{
		ID: "gpu:0000:0c:00.0", Vendor: hwprobe.NVIDIA, Name: "NVIDIA GeForce RTX 2080 SUPER", PCI: "0000:0c:00.0",
		UUID: "GPU-00000000-0000-0000-0000-000000000000", Integrated: hwprobe.Known(false), Driver: "610.62", State: hwprobe.StateOK,
		Pool: "gpu:0000:0c:00.0", Utilisation: hwprobe.Known(7.0), Temperature: hwprobe.Known(44.0), Power: hwprobe.Known(97.99),
	}
	if r.Devices[0] != want || len(r.Warnings) != 0 {
		t.Errorf("got %+v, %v\nwant %+v", r.Devices[0], r.Warnings, want)
	}
}

func TestPartitionedAndForbiddenDevicesAreNotOfferedAsWhole(t *testing.T) {
	for file, want := range map[string]struct {
		hwprobe.State
		hwprobe.WarningCode
	}{
		"nvidia-smi-h100-mig-linux-590.query-idle.csv": {hwprobe.StateUnsupported, hwprobe.WarnPartitioned},
		"nvidia-smi-mig-container.query.csv":           {hwprobe.StateDegraded, hwprobe.WarnNoPermission},
	} {
		r := probeSMI(t, fstest.MapFS{}, source.Output{Stdout: []byte(readFixture(t, file))})
		if r.Devices[0].State != want.State || !slices.Equal(warned(r), []hwprobe.WarningCode{want.WarningCode}) {
			t.Errorf("%s: state %s, warnings %v; want %+v", file, r.Devices[0].State, warned(r), want)
		}
	}
}

func TestUnifiedDevicesDrawOnTheHostPoolOnly(t *testing.T) {
	const header = "uuid, name, pci.bus_id, memory.total [MiB], memory.free [MiB], addressing_mode\n"
	for name, c := range map[string]struct {
		row     string
		unified bool
	}{
		"GB10":                              {"GPU-1, NVIDIA GB10, 0000000F:01:00.0, [N/A], [N/A], ATS", true},
		"GB10, older driver":                {"GPU-1, NVIDIA GB10, 0000000F:01:00.0, Not Supported, Not Supported, [N/A]", true},
		"a carve-out that looks like VRAM":  {"GPU-1, NVIDIA N1X, 0000000F:01:00.0, 8128 MiB, 7929 MiB, ATS", true},
		"HMM is software on ordinary cards": {"GPU-1, NVIDIA L40S, 00000000:01:00.0, 46068 MiB, 45460 MiB, HMM", false},
		"an error is not shared memory":     {"GPU-1, NVIDIA L40S, 00000000:01:00.0, [Unknown Error], [Unknown Error], [N/A]", false},
		"nor is a card that says nothing":   {"GPU-1, [Unknown Error], 00000000:01:00.0, [N/A], [N/A], [N/A]", false},
	} {
		r := probeSMI(t, fstest.MapFS{}, source.Output{Stdout: []byte(header + c.row + "\n")})
		hostOnly := len(r.Pools) == 1 && r.Pools[0].Kind == hwprobe.PoolUnified && r.Devices[0].Pool == hwprobe.HostPool
		if hostOnly != c.unified || r.Devices[0].Integrated != hwprobe.Known(c.unified) {
			t.Errorf("%s: device %+v on pools %+v", name, r.Devices[0], r.Pools)
		}
	}
}

func TestMemoryCellsAreNumbersOrUnknown(t *testing.T) {
	for _, c := range []struct{ header, total, free, wantTotal, wantFree string }{
		{"memory.total [MiB], memory.free [MiB]", "8192 MiB", "7191 MiB", "8589934592", "7540310016"},
		{"memory.total [MiB], memory.free [MiB]", "8192", "7191", "8589934592", "7540310016"}, // --format=nounits
		{"memory.total, memory.free", "8192", "0", "8589934592", "0"},                         // a full card has a known zero
		{"memory.free [MiB], memory.total [MiB]", "7191 MiB", "8192 MiB", "8589934592", "7540310016"},
		{"memory.total [GiB], memory.free [MiB]", "8", "1", "?", "?"},
		{"memory.total [MiB], memory.free [MiB]", "8 GiB", "1 MiB", "?", "?"},
		{"memory.total [MiB], memory.free [MiB]", "0 MiB", "0 MiB", "?", "?"},
		{"memory.total [MiB], memory.free [MiB]", "8192 MiB", "9000 MiB", "?", "?"},
		{"memory.total [MiB], memory.free [MiB]", "17592186044416 MiB", "1 MiB", "?", "?"}, // 2^64 bytes
		{"memory.total [MiB], memory.free [MiB]", "-1 MiB", "ERR!", "?", "?"},
		{"memory.total [MiB], memory.free [MiB]", "8192 MiB", "[GPU requires reset]", "8589934592", "?"},
	} {
		r := probeSMI(t, fstest.MapFS{}, source.Output{Stdout: []byte("uuid, " + c.header + "\nGPU-1, " + c.total + ", " + c.free + "\n")})
		t.Log(c.total, c.free)
		checkPool(t, r, "gpu:GPU-1", c.wantTotal, c.wantFree)
	}
}

// oldDriver knows the basic fields only, and one unknown field fails a whole query (nvidia_gpu_exporter#65).
type oldDriver struct{ answer string }

func (o oldDriver) Run(_ context.Context, _ string, args ...string) (source.Output, error) {
	if strings.Contains(args[0], "addressing_mode") {
		return source.Output{Stdout: []byte("Field \"addressing_mode\" is not a valid field to query.\n\n"), ExitCode: 2}, nil
	}
	return source.Output{Stdout: []byte(o.answer)}, nil
}

func TestOldDriverIsAskedForLess(t *testing.T) {
	answer := "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%], temperature.gpu, power.draw [W]\n" +
		"GPU-1, Quadro P400, 0000:03:00.0, 418.43, 1998 MiB, 1998 MiB, 0 %, 37, [N/A]\n"
	r := Probe(t.Context(), machine(fstest.MapFS{}, oldDriver{answer}, bigHost("amd64")))
	if len(r.Devices) != 1 || len(r.Warnings) != 0 {
		t.Fatalf("got %+v", r)
	}
	checkPool(t, r, "gpu:0000:03:00.0", "2095054848", "2095054848")
}

// shellsOnly has nvidia-smi where WSL puts it, which is not on the PATH of a service.
type shellsOnly struct{ printed }

func (s shellsOnly) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	if !strings.HasPrefix(name, "/usr/lib/wsl/") {
		return absent{}.Run(ctx, name, args...)
	}
	return s.printed.Run(ctx, name, args...)
}

func TestToolOfWSLIsFound(t *testing.T) {
	out := printed{Stdout: []byte(readFixture(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv"))}
	r := Probe(t.Context(), machine(fstest.MapFS{}, shellsOnly{out}, bigHost("amd64")))
	if len(r.Devices) != 1 || len(r.Warnings) != 0 {
		t.Errorf("got %+v", r)
	}
}

// failing is a Runner that cannot run anything for this reason.
type failing struct{ err error }

func (f failing) Run(context.Context, string, ...string) (source.Output, error) {
	return source.Output{}, f.err
}

func TestToolThatCannotRunIsAWarning(t *testing.T) {
	for _, err := range []error{os.ErrPermission, errors.New("exec format error"), source.ErrStuck} {
		r := Probe(t.Context(), machine(fstest.MapFS{}, failing{err}, bigHost("amd64")))
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Message, err.Error()) {
			t.Errorf("%v: warnings %+v", err, r.Warnings)
		}
	}
}

// hanging is a Runner whose tool answers only when it is ended.
type hanging struct{}

func (hanging) Run(ctx context.Context, _ string, _ ...string) (source.Output, error) {
	<-ctx.Done()
	return source.Output{}, ctx.Err()
}

func TestProbeOutlivesAHangingTool(t *testing.T) {
	amd := tree(t, "amd-sysfs-rx6900xt-16g.txtar")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := Probe(ctx, machine(amd, hanging{}, bigHost("amd64")))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %v, want the timeout", took)
		}
		if !slices.Equal(warned(r), []hwprobe.WarningCode{hwprobe.WarnToolTimeout}) || len(r.Devices) != 1 || r.Devices[0].State != hwprobe.StateOK {
			t.Errorf("got %+v, want the AMD card and a timeout", r)
		}
	})
}
