// Package probe puts the parts of a probe together: it asks every vendor's package about one machine and makes one report.
package probe

import (
	"cmp"
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/amd"
	"github.com/loopkeeper/loopkeeper/hwprobe/host"
	"github.com/loopkeeper/loopkeeper/hwprobe/intel"
	"github.com/loopkeeper/loopkeeper/hwprobe/nvidia"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// DefaultTimeout bounds a probe. It is long because the first nvidia-smi on a headless machine without persistence mode
// starts the driver, which takes seconds; 5 s is ample once a first probe has answered.
const DefaultTimeout = 20 * time.Second

// vendors are all that a probe asks. Each must return soon after its context ends.
var vendors = []struct {
	name  string
	probe func(context.Context, source.Machine, hwprobe.Host) hwprobe.Findings
}{
	{"nvidia", nvidia.Probe},
	{"amd", amd.Probe},
	{"intel", intel.Probe},
}

// ThisMachine is the machine that the process runs on. A program that probes again and again keeps it, so that facts that
// cannot change are read once.
func ThisMachine() source.Machine {
	calls := source.Calls{}
	maps.Copy(calls, host.Calls())
	maps.Copy(calls, amd.Calls())
	maps.Copy(calls, intel.Calls())
	return source.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Files: os.DirFS("/"), Commands: &source.Commands{}, Calls: calls}
}

// Probe reads the machine once. It never fails: what could not be read is unknown and has a warning.
func Probe(ctx context.Context, m source.Machine) hwprobe.Report {
	h, warnings := host.Read(ctx, m)
	pool, limited := host.Pool(m.Files, h)
	found := make([]hwprobe.Findings, len(vendors))
	var wg sync.WaitGroup
	for i, v := range vendors {
		wg.Go(func() { found[i] = v.probe(ctx, m, h) })
	}
	wg.Wait()
	return assemble(h, pool, append(warnings, limited...), found)
}

// assemble puts the parts into one report whose order does not depend on timing, so that reports can be compared.
func assemble(h hwprobe.Host, main hwprobe.Pool, warnings []hwprobe.Warning, found []hwprobe.Findings) hwprobe.Report {
	r := hwprobe.Report{Version: hwprobe.ReportVersion, Host: h, Devices: []hwprobe.Device{}, Warnings: append([]hwprobe.Warning{}, warnings...)}
	var own []hwprobe.Pool
	for _, f := range found {
		r.Devices = append(r.Devices, f.Devices...)
		own = append(own, f.Pools...)
		r.Warnings = append(r.Warnings, f.Warnings...)
	}
	slices.SortStableFunc(r.Devices, func(a, b hwprobe.Device) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(own, func(a, b hwprobe.Pool) int { return cmp.Compare(a.ID, b.ID) })
	if slices.ContainsFunc(r.Devices, func(d hwprobe.Device) bool { return d.Pool == hwprobe.HostPool }) {
		main.Kind = hwprobe.PoolUnified
	}
	r.Pools = append([]hwprobe.Pool{main}, own...)
	return r
}
