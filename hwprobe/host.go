package hwprobe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"
)

// HostReader reads the machine's processor and main memory.
type HostReader interface {
	// ReadHost returns what could be read, even beside an error.
	ReadHost(ctx context.Context) (Host, error)
}

// SystemHost reads the real machine through gopsutil. What cannot change while the process lives is read once. The zero
// value is ready; it is safe for concurrent use.
type SystemHost struct {
	mu     sync.Mutex
	cpu    string
	kernel string
}

// ReadHost implements HostReader.
func (s *SystemHost) ReadHost(ctx context.Context) (Host, error) {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	h.CPU, h.Kernel = s.constants(ctx)
	name, nameErr := os.Hostname()
	h.Hostname = name
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return h, errors.Join(nameErr, fmt.Errorf("read main memory: %w", err))
	}
	// gopsutil has no unknown: a file that it could not read leaves zeros, and no running machine has zero of either.
	if memory.Total > 0 {
		h.TotalBytes = Known(memory.Total)
	}
	if memory.Available > 0 {
		h.AvailableBytes = Known(memory.Available)
	}
	return h, nameErr
}

// constants returns the processor's model name and the kernel's version, empty while the machine does not tell: ARM
// Linux has no model name.
func (s *SystemHost) constants(ctx context.Context) (model, kernel string) {
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

func readHost(ctx context.Context, reader HostReader) (Host, []Warning) {
	h, err := reader.ReadHost(ctx)
	switch {
	case err != nil:
		return h, []Warning{{Code: WarnHostUnreadable, Message: "cannot read the host: " + err.Error(),
			Next: "check that the process may read the system's memory statistics (/proc/meminfo on Linux)"}}
	case h.TotalBytes == Bytes{} || h.AvailableBytes == Bytes{}:
		return h, []Warning{{Code: WarnHostUnreadable, Message: "the system does not tell its total or available memory",
			Next: "check that /proc is mounted and readable for this process"}}
	}
	return h, nil
}

// hostPool is the host's memory as far as the probe's own control group allows its use. Only cgroup version 2 is read.
func hostPool(root fs.FS, h Host) (Pool, []Warning) {
	p := Pool{ID: HostPool, Kind: PoolOfHost}
	setBytes(&p.TotalBytes, &p.TotalSource, h.TotalBytes, SourceOS)
	setBytes(&p.FreeBytes, &p.FreeSource, h.AvailableBytes, SourceOS)
	limit, free, ok := cgroupMemory(root)
	if total, known := h.TotalBytes.Value(); !ok || !known || limit >= total {
		return p, nil
	}
	setBytes(&p.TotalBytes, &p.TotalSource, Known(limit), SourceCgroup)
	if left := smaller(free, h.AvailableBytes); left != h.AvailableBytes {
		setBytes(&p.FreeBytes, &p.FreeSource, left, SourceCgroup)
	}
	return p, []Warning{{Code: WarnMemoryLimited,
		Message: fmt.Sprintf("a control group limits this process to %d bytes of main memory", limit),
		Next:    "if the model server runs outside this container or service, run the probe where the server runs, or raise the limit"}}
}

// cgroupMemory returns the tightest memory.max on the way from the process's cgroup to the root, and the least that any
// of these limits leaves free, counting page cache that the kernel can drop (inactive_file) as free. ok is false where
// nothing sets a limit.
func cgroupMemory(root fs.FS) (limit uint64, free Bytes, ok bool) {
	const base = "sys/fs/cgroup"
	for line := range strings.Lines(readText(root, "proc/self/cgroup")) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !unified {
			continue
		}
		for dir := path.Join(base, group); strings.HasPrefix(dir, base); dir = path.Dir(dir) {
			maximum, known := readUint(root, path.Join(dir, "memory.max")).Value() // "max" does not parse: no limit here
			if !known {
				continue
			}
			left := cgroupFree(root, dir, maximum)
			if !ok {
				limit, free, ok = maximum, left, true
			}
			limit, free = min(limit, maximum), smaller(free, left)
		}
	}
	return limit, free, ok
}

func cgroupFree(root fs.FS, dir string, limit uint64) Bytes {
	current, known := readUint(root, path.Join(dir, "memory.current")).Value()
	if !known {
		return Bytes{}
	}
	droppable := parseUint(fieldOf(readText(root, path.Join(dir, "memory.stat")), "inactive_file")).Or(0)
	return Known(minus(limit, minus(current, droppable)))
}

// setBytes sets a number and its source together; an unknown number has no source.
func setBytes(number *Bytes, source *Source, value Bytes, from Source) {
	*number, *source = value, ""
	if _, known := value.Value(); known {
		*source = from
	}
}

// minus is a - b, and 0 where b is the larger: "used" may exceed "total" by pinned buffers.
func minus(a, b uint64) uint64 { return a - min(a, b) }
