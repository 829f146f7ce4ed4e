package nvidia

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const basic = "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%], temperature.gpu, power.draw [W]\n" +
	"GPU-1, Quadro P400, 0000:03:00.0, 418.43, 1998 MiB, 1998 MiB, 0 %, 37, [N/A]\n"

func TestOneUnknownFieldDoesNotHideTheRest(t *testing.T) {
	f := find(t, pc(smi{csv: basic, unknown: "addressing_mode,mig.mode.current,compute_cap"}, nil))
	checkPools(t, f, "gpu:0000:03:00.0 1998 1998")
	if len(f.Warnings) != 0 {
		t.Errorf("%+v", f.Warnings)
	}
}

func TestADriverIsAskedOnceForWhatItUnderstands(t *testing.T) {
	for version, want := range map[string]string{
		"418.43": "power.draw", "470.256.02": "mig.mode.current", "525.147.05": "mig.mode.current,compute_cap", "580.126.09": "mig.mode.current,addressing_mode,compute_cap", "": "compute_cap",
	} {
		var asked [][]string
		find(t, pc(smi{csv: basic, asked: &asked}, fixture.Write(fstest.MapFS{}, "sys/module/nvidia/version", version+"\n")))
		if len(asked) != 1 || !strings.HasSuffix(asked[0][0], ","+want) {
			t.Errorf("driver %s: asked %v, want %s at the end", version, asked, want)
		}
	}
}

func TestAFieldWithASuccessorIsAskedForByThat(t *testing.T) { // "driver_version … will be removed in CUDA 14.0"
	csv := "uuid, kmd_version, memory.total [MiB], memory.free [MiB]\nGPU-1, 700.10, 8192 MiB, 8000 MiB\n"
	var asked [][]string
	d := find(t, pc(smi{csv: csv, unknown: "driver_version", asked: &asked}, nil)).Devices[0]
	if d.Driver != "700.10" || !strings.Contains(asked[1][0], ",kmd_version,") {
		t.Errorf("asked %v, %+v", asked, d)
	}
}

func TestAToolThatRefusesEverythingEnds(t *testing.T) {
	var asked [][]string
	f := find(t, pc(smi{unknown: strings.Join(append(slices.Clone(fields), "kmd_version"), ","), asked: &asked}, nil))
	if len(f.Devices) != 0 || !slices.Equal(warned(f), []hwprobe.WarningCode{hwprobe.WarnToolFailed}) || len(asked) > len(fields)+3 {
		t.Errorf("%d questions, %+v", len(asked), f)
	}
}

func TestTheToolIsFoundWhereItIs(t *testing.T) {
	for path, system := range map[string]string{
		"nvidia-smi": "linux", "/usr/lib/wsl/lib/nvidia-smi": "linux", "/run/current-system/sw/bin/nvidia-smi": "linux",
		`C:\Windows\System32\nvidia-smi.exe`: "windows", `C:\Program Files\NVIDIA Corporation\NVSMI\nvidia-smi.exe`: "windows",
	} {
		m := pc(smi{csv: fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv"), path: path}, nil)
		m.OS = system
		if f := find(t, m); len(f.Devices) != 1 || len(f.Warnings) != 0 {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

// A file that is not there is another error than a name that is not on the PATH.
func TestAPathThatIsNotThereIsAToolThatIsMissing(t *testing.T) {
	tool := &tool{runner: &source.Commands{}, paths: []string{"/nonexistent/nvidia-smi"}}
	if r := tool.query(t.Context(), nil); classifyError(r.err) != missing {
		t.Errorf("%v", r.err)
	}
	if _, err := (&source.Commands{}).Run(t.Context(), "/nonexistent/nvidia-smi"); err == nil || strings.Contains(err.Error(), exec.ErrNotFound.Error()) {
		t.Errorf("the case is gone: %v", err)
	}
}
