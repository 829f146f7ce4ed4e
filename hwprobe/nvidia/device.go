package nvidia

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// addRow adds the device of a row, or its MIG instances; detailed says whether the XML told of it.
func (f *finder) addRow(index int, r row, parts []instance, detailed bool) {
	d, p := f.device(index, r, detailed)
	if len(parts) > 0 {
		f.addInstances(d, parts)
		return
	}
	if !f.has(d.ID) {
		f.add(d, p)
		f.warnOf(d, p, r)
	}
}

// device makes a device and its pool of one row. A unified device has no memory of its own: it draws on the host's.
func (f *finder) device(index int, r row, detailed bool) (hwprobe.Device, hwprobe.Pool) {
	d := hwprobe.Device{
		Vendor: hwprobe.NVIDIA, Name: r.text("name"), PCI: r.address(), UUID: r.text("uuid"), Driver: cmp.Or(r.text("driver_version"), r.text("kmd_version")),
		State: hwprobe.StateOK, Integrated: unified(r, f.machine.Arch), Utilisation: r.number("utilization.gpu", 0, 100),
		Temperature: r.number("temperature.gpu", absoluteZero, math.MaxFloat64), Power: r.number("power.draw", 0, math.MaxFloat64),
	}
	switch {
	case d.PCI != "":
		d.ID = "gpu:" + d.PCI
	case d.UUID != "":
		d.ID = "gpu:" + d.UUID
	default:
		d.ID = fmt.Sprintf("gpu:nvidia%d", index)
	}
	d.Pool = d.ID
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	total, free := r.memory()
	p.SetTotal(total, hwprobe.SourceNVIDIASMI)
	p.SetFree(free, hwprobe.SourceNVIDIASMI)
	switch {
	case r.says("gpuislost"):
		d.State = hwprobe.StateLost
	case r.says("gpurequiresreset"):
		d.State = hwprobe.StateDegraded
	case d.Integrated.Or(false):
		d.Pool = hwprobe.HostPool
	case partitioned(r) && detailed:
		d.State = hwprobe.StateUnsupported
	case partitioned(r), total == (hwprobe.Bytes{}):
		d.State = hwprobe.StateDegraded
	}
	return d, p
}

// absoluteZero is in degrees Celsius: nothing is colder, so a lower number is no temperature.
const absoluteZero = -273.15

func partitioned(r row) bool { return r.cells["mig.mode.current"] == "Enabled" }

// warnOf says what is wrong with a device, the most telling thing only.
func (f *finder) warnOf(d hwprobe.Device, p hwprobe.Pool, r row) {
	warn := func(code hwprobe.WarningCode, message, next string) {
		f.found.Warn(code, d.ID, d.Name+": "+message, next)
	}
	switch {
	case d.State == hwprobe.StateLost:
		warn(lost.code, "the GPU is lost", lost.next)
	case r.says("gpurequiresreset"):
		warn(reset.code, "the GPU requires a reset", reset.next)
	case d.State == hwprobe.StateUnsupported:
		warn(hwprobe.WarnPartitioned, "MIG is enabled, and nvidia-smi tells of no instance",
			"create instances (nvidia-smi mig -cgi … -C), or switch MIG off (nvidia-smi -mig 0) to use the card as one")
	case partitioned(r):
		warn(hwprobe.WarnPartitioned, "MIG is enabled, and nvidia-smi -q -x did not tell of its instances", "run nvidia-smi -q -x by hand and see whether it comes to its end")
	case d.Pool == hwprobe.HostPool || p.TotalBytes != (hwprobe.Bytes{}): // all is well
	case r.says("insufficientpermissions"):
		warn(forbidden.code, "nvidia-smi may not read its memory", forbidden.next)
	default:
		warn(hwprobe.WarnMemoryUnknown, "nvidia-smi does not tell its memory", "run nvidia-smi -q by hand and look at FB Memory Usage")
	}
}

// add adds a device and its pool, once: what is told twice must not be counted twice.
func (f *finder) add(d hwprobe.Device, p hwprobe.Pool) {
	if !f.has(d.ID) {
		f.found.Add(d, p)
	}
}

func (f *finder) has(id string) bool {
	return slices.ContainsFunc(f.found.Devices, func(d hwprobe.Device) bool { return d.ID == id })
}
