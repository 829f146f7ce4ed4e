package probe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// recall remembers every device that a probe has found, so that a tool that fails, a driver that hangs or a card that is
// unplugged takes no device out of the report without a word: it stays, with its last total and a state that says why.
type recall struct {
	devices map[seenBy]remembered
}

// seenBy is a device as one part of the probe knows it: two parts may find the same one.
type seenBy struct{ part, device string }

// remembered is a device as it was when it last worked.
type remembered struct {
	device  hwprobe.Device
	pool    hwprobe.Pool // zero when it draws on the host's
	seen    time.Time    // when a probe last found it, working or not
	totalAt time.Time    // when its total was read
	freest  hwprobe.Bytes
}

// complete remembers what a part of the probe found, fills in what it could not read, and adds what it did not find: lost when
// it is cleanly gone, degraded when the part failed and cannot know. others are devices that other parts found.
func (r *recall) complete(part string, f hwprobe.Findings, others []hwprobe.Device, now time.Time) hwprobe.Findings {
	found, split := r.withoutSplit(part, f.Devices)
	failed := f.Failed()
	pools := f.Pools
	f.Devices, f.Pools = nil, nil
	for _, told := range found {
		d, p := r.refresh(part, told, poolOf(pools, told.Pool), now)
		if d.Name != told.Name { // one that sleeps or fails is called by what its address tells
			rename(f.Warnings, d, told.Name)
		}
		if d.State != told.State {
			f.Warn(hwprobe.WarnMemoryUnknown, d.ID, d.Name+" does not tell its memory any more", "see what the system's log says about its driver")
		}
		f.Add(d, p)
	}
	inOrder := func(a, b seenBy) int { return cmp.Compare(a.device, b.device) }
	for _, key := range slices.SortedFunc(maps.Keys(r.devices), inOrder) {
		was := r.devices[key]
		switch {
		case key.part != part || slices.ContainsFunc(found, func(d hwprobe.Device) bool { return d.ID == key.device }):
		case !failed && replaced(was.device, slices.Concat(found, others)):
			delete(r.devices, key)
		case was.device.Partition != "" && split[was.device.PCI] != (hwprobe.Device{}):
			card := split[was.device.PCI]
			for i := range f.Warnings { // what is said of the card is said of its first part
				if f.Warnings[i].Device == card.ID {
					f.Warnings[i].Device = was.device.ID
				}
			}
			r.addMissing(&f, was, card.State, now)
		case failed:
			r.addMissing(&f, was, hwprobe.StateDegraded, now)
		default:
			r.addMissing(&f, was, hwprobe.StateLost, now)
			f.Warn(hwprobe.WarnDeviceRemoved, was.device.ID, fmt.Sprintf("%s is gone: it was last seen %s ago", was.device.Name, now.Sub(was.seen).Round(time.Second)),
				"if it was removed on purpose, hide it or restart this program, which then forgets it; otherwise check its power, cable and driver, and what the system's log says")
		}
	}
	return f
}

// withoutSplit takes out the cards that fail and were split when they last worked, by address: their parts, which are remembered,
// stand for them. With both, memory would be counted twice.
func (r *recall) withoutSplit(part string, found []hwprobe.Device) (rest []hwprobe.Device, split map[string]hwprobe.Device) {
	split = map[string]hwprobe.Device{}
	for _, d := range found {
		parted := false
		for key, was := range r.devices {
			parted = parted || key.part == part && was.device.Partition != "" && same(was.device.PCI, d.PCI)
		}
		if d.Partition == "" && !works(d) && parted {
			split[d.PCI] = d
		} else {
			rest = append(rest, d)
		}
	}
	return rest, split
}

// rename has the warnings about a device call it by the name that it has in the report.
func rename(warnings []hwprobe.Warning, d hwprobe.Device, name string) {
	for i := range warnings {
		if rest, named := strings.CutPrefix(warnings[i].Message, name+": "); named && warnings[i].Device == d.ID {
			warnings[i].Message = d.Name + ": " + rest
		}
	}
}

func poolOf(pools []hwprobe.Pool, id string) hwprobe.Pool {
	if i := slices.IndexFunc(pools, func(p hwprobe.Pool) bool { return p.ID == id }); i >= 0 {
		return pools[i]
	}
	return hwprobe.Pool{}
}

