package amd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// rocmSMI is one query of fields that are as old as the tool. It prints JSON unless it is too old for that.
var rocmSMI = []string{"--showproductname", "--showbus", "--showuniqueid", "--showmeminfo", "vram", "gtt", "--showuse", "--showtemp", "--showpower", "--json"}

// needTools says whether the vendor's tools could tell more than the files did: only where this process sees AMD's compute
// driver and no cards at all, or where a card's driver does not tell its memory.
func needTools(m source.Machine, units []unit) bool {
	if m.OS != "linux" {
		return false
	}
	if len(units) == 0 {
		return !drm.Visible(m.Files) && hasComputeDriver(m.Files)
	}
	return slices.ContainsFunc(units, func(u unit) bool {
		return u.memory.vramTotal == hwprobe.Bytes{} && u.device.Driver == "amdgpu" && u.device.State == hwprobe.StateOK
	})
}

// hasComputeDriver looks for /dev/kfd without opening it, which would start something in the driver.
func hasComputeDriver(root fs.FS) bool {
	entries, _ := fs.ReadDir(root, "dev")
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "kfd" })
}

// withTools asks rocm-smi, and amd-smi where that one is missing or says nothing. Cards that the files show keep what the
// files told; they are found again by their PCI address.
func withTools(ctx context.Context, m source.Machine, units []unit, f *hwprobe.Findings) []unit {
	told := rocmUnits(parseROCmSMI(runTool(ctx, m, f, "rocm-smi", rocmSMI...)))
	if len(told) == 0 && ctx.Err() == nil {
		told = amdSMIUnits(runTool(ctx, m, f, "amd-smi"))
	}
	if len(units) == 0 {
		return told
	}
	for i, u := range units {
		k := slices.IndexFunc(told, func(t unit) bool { return u.device.PCI != "" && t.device.PCI == u.device.PCI })
		if u.memory.vramTotal == (hwprobe.Bytes{}) && k >= 0 && told[k].memory.vramTotal != (hwprobe.Bytes{}) {
			units[i].memory, units[i].source = told[k].memory, told[k].source
		}
	}
	return units
}

// runTool returns what a tool printed. One that is not installed, or finds no card, is not worth a word.
func runTool(ctx context.Context, m source.Machine, f *hwprobe.Findings, name string, args ...string) []byte {
	out, err := m.Commands.Run(ctx, name, args...)
	switch {
	case err == nil:
		return out.Stdout
	case errors.Is(err, exec.ErrNotFound):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, source.ErrStuck):
		f.Warn(hwprobe.WarnToolTimeout, "", err.Error(), fmt.Sprintf("run %s by hand; if it hangs too, the driver does: look for amdgpu in dmesg", name))
	default:
		f.Warn(hwprobe.WarnToolFailed, "", err.Error(), fmt.Sprintf("run %s by hand, or make /sys visible to this process, which makes it unnecessary", name))
	}
	return nil
}
