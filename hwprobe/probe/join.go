package probe

import (
	"cmp"
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// assemble puts the parts into one report whose order does not depend on timing, so that reports can be compared.
func assemble(h hostFacts, found []hwprobe.Findings) hwprobe.Report {
	r := hwprobe.Report{Version: hwprobe.ReportVersion, Host: h.host, Devices: []hwprobe.Device{}, Warnings: append([]hwprobe.Warning{}, h.warnings...)}
	j := joined{}
	for _, f := range found {
		for _, d := range f.Devices {
			j.add(d, poolOf(f.Pools, d.Pool))
		}
		r.Warnings = append(r.Warnings, f.Warnings...)
	}
	r.Devices = append(r.Devices, j.devices...)
	for i := range r.Warnings {
		if id, known := j.renamed[r.Warnings[i].Device]; known {
			r.Warnings[i].Device = id
		}
	}
	slices.SortStableFunc(r.Devices, func(a, b hwprobe.Device) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(j.pools, func(a, b hwprobe.Pool) int { return cmp.Compare(a.ID, b.ID) })
	if slices.ContainsFunc(r.Devices, func(d hwprobe.Device) bool { return d.Pool == hwprobe.HostPool }) {
		h.pool.Kind = hwprobe.PoolUnified
	}
	r.Pools = append([]hwprobe.Pool{h.pool}, j.pools...)
	return r
}

// joined are the devices of all parts. One device may be found by several, as an NVIDIA card on Windows is by its own tool and
// by the system: it is one device all the same, paired by address, UUID or LUID and never by name or order.
type joined struct {
	devices []hwprobe.Device
	pools   []hwprobe.Pool
	renamed map[string]string // from the id that a later part gave to that of the first
}

func (j *joined) add(d hwprobe.Device, p hwprobe.Pool) {
	i := slices.IndexFunc(j.devices, func(have hwprobe.Device) bool { return oneDevice(have, d) })
	if i < 0 {
		j.devices = append(j.devices, d)
		if d.Pool != hwprobe.HostPool && !slices.ContainsFunc(j.pools, func(have hwprobe.Pool) bool { return have.ID == p.ID }) {
			j.pools = append(j.pools, p)
		}
		return
	}
	have := &j.devices[i]
	if d.ID != have.ID {
		if j.renamed == nil {
			j.renamed = map[string]string{}
		}
		j.renamed[d.ID] = have.ID
	}
	fill(have, d)
	if k := slices.IndexFunc(j.pools, func(p hwprobe.Pool) bool { return p.ID == have.Pool }); k >= 0 && d.Pool != hwprobe.HostPool {
		fillPool(&j.pools[k], p)
	}
}

func oneDevice(a, b hwprobe.Device) bool {
	if a.ID == b.ID {
		return true
	}
	if a.Partition != "" || b.Partition != "" {
		return false
	}
	if a.PCI != "" && b.PCI != "" { // two places are two devices, whatever else a broken one says of itself
		return a.PCI == b.PCI
	}
	return same(a.UUID, b.UUID) || same(a.LUID, b.LUID)
}

// fill adds to a device what another part knows of it. What was found now says more about the state than what is remembered.
func fill(have *hwprobe.Device, d hwprobe.Device) {
	if have.AgeSeconds > 0 && d.AgeSeconds == 0 {
		have.State, have.AgeSeconds = d.State, 0
	}
	have.PCI, have.LUID, have.UUID = cmp.Or(have.PCI, d.PCI), cmp.Or(have.LUID, d.LUID), cmp.Or(have.UUID, d.UUID)
	have.Name, have.Driver = cmp.Or(have.Name, d.Name), cmp.Or(have.Driver, d.Driver)
	have.Integrated = cmp.Or(have.Integrated, d.Integrated)
	have.Utilisation = cmp.Or(have.Utilisation, d.Utilisation)
	have.Temperature, have.Power = cmp.Or(have.Temperature, d.Temperature), cmp.Or(have.Power, d.Power)
}

// fillPool takes numbers that were read now in place of none or of remembered ones. The first part's own reading stands: the
// vendor's tool knows more than the system. A total comes with its free.
func fillPool(have *hwprobe.Pool, p hwprobe.Pool) {
	current := func(s hwprobe.Source) bool { return s != "" && s != hwprobe.SourceLastKnown }
	if !current(have.TotalSource) && current(p.TotalSource) {
		id := have.ID
		*have = p
		have.ID = id
		return
	}
	free, known := p.FreeBytes.Value()
	if !current(have.FreeSource) && current(p.FreeSource) && known && free <= have.TotalBytes.Or(0) {
		have.SetFree(p.FreeBytes, p.FreeSource)
	}
}
