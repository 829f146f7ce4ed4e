package host

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Calls answers CallHost on the real machine, through gopsutil. What cannot change while the process lives is read once.
func Calls() source.Calls {
	s := &system{}
	return source.Calls{CallHost: func(ctx context.Context, _ ...string) (any, error) { return s.read(ctx) }}
}

type system struct {
	mu     sync.Mutex
	cpu    string
	kernel string
}

func (s *system) read(ctx context.Context) (hwprobe.Host, error) {
	h := hwprobe.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	h.CPU, h.Kernel = s.constants(ctx)
	h.Hostname, _ = os.Hostname() // a machine without a name is one all the same
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return h, fmt.Errorf("read main memory: %w", err)
	}
	h.TotalBytes, h.AvailableBytes = hwprobe.Known(memory.Total), hwprobe.Known(memory.Available)
	return h, nil
}

// constants returns the processor's model name and the kernel's version, empty while the machine does not tell: ARM
// Linux has no model name.
func (s *system) constants(ctx context.Context) (model, kernel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cpu == "" {
		if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 {
			s.cpu = strings.TrimSpace(infos[0].ModelName)
		}
	}
	if s.kernel == "" {
		if version, err := host.KernelVersionWithContext(ctx); err == nil {
			s.kernel = version
		}
	}
	return s.cpu, s.kernel
}
