// Package probe puts the parts of a probe together: it asks every vendor's package about one machine and makes one report.
package probe

import (
	"context"
	"maps"
	"os"
	"runtime"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/amd"
	"github.com/loopkeeper/loopkeeper/hwprobe/apple"
	"github.com/loopkeeper/loopkeeper/hwprobe/host"
	"github.com/loopkeeper/loopkeeper/hwprobe/intel"
	"github.com/loopkeeper/loopkeeper/hwprobe/nvidia"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	"github.com/loopkeeper/loopkeeper/hwprobe/windows"
)

// vendor is one vendor's part of a probe. It should return soon after its context ends, and may hang all the same.
type vendor struct {
	name  string
	probe func(context.Context, source.Machine, hwprobe.Host) hwprobe.Findings
}

// vendors are all that a probe asks. Where two find the same device, the first one's word counts.
var vendors = []vendor{
	{"nvidia", nvidia.Probe},
	{"amd", amd.Probe},
	{"intel", intel.Probe},
	{"apple", apple.Probe},
	{"windows", windows.Probe},
}

// ThisMachine is the machine that the process runs on. A program that probes again and again keeps it, so that facts that
// cannot change are read once.
func ThisMachine() source.Machine {
	calls := source.Calls{}
	maps.Copy(calls, host.Calls())
	maps.Copy(calls, amd.Calls())
	maps.Copy(calls, intel.Calls())
	maps.Copy(calls, apple.Calls())
	maps.Copy(calls, windows.Calls())
	return source.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Files: source.Capped(os.DirFS("/")), Commands: &source.Commands{},
		Calls: source.Guard(calls)}
}

// Probe reads the machine once, with nothing remembered; see Prober.Probe.
func Probe(ctx context.Context, m source.Machine) hwprobe.Report {
	return New(Options{Machine: m}).Probe(ctx)
}