// replaced says whether a device that is gone is there all the same: under another id, as a card that was partitioned anew is,
// or found by another part.
func replaced(gone hwprobe.Device, found []hwprobe.Device) bool {
	return slices.ContainsFunc(found, func(d hwprobe.Device) bool {
		return works(d) && (d.ID == gone.ID || same(d.PCI, gone.PCI) || same(d.UUID, gone.UUID) || same(d.LUID, gone.LUID))
	})
}

// works says whether the device is there and can be used.
func works(d hwprobe.Device) bool {
	return d.State != hwprobe.StateDegraded && d.State != hwprobe.StateLost
}

// tellsAll says whether the device's driver tells who it is: one that sleeps is not asked.
func tellsAll(d hwprobe.Device) bool { return works(d) && d.State != hwprobe.StateAsleep }

func same(a, b string) bool { return a != "" && a == b }

// refresh returns the device with what it last told where it tells nothing now, and remembers what it tells.
func (r *recall) refresh(part string, d hwprobe.Device, p hwprobe.Pool, now time.Time) (hwprobe.Device, hwprobe.Pool) {
	key := seenBy{part, d.ID}
	was, known := r.devices[key]
	known = known && !another(was.device, d)
	if !known {
		was = remembered{}
	}
	if known && !tellsAll(d) && tellsAll(was.device) {
		d, p = withIdentity(d, p, was)
	}
	next := remembered{device: d, pool: p, seen: now, totalAt: now, freest: p.FreeBytes}
	if _, told := p.TotalBytes.Value(); was.freest.Or(0) > p.FreeBytes.Or(0) && (!told || p.TotalBytes == was.pool.TotalBytes) {
		next.freest = was.freest
	}
	if _, told := p.TotalBytes.Value(); known && !told && d.Pool != hwprobe.HostPool {
		next.totalAt, next.pool = was.totalAt, was.pool
		p = lastTotal(p, was, now)
		if _, kept := p.TotalBytes.Value(); kept && d.State == hwprobe.StateOK {
			d.State = hwprobe.StateDegraded
		}
		if d.State == hwprobe.StateAsleep { // what sleeps holds nothing, so as much is free as ever was
			p.SetFree(was.freest, hwprobe.SourceLastKnown)
		}
	}
	if known && !tellsAll(d) {
		next.device = was.device
	}
	if r.devices == nil {
		r.devices = map[seenBy]remembered{}
	}
	r.devices[key] = next
	return d, p
}

// another says whether a device is another one than that which had its id, as a card that was swapped for one at the same place.
func another(was, now hwprobe.Device) bool {
	return was.UUID != "" && now.UUID != "" && was.UUID != now.UUID
}

// withIdentity fills in who the device is from when it worked: one that fails or sleeps tells little more than an address.
func withIdentity(d hwprobe.Device, p hwprobe.Pool, was remembered) (hwprobe.Device, hwprobe.Pool) {
	now := d
	d = was.device
	d.State, d.AgeSeconds = now.State, 0
	d.Utilisation, d.Temperature, d.Power = now.Utilisation, now.Temperature, now.Power
	if d.Pool == hwprobe.HostPool {
		p = hwprobe.Pool{}
	}
	return d, p
}

// lastTotal puts the remembered total into a pool that tells none.
func lastTotal(p hwprobe.Pool, was remembered, now time.Time) hwprobe.Pool {
	if _, known := was.pool.TotalBytes.Value(); !known {
		return p
	}
	p.ID, p.Kind, p.Parts = was.pool.ID, was.pool.Kind, nil
	for _, part := range was.pool.Parts {
		part.FreeBytes = hwprobe.Bytes{}
		p.Parts = append(p.Parts, part)
	}
	p.SetTotal(was.pool.TotalBytes, hwprobe.SourceLastKnown)
	p.TotalAgeSeconds = seconds(now.Sub(was.totalAt))
	return p
}

// addMissing adds a device that the part does not find any more.
func (r *recall) addMissing(f *hwprobe.Findings, was remembered, state hwprobe.State, now time.Time) {
	d := was.device
	d.State, d.AgeSeconds = state, seconds(now.Sub(was.seen))
	d.Utilisation, d.Temperature, d.Power = hwprobe.Number{}, hwprobe.Number{}, hwprobe.Number{}
	p := lastTotal(hwprobe.Pool{ID: was.pool.ID, Kind: was.pool.Kind}, was, now)
	f.Add(d, p)
}

// seconds is at least 1: 0 stands for now.
func seconds(age time.Duration) uint64 { return uint64(max(age.Round(time.Second)/time.Second, 1)) }
