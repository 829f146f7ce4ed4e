// Package apple reads the GPUs of a Mac. Its calls fetch what Metal and the kernel say; what follows from that is decided
// here, in code that runs everywhere.
package apple

import (
	"context"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// gpu is one GPU as the best of the sources tells it.
type gpu struct {
	name     string
	vendor   hwprobe.Vendor
	registry uint64       // its accelerator's id in the I/O registry; 0 when not told
	unified  hwprobe.Flag // draws on main memory
	cores    hwprobe.Bytes
	memory   hwprobe.Bytes // how much it may use, as far as this source tells
	from     hwprobe.Source
}

// Probe asks Metal; where it cannot be reached it takes the names from the I/O registry, then from system_profiler, which is
// slow and the only other source that knows the GPUs of Intel Macs. One source names all GPUs, so nothing is paired by name.
func Probe(ctx context.Context, m source.Machine, host hwprobe.Host) hwprobe.Findings {
	var f hwprobe.Findings
	if m.OS != "darwin" {
		return f
	}
	found := accelerators(ctx, m.Commands)
	gpus, err := readMetal(ctx, m.Calls)
	if len(gpus) == 0 {
		gpus = namedByRegistry(found)
	}
	if len(gpus) == 0 {
		gpus = readProfiler(ctx, m.Commands)
	}
	if len(gpus) == 0 {
		if err != nil {
			f.Warn(hwprobe.WarnGPUsUnreadable, "", "neither Metal nor ioreg nor system_profiler names a GPU: "+err.Error(),
				"run system_profiler SPDisplaysDataType on this machine and see whether it lists one")
		}
		return f
	}
	pages := readPages(ctx, m.Commands)
	seen := map[string]int{}
	for _, g := range gpus {
		add(&f, g, identify(g, seen), load(g, gpus, found), pages, limitOf(ctx, m.Calls, g, host), host)
	}
	return f
}

// identify makes an id of the name: a Mac tells no PCI address, and registry ids change at each boot. Equal GPUs are counted.
func identify(g gpu, seen map[string]int) string {
	words := strings.FieldsFunc(strings.ToLower(g.name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	id := "gpu:" + strings.Join(words, "-")
	if len(words) == 0 {
		id += "mac"
	}
	seen[id]++
	if n := seen[id]; n > 1 {
		return fmt.Sprintf("%s:%d", id, n)
	}
	return id
}

// load is the accelerator that this GPU is in the I/O registry; the zero value when it is none for certain.
func load(g gpu, gpus []gpu, found []accelerator) accelerator {
	for _, a := range found {
		if g.registry != 0 && a.registry == g.registry {
			return a
		}
	}
	if len(gpus) == 1 && len(found) == 1 {
		return found[0] // the only one of each
	}
	return accelerator{}
}

func add(f *hwprobe.Findings, g gpu, id string, a accelerator, pages vmPages, limit limit, host hwprobe.Host) {
	d := hwprobe.Device{ID: id, Pool: id, Vendor: g.vendor, Name: g.name, Integrated: g.unified, State: hwprobe.StateOK, Utilisation: a.utilisation}
	cores := g.cores
	if cores == (hwprobe.Bytes{}) {
		cores = a.cores
	}
	if n, known := cores.Value(); known && g.vendor == hwprobe.Apple { // chips of one name are sold with different numbers of them
		d.Name = fmt.Sprintf("%s (%d-core GPU)", g.name, n)
	}
	p := poolOf(g, id, a, pages, limit, host)
	switch {
	case p.TotalBytes == (hwprobe.Bytes{}):
		d.State = hwprobe.StateDegraded
		f.Warn(hwprobe.WarnMemoryUnknown, id, d.Name+": nothing tells how much memory it may use",
			"run the probe as a user who can reach Metal, or pin the pool's total in the configuration")
	case p.TotalSource == hwprobe.SourceEstimate:
		f.Warn(hwprobe.WarnMemoryEstimated, id, d.Name+": Metal cannot be reached, so its limit is estimated from the size of main memory",
			"run the probe as a user who can reach Metal, or set the limit with sysctl iogpu.wired_limit_mb")
	case p.FreeBytes == (hwprobe.Bytes{}) && g.vendor == hwprobe.Apple:
		f.Warn(hwprobe.WarnMemoryUnknown, id, d.Name+": nothing tells how much of its memory is free",
			"run ioreg -r -d 1 -c IOAccelerator and vm_stat by hand on this machine and look at what they print")
	}
	f.Add(d, p)
}

// poolOf is the memory that the GPU draws on. A unified one has none of its own: the pool is a limit on how much of main
// memory it may use, all of it borrowed of the host, so that a claim counts in both.
func poolOf(g gpu, id string, a accelerator, pages vmPages, l limit, host hwprobe.Host) hwprobe.Pool {
	p := hwprobe.Pool{ID: id, Kind: hwprobe.PoolOfDevice}
	p.SetTotal(l.bytes, l.from)
	if !g.unified.Or(false) {
		return p // a card in an Intel Mac: its driver tells the use of this process only
	}
	p.Kind = hwprobe.PoolUnified
	p.SetFree(freeOf(g, a, pages, l, host))
	p.Parts = []hwprobe.PoolPart{{Name: "shared", BorrowedOf: hwprobe.HostPool, TotalBytes: p.TotalBytes, FreeBytes: p.FreeBytes}}
	return p
}

// freeOf is what the limit leaves, but no more than the pages that can be had. Metal itself tells the use of this process
// only. What GPUs have in use is in the I/O registry; where it is not told, all wired memory is an upper bound of it.
func freeOf(g gpu, a accelerator, pages vmPages, l limit, host hwprobe.Host) (hwprobe.Bytes, hwprobe.Source) {
	left, from := hwprobe.Sub(l.bytes, a.inUse), hwprobe.SourceIORegistry
	if a.inUse == (hwprobe.Bytes{}) && g.vendor == hwprobe.Apple {
		left, from = hwprobe.Sub(l.bytes, pages.wired), hwprobe.SourceOS
	}
	available := pages.available
	if available == (hwprobe.Bytes{}) {
		available = host.AvailableBytes
	}
	free := hwprobe.Least(left, available)
	if free != left {
		from = hwprobe.SourceOS
	}
	return free, from
}

// vendorOf tells who made a GPU by what a Mac calls it.
func vendorOf(names ...string) hwprobe.Vendor {
	text := strings.ToLower(strings.Join(names, " "))
	for _, v := range []struct {
		word   string
		vendor hwprobe.Vendor
	}{
		{"apple", hwprobe.Apple}, {"intel", hwprobe.Intel}, {"amd", hwprobe.AMD}, {"radeon", hwprobe.AMD},
		{"nvidia", hwprobe.NVIDIA}, {"geforce", hwprobe.NVIDIA},
	} {
		if strings.Contains(text, v.word) {
			return v.vendor
		}
	}
	return hwprobe.OtherVendor
}
