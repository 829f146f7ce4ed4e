package hwprobe

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// DefaultTimeout bounds each vendor's part of a probe. It is long because the first nvidia-smi on a headless machine without
// persistence mode starts the driver, which takes seconds.
const DefaultTimeout = 20 * time.Second

// Options are the seams of a probe; the zero value probes the real machine. A program that probes again and again keeps
// one Options, made by NewOptions, so that facts that cannot change are read once.
type Options struct {
	Root    fs.FS         // the root of the file system, for /sys and /proc; nil means the machine's own; safe for concurrent use
	Runner  Runner        // runs vendor tools; nil means a new Commands
	Host    HostReader    // reads processor and main memory; nil means a new SystemHost
	Timeout time.Duration // bound on each vendor's part; 0 means DefaultTimeout, 5 s is ample once a first probe has answered
}

// NewOptions returns Options for the real machine, to be used for every probe of a process.
func NewOptions() Options { return Options{}.withDefaults() }

func (o Options) withDefaults() Options {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	if o.Runner == nil {
		o.Runner = &Commands{}
	}
	if o.Host == nil {
		o.Host = &SystemHost{}
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	return o
}

// machine is what a vendor's probe may look at.
type machine struct {
	root   fs.FS
	runner Runner
	host   Host
}

// findings is what a vendor's probe found. A device whose pool is not HostPool brings its own pool, with the device's id.
type findings struct {
	devices  []Device
	pools    []Pool
	warnings []Warning
}

func (f *findings) add(d Device, p Pool) {
	f.devices = append(f.devices, d)
	if d.Pool != HostPool {
		f.pools = append(f.pools, p)
	}
}

func (f *findings) warn(code WarningCode, device, message, next string) {
	f.warnings = append(f.warnings, Warning{Code: code, Device: device, Message: message, Next: next})
}

// vendors are all the vendors that Probe asks. A probe must return soon after its context ends.
var vendors = []func(context.Context, machine) findings{
	probeNVIDIA,
	probeAMD,
}

// Probe reads the machine once. It never fails: what could not be read is unknown and has a warning. It returns within
// Options.Timeout and about a second, and sooner when ctx ends. It is cheap enough to be called every few seconds and
// safe to be called concurrently with the same Options.
func Probe(ctx context.Context, options Options) Report {
	options = options.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()

	host, warnings := readHost(ctx, options.Host)
	pool, limited := hostPool(options.Root, host)
	m := machine{root: options.Root, runner: options.Runner, host: host}

	found := make([]findings, len(vendors))
	var wg sync.WaitGroup
	for i, probe := range vendors {
		wg.Go(func() { found[i] = probe(ctx, m) })
	}
	wg.Wait()
	return assemble(host, pool, append(warnings, limited...), found)
}

// assemble puts the parts into one report whose order does not depend on timing, so that reports can be compared.
func assemble(host Host, main Pool, warnings []Warning, found []findings) Report {
	r := Report{Version: ReportVersion, Host: host, Devices: []Device{}, Warnings: append([]Warning{}, warnings...)}
	var own []Pool
	for _, f := range found {
		r.Devices = append(r.Devices, f.devices...)
		own = append(own, f.pools...)
		r.Warnings = append(r.Warnings, f.warnings...)
	}
	slices.SortStableFunc(r.Devices, func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(own, func(a, b Pool) int { return cmp.Compare(a.ID, b.ID) })
	if slices.ContainsFunc(r.Devices, func(d Device) bool { return d.Pool == HostPool }) {
		main.Kind = PoolUnified
	}
	r.Pools = append([]Pool{main}, own...)
	return r
}
