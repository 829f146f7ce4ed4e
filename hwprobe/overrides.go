package hwprobe

import (
	"fmt"
	"slices"
	"strings"
)

// Overrides are what a machine's owner knows better than any probe. The zero value changes nothing.
type Overrides struct {
	Pools   []PoolOverride
	Devices []DeviceOverride
}

// MainPool means, in a PoolOverride, the memory that a program for the machine's accelerator uses: the pool of its discrete
// device, else of its integrated one, else main memory. Where there are several such pools it means none.
const MainPool = "main"

// PoolOverride says how large a pool is, and how much of it is kept out of use.
type PoolOverride struct {
	Pool         string // its id, or one of its devices, see DeviceOverride; HostPool for main memory; or MainPool
	TotalBytes   Bytes  // replaces the probed total; unknown: as probed
	ReserveBytes uint64 // kept out of use; 0: as probed
}

// DeviceOverride says whether a device is used. Where both are set, it is hidden.
type DeviceOverride struct {
	Device string // its id, PCI address in any spelling, UUID or LUID
	Hide   bool   // it goes from Devices to Hidden, and its pool with it
	Force  bool   // it is to be used whatever its kind, as an integrated one; one that is unsupported becomes ok
}

// Apply returns the report as the owner wants it seen. What an override changed has SourceOverride; one that names nothing in
// the report is a warning. The given report is not changed.
func (o Overrides) Apply(r Report) Report {
	r.Devices, r.Pools = slices.Clone(r.Devices), slices.Clone(r.Pools)
	r.Warnings, r.Hidden = slices.Clone(r.Warnings), slices.Clone(r.Hidden)
	unmatched := func(what, name, have string) {
		r.Warnings = append(r.Warnings, Warning{Code: WarnOverride, Message: fmt.Sprintf("the override of %s %q matches nothing", what, name),
			Next: "correct or remove it: " + have})
	}
	for _, p := range o.Pools {
		if i := r.poolNamed(p.Pool); i >= 0 {
			p.apply(&r.Pools[i])
		} else {
			unmatched("pool", p.Pool, "this machine's pools are "+strings.Join(names(r.Pools, func(p Pool) string { return p.ID }), ", "))
		}
	}
	have := "this machine has no devices"
	if len(r.Devices) > 0 {
		have = "this machine's devices are " + strings.Join(names(r.Devices, func(d Device) string { return d.ID }), ", ")
	}
	for _, d := range o.Devices {
		if !d.apply(&r) {
			unmatched("device", d.Device, have)
		}
	}
	return r
}

func names[T any](list []T, name func(T) string) []string {
	var all []string
	for _, x := range list {
		all = append(all, name(x))
	}
	return all
}

// Is says whether name means the device: its id, PCI address in any spelling, UUID or LUID. A card's PCI address does not mean
// its partitions.
func (d Device) Is(name string) bool {
	if name == "" {
		return false
	}
	if address, ok := PCIAddress(strings.TrimPrefix(name, "gpu:")); ok && d.Partition == "" && d.PCI == address {
		return true
	}
	return name == d.ID || strings.EqualFold(name, d.UUID) || strings.EqualFold(name, d.LUID)
}

func (r Report) poolNamed(name string) int {
	if name == MainPool {
		name = r.mainPool()
	}
	if i := slices.IndexFunc(r.Pools, func(p Pool) bool { return p.ID == name }); i >= 0 {
		return i
	}
	for _, d := range r.Devices {
		if d.Is(name) {
			return slices.IndexFunc(r.Pools, func(p Pool) bool { return p.ID == d.Pool })
		}
	}
	return -1
}

// mainPool is the id of the pool that MainPool means, or "".
func (r Report) mainPool() string {
	for _, kind := range []PoolKind{PoolOfDevice, PoolUnified} {
		var found []string
		for _, p := range r.Pools {
			drawsOn := func(d Device) bool { return d.Pool == p.ID && d.State != StateUnsupported }
			if p.Kind == kind && slices.ContainsFunc(r.Devices, drawsOn) {
				found = append(found, p.ID)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0]
		default:
			return ""
		}
	}
	return HostPool
}

// apply pins the total. A smaller total takes its difference from what is free; a larger one adds nothing to it, because
// free is a measurement.
func (o PoolOverride) apply(p *Pool) {
	if total, pinned := o.TotalBytes.Value(); pinned {
		free, known := p.FreeBytes.Value()
		if was, probed := p.TotalBytes.Value(); known && probed && was > total {
			free -= min(free, was-total)
		}
		if free = min(free, total); known && p.FreeBytes != Known(free) {
			p.SetFree(Known(free), SourceOverride)
		}
		p.SetTotal(o.TotalBytes, SourceOverride)
		p.TotalAgeSeconds = 0
	}
	if o.ReserveBytes > 0 {
		p.ReserveBytes = o.ReserveBytes
	}
}

func (o DeviceOverride) apply(r *Report) (matched bool) {
	for i := range r.Devices {
		d := &r.Devices[i]
		if !d.Is(o.Device) {
			continue
		}
		matched = true
		if o.Force && !o.Hide {
			if d.Forced = true; d.State == StateUnsupported {
				d.State = StateOK
			}
		}
	}
	if o.Hide && matched {
		r.hide(o.Device)
	}
	return matched || slices.ContainsFunc(r.Hidden, func(d Device) bool { return d.Is(o.Device) })
}

// hide takes the named devices out, what is only about them, and the pools that nothing draws on any more.
func (r *Report) hide(name string) {
	r.Devices = slices.DeleteFunc(r.Devices, func(d Device) bool {
		if !d.Is(name) {
			return false
		}
		r.Hidden = append(r.Hidden, d)
		r.Warnings = slices.DeleteFunc(r.Warnings, func(w Warning) bool { return w.Device == d.ID })
		return true
	})
	drawnOn := func(id string) bool {
		return slices.ContainsFunc(r.Devices, func(d Device) bool { return d.Pool == id })
	}
	r.Pools = slices.DeleteFunc(r.Pools, func(p Pool) bool { return p.ID != HostPool && !drawnOn(p.ID) })
	if i := r.poolNamed(HostPool); i >= 0 && !drawnOn(HostPool) {
		r.Pools[i].Kind = PoolOfHost
	}
}
