package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/host"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const (
	// DefaultTimeout bounds the first probe. It is long because the first nvidia-smi on a headless machine without persistence
	// mode starts the driver, which takes seconds.
	DefaultTimeout = 20 * time.Second
	// LaterTimeout bounds the probes after the first.
	LaterTimeout = 5 * time.Second
)

// Options is what a Prober is made of.
type Options struct {
	Machine      source.Machine
	Overrides    hwprobe.Overrides
	FirstTimeout time.Duration // of the first probe; 0: DefaultTimeout
	Timeout      time.Duration // of those after it; 0: LaterTimeout
}

// Prober probes one machine again and again. It comes back a little after its timeout whatever hangs, and remembers what it
// found before. Safe for concurrent use; probes run one after the other.
type Prober struct {
	o       Options
	spent   *meter
	poke    chan struct{} // a wish to look now; capacity one
	instant func() instant

	mu       sync.Mutex // held by a probe
	vendors  []*vendorPart
	host     part[hostFacts]
	lastHost rememberedHost
	recall   recall
	probed   bool

	busyMu sync.Mutex
	busy   bool
}

type vendorPart struct {
	part[hwprobe.Findings]
	vendor
}

type hostFacts struct {
	host     hwprobe.Host
	pool     hwprobe.Pool
	warnings []hwprobe.Warning
}

type rememberedHost struct {
	hostFacts
	at time.Time // when its total was read; zero: never
}

// New makes a Prober. It starts nothing.
func New(o Options) *Prober { return newProber(o, vendors) }

func newProber(o Options, vendors []vendor) *Prober {
	if o.FirstTimeout == 0 {
		o.FirstTimeout = DefaultTimeout
	}
	if o.Timeout == 0 {
		o.Timeout = LaterTimeout
	}
	p := &Prober{o: o, spent: &meter{Runner: o.Machine.Commands}, poke: make(chan struct{}, 1), instant: now, host: part[hostFacts]{name: "host"}}
	p.o.Machine.Commands = p.spent
	for _, v := range vendors {
		p.vendors = append(p.vendors, &vendorPart{part: part[hwprobe.Findings]{name: v.name}, vendor: v})
	}
	return p
}

// Probe reads the machine once. It never fails: what could not be read is unknown or the last that was known, and has a
// warning.
func (p *Prober) Probe(ctx context.Context) hwprobe.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	timeout := p.o.Timeout
	if !p.probed {
		timeout, p.probed = p.o.FirstTimeout, true
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	h := p.probeHost(ctx, timeout/4)
	found := p.probeVendors(ctx, h.host)
	now := wallClock()
	complete := make([]hwprobe.Findings, len(found))
	for i, v := range p.vendors {
		complete[i] = p.recall.complete(v.vendor.name, found[i], otherDevices(found, i), now)
	}
	return p.o.Overrides.Apply(assemble(h, complete).Clean())
}

func otherDevices(found []hwprobe.Findings, but int) []hwprobe.Device {
	var devices []hwprobe.Device
	for i, f := range found {
		if i != but {
			devices = append(devices, f.Devices...)
		}
	}
	return devices
}

// probeHost reads the host first, because the vendors' parts need its memory; it may take only a share of the time.
func (p *Prober) probeHost(ctx context.Context, timeout time.Duration) hostFacts {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m := p.o.Machine
	h, err := p.host.run(ctx, func(ctx context.Context) hostFacts {
		h, warnings := host.Read(ctx, m)
		pool, limited := host.Pool(m.Files, h)
		return hostFacts{host: h, pool: pool, warnings: append(warnings, limited...)}
	})
	if err != nil {
		h = hostFacts{host: hwprobe.Host{OS: m.OS, Arch: m.Arch}, pool: hwprobe.Pool{ID: hwprobe.HostPool, Kind: hwprobe.PoolOfHost},
			warnings: []hwprobe.Warning{partWarning(p.host.name, err)}}
	}
	return p.lastHost.complete(h, wallClock())
}

// wallClock is by which ages are counted: the monotonic clock stands still while the machine is suspended.
func wallClock() time.Time { return time.Now().Round(0) }

// complete puts the last known host in place of one that could not be read.
func (r *rememberedHost) complete(h hostFacts, now time.Time) hostFacts {
	if _, known := h.pool.TotalBytes.Value(); known {
		r.hostFacts, r.at = h, now
		return h
	}
	if r.at.IsZero() {
		return h
	}
	h.host = r.host
	h.host.AvailableBytes = hwprobe.Bytes{}
	h.pool.SetTotal(r.pool.TotalBytes, hwprobe.SourceLastKnown)
	h.pool.TotalAgeSeconds = seconds(now.Sub(r.at))
	return h
}

// probeVendors asks all vendors' parts at once.
func (p *Prober) probeVendors(ctx context.Context, h hwprobe.Host) []hwprobe.Findings {
	found := make([]hwprobe.Findings, len(p.vendors))
	var wg sync.WaitGroup
	for i, v := range p.vendors {
		wg.Go(func() {
			var err error
			found[i], err = v.part.run(ctx, func(ctx context.Context) hwprobe.Findings { return v.probe(ctx, p.o.Machine, h) })
			if err != nil {
				found[i] = hwprobe.Findings{Warnings: []hwprobe.Warning{partWarning(v.vendor.name, err)}}
			}
		})
	}
	wg.Wait()
	return found
}

func partWarning(name string, err error) hwprobe.Warning {
	if errors.Is(err, source.ErrStuck) {
		return hwprobe.Warning{Code: hwprobe.WarnProbeStuck, Message: err.Error(),
			Next: "see what the system's log says about the driver; what hangs in it usually ends only with a reboot"}
	}
	return hwprobe.Warning{Code: hwprobe.WarnProbeFailed, Message: fmt.Sprintf("the part %s of the probe broke: %v", name, err),
		Next: "this is a fault of the probe: record the machine with --raw and report it"}
}
