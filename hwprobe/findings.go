package hwprobe

// Findings is what one vendor's part of a probe found. A device whose pool is not HostPool brings its own pool, with the
// device's id.
type Findings struct {
	Devices  []Device
	Pools    []Pool
	Warnings []Warning
}

// Add adds a device, and its pool where it has one of its own.
func (f *Findings) Add(d Device, p Pool) {
	f.Devices = append(f.Devices, d)
	if d.Pool != HostPool {
		f.Pools = append(f.Pools, p)
	}
}

// Warn adds a warning; device is empty where it is about none.
func (f *Findings) Warn(code WarningCode, device, message, next string) {
	f.Warnings = append(f.Warnings, Warning{Code: code, Device: device, Message: message, Next: next})
}

// SetTotal sets a pool's total and its source together; an unknown number has no source.
func (p *Pool) SetTotal(value Bytes, from Source) { set(&p.TotalBytes, &p.TotalSource, value, from) }

// SetFree sets a pool's free bytes and their source together; an unknown number has no source.
func (p *Pool) SetFree(value Bytes, from Source) { set(&p.FreeBytes, &p.FreeSource, value, from) }

func set(number *Bytes, source *Source, value Bytes, from Source) {
	*number, *source = value, ""
	if _, known := value.Value(); known {
		*source = from
	}
}
