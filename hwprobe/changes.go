package hwprobe

import "slices"

// Change is one difference between two reports that somebody may want to act on. Numbers that move all the time, such as
// what is free, are none.
type Change struct {
	Kind    ChangeKind `json:"kind"`
	Device  string     `json:"device,omitempty"`  // id of the device it is about
	Pool    string     `json:"pool,omitempty"`    // id of the pool it is about
	From    string     `json:"from,omitempty"`    // what it was: a state, a driver, a number of bytes or "unknown"
	To      string     `json:"to,omitempty"`      // what it is
	Warning *Warning   `json:"warning,omitempty"` // that appeared or is gone
}

// ChangeKind is what changed.
type ChangeKind string

// The kinds of changes.
const (
	DeviceAdded       ChangeKind = "device_added"
	DeviceRemoved     ChangeKind = "device_removed"  // it is no more in the report: hidden, or the card was partitioned anew
	DeviceLost        ChangeKind = "device_lost"     // it is still in the report
	DeviceReturned    ChangeKind = "device_returned" // it was lost or degraded, or unsupported, and can be used
	DeviceAsleep      ChangeKind = "device_asleep"
	DeviceAwake       ChangeKind = "device_awake"
	DeviceDegraded    ChangeKind = "device_degraded"
	DeviceUnsupported ChangeKind = "device_unsupported"
	DriverChanged     ChangeKind = "driver_changed"
	PoolTotalChanged  ChangeKind = "pool_total_changed"
	WarningAppeared   ChangeKind = "warning_appeared"
	WarningGone       ChangeKind = "warning_gone"
	// Resumed: the machine was suspended and runs again. No two reports tell it; who watches adds it.
	Resumed ChangeKind = "resumed"
)

// Changes returns what is different in the later report: devices and pools in their order there, then what is gone, then
// warnings. Against the zero report everything is new.
func Changes(earlier, later Report) []Change {
	var changes []Change
	for _, d := range later.Devices {
		was, known := earlier.Device(d.ID)
		if !known {
			changes = append(changes, Change{Kind: DeviceAdded, Device: d.ID, Pool: d.Pool, To: string(d.State)})
			continue
		}
		if d.State != was.State {
			changes = append(changes, Change{Kind: stateChange(was.State, d.State), Device: d.ID, From: string(was.State), To: string(d.State)})
		}
		if d.Driver != was.Driver && d.Driver != "" && was.Driver != "" {
			changes = append(changes, Change{Kind: DriverChanged, Device: d.ID, From: was.Driver, To: d.Driver})
		}
	}
	for _, d := range earlier.Devices {
		if _, still := later.Device(d.ID); !still {
			changes = append(changes, Change{Kind: DeviceRemoved, Device: d.ID, Pool: d.Pool, From: string(d.State)})
		}
	}
	for _, p := range later.Pools {
		if was, known := earlier.Pool(p.ID); known && p.TotalBytes != was.TotalBytes {
			changes = append(changes, Change{Kind: PoolTotalChanged, Pool: p.ID, From: was.TotalBytes.String(), To: p.TotalBytes.String()})
		}
	}
	changes = append(changes, warnings(WarningAppeared, later, earlier)...)
	return append(changes, warnings(WarningGone, earlier, later)...)
}

func stateChange(from, to State) ChangeKind {
	switch to {
	case StateLost:
		return DeviceLost
	case StateDegraded:
		return DeviceDegraded
	case StateUnsupported:
		return DeviceUnsupported
	}
	switch from {
	case StateOK:
		return DeviceAsleep
	case StateAsleep:
		return DeviceAwake
	}
	return DeviceReturned
}

// warnings returns those of one report that the other has not. A warning is the same one when it is of the same kind about
// the same device: its words may count seconds.
func warnings(kind ChangeKind, in, notIn Report) []Change {
	var changes []Change
	for i, w := range in.Warnings {
		same := func(other Warning) bool { return w.Code == other.Code && w.Device == other.Device }
		if !slices.ContainsFunc(notIn.Warnings, same) && !slices.ContainsFunc(in.Warnings[:i], same) {
			changes = append(changes, Change{Kind: kind, Device: w.Device, Warning: &w})
		}
	}
	return changes
}
