package hwprobe

import "slices"

// Findings is what one vendor's part of a probe found. A device whose pool is not HostPool brings its own pool, which has the
// device's id, or shares one with the other partitions of its card.
type Findings struct {
	Devices  []Device
	Pools    []Pool
	Warnings []Warning
}

// Add adds a device, and its pool unless that is the host's or is there already.
func (f *Findings) Add(d Device, p Pool) {
	f.Devices = append(f.Devices, d)
	if d.Pool != HostPool && !slices.ContainsFunc(f.Pools, func(have Pool) bool { return have.ID == p.ID }) {
		f.Pools = append(f.Pools, p)
	}
}

// Warn adds a warning; device is empty where it is about none.
func (f *Findings) Warn(code WarningCode, device, message, next string) {
	f.Warnings = append(f.Warnings, Warning{Code: code, Device: device, Message: message, Next: next})
}

// SetTotal sets a pool's total and its source together; an unknown number has no source. A total that no memory has is unknown,
// see Size.
func (p *Pool) SetTotal(value Bytes, from Source) {
	set(&p.TotalBytes, &p.TotalSource, Size(value), from)
}

// SetFree sets a pool's free bytes and their source together; an unknown number has no source, and what is free of more than
// there can be is unknown.
func (p *Pool) SetFree(value Bytes, from Source) {
	if value.Or(0) > mostMemory {
		value = Bytes{}
	}
	set(&p.FreeBytes, &p.FreeSource, value, from)
}

// mostMemory is more than any machine has: a processor of today addresses 4 PiB at most (Intel's five-level paging, 52 bits).
// What a bus reads from a device that is not there any more is all ones, which is larger.
const mostMemory = 1 << 52

// Size is a size of memory as told, unknown where it is one that no memory has: 0, or more than a machine can address.
func Size(told Bytes) Bytes {
	if n := told.Or(0); n == 0 || n > mostMemory {
		return Bytes{}
	}
	return told
}

func set(number *Bytes, source *Source, value Bytes, from Source) {
	*number, *source = value, ""
	if _, known := value.Value(); known {
		*source = from
	}
}

// Failed says whether the part could not see all that there may be, because a tool or a driver failed as a whole: devices
// that are not among the findings may be there all the same.
func (f Findings) Failed() bool {
	return slices.ContainsFunc(f.Warnings, func(w Warning) bool { return w.Device == "" && wholeFailures[w.Code] })
}

// wholeFailures are the warnings that, when they are about no single device, mean that devices may not have been seen.
var wholeFailures = map[WarningCode]bool{
	WarnToolMissing: true, WarnToolTimeout: true, WarnToolFailed: true, WarnDriverNotLoaded: true, WarnDriverMismatch: true,
	WarnAccessLost: true, WarnNoPermission: true, WarnProbeStuck: true, WarnProbeFailed: true, WarnGPUsUnreadable: true,
}
