package apple

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// mac is what a Mac answers; nothing in a field means that this source does not answer.
type mac struct {
	metal  []MetalDevice
	wired  any               // the answer to the sysctl
	prints map[string]string // by tool
	host   hwprobe.Host
}

var errUnreachable = errors.New("no window server")

func (m mac) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	text, installed := m.prints[name]
	if !installed {
		return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return source.Output{Stdout: []byte(text)}, nil
}

func (m mac) probe(t *testing.T) hwprobe.Findings {
	t.Helper()
	calls := source.Calls{
		CallMetal: func(context.Context, ...string) (any, error) {
			if m.metal == nil {
				return nil, errUnreachable
			}
			return m.metal, nil
		},
		CallSysctl: func(_ context.Context, args ...string) (any, error) {
			if len(args) != 1 || args[0] != wiredLimit {
				t.Errorf("asked for the sysctl %q", args)
			}
			return m.wired, nil
		},
	}
	return Probe(t.Context(), source.Machine{OS: "darwin", Arch: "arm64", Files: fstest.MapFS{}, Commands: m, Calls: calls}, m.host)
}

func gib(n uint64) hwprobe.Bytes { return hwprobe.Known(n << 30) }

// silicon is Metal's word on one Apple GPU that may use this much.
func silicon(limit hwprobe.Bytes) []MetalDevice {
	return []MetalDevice{{Name: "Apple M2 Max", RegistryID: 0x10000050b, HasUnifiedMemory: hwprobe.Known(true), MaxWorkingSet: limit, Allocated: hwprobe.Known[uint64](0)}}
}

// ioregM4 and vmStat are as the tools print them; the first is from a public test (a Mac with an M4), shortened there.
const (
	ioregM4 = `+-o AGXAcceleratorG16G  <class AGXAcceleratorG16G, id 0x10000050b, registered, matched, active, busy 0 (655 ms), retain 51>
    {
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Alloc system memory"=1574862848,"Tiler Utilization %"=20,"recoveryCount"=0,"Renderer Utilization %"=19,"TiledSceneBytes"=1605632,"Device Utilization %"=21,"SplitSceneCount"=0,"In use system memory"=351141888}
      "model" = "Apple M4"
      "gpu-core-count" = 10
    }
`
	vmStat = `Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                                     9436.
Pages active:                                 774260.
Pages inactive:                               915780.
Pages speculative:                              1639.
Pages throttled:                                   0.
Pages wired down:                             184732.
Pages purgeable:                               22877.
"Translation faults":                       37287533.
File-backed pages:                           1021174.
`
)

func only(t *testing.T, f hwprobe.Findings) (hwprobe.Device, hwprobe.Pool) {
	t.Helper()
	if len(f.Devices) != 1 || len(f.Pools) != 1 {
		t.Fatalf("devices %+v, pools %+v; want one of each", f.Devices, f.Pools)
	}
	return f.Devices[0], f.Pools[0]
}

func codes(f hwprobe.Findings) []hwprobe.WarningCode {
	var list []hwprobe.WarningCode
	for _, w := range f.Warnings {
		list = append(list, w.Code)
	}
	return list
}
