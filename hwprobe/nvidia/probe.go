package nvidia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const pciVendorNVIDIA = "0x10de"

// smiPaths are where nvidia-smi is looked for: on the PATH, and where WSL puts it for shells only.
var smiPaths = []string{"nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}

// Probe asks nvidia-smi, and looks in sysfs for cards that nvidia-smi does not answer for, so that a broken driver
// is never taken for a machine without a GPU.
func Probe(ctx context.Context, m source.Machine, host hwprobe.Host) hwprobe.Findings {
	f := &hwprobe.Findings{}
	answer, err := querySMI(ctx, m.Commands)
	rows, rest := parseSMI(string(answer.Stdout))
	for i, row := range rows {
		d, p := nvidiaDevice(i, row)
		f.Add(d, p)
		f.Warnings = append(f.Warnings, nvidiaWarnings(d, p, row)...)
	}
	missing := slices.DeleteFunc(drm.Cards(m.Files, pciVendorNVIDIA), func(c drm.Card) bool {
		return slices.ContainsFunc(f.Devices, func(d hwprobe.Device) bool { return c.PCI != "" && d.PCI == c.PCI })
	})
	text := strings.TrimSpace(rest + "\n" + string(answer.Stderr))
	switch {
	case err != nil:
		addUnread(f, missing, host, failureOf(err), text)
		if !errors.Is(err, exec.ErrNotFound) && len(missing) == 0 {
			f.Warn(failureOf(err).code, "", err.Error(), failureOf(err).next)
		}
	case answer.ExitCode == 0 && len(rows) > 0 && text == "":
		addUnread(f, missing, host, smiFailure{code: hwprobe.WarnDriverNotLoaded, state: hwprobe.StateDegraded,
			next: "bind the card to NVIDIA's driver (lspci -k shows which driver has it)"}, "nvidia-smi does not list it")
	default:
		addFailure(f, missing, host, answer, text, len(rows) > 0)
	}
	return *f
}

// querySMI runs the richest query that the driver understands. A tool that is not installed is exec.ErrNotFound.
func querySMI(ctx context.Context, runner source.Runner) (source.Output, error) {
	var answer source.Output
	var err error
	for _, name := range smiPaths {
		for _, fields := range []string{allFields, basicFields} {
			answer, err = runner.Run(ctx, name, "--query-gpu="+fields, "--format=csv")
			if err != nil || !smiTooOld(string(answer.Stdout)+string(answer.Stderr)) {
				break
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // a path that is not there, unlike a name that is not on the PATH
			err = fmt.Errorf("%w: %w", exec.ErrNotFound, err)
		}
		if err == nil && answer.ExitCode == 127 { // a shell's way to say the same
			err = fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		}
		if !errors.Is(err, exec.ErrNotFound) {
			break
		}
	}
	return answer, err
}

// nvidiaDevice makes a device and its pool of one row. A unified device has no memory of its own: it draws on the host's.
func nvidiaDevice(index int, row smiRow) (hwprobe.Device, hwprobe.Pool) {
	d := hwprobe.Device{
		Vendor: hwprobe.NVIDIA, Name: row.text("name"), UUID: row.text("uuid"), Driver: row.text("driver_version"), State: hwprobe.StateOK,
		Utilisation: row.number("utilization.gpu"), Temperature: row.number("temperature.gpu"), Power: row.number("power.draw"),
		Integrated: hwprobe.Known(nvidiaUnified(row)),
	}
	d.PCI, _ = hwprobe.PCIAddress(row.text("pci.bus_id"))
	switch {
	case d.PCI != "":
		d.ID = "gpu:" + d.PCI
	case d.UUID != "":
		d.ID = "gpu:" + d.UUID
	default:
		d.ID = fmt.Sprintf("gpu:nvidia%d", index)
	}
	d.Pool = d.ID
	if d.Integrated.Or(false) {
		d.Pool = hwprobe.HostPool
	}
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	total, free := row.bytes("memory.total"), row.bytes("memory.free")
	if total.Or(0) == 0 || free.Or(0) > total.Or(0) { // impossible, so nothing is known
		total, free = hwprobe.Bytes{}, hwprobe.Bytes{}
	}
	p.SetTotal(total, hwprobe.SourceNVIDIASMI)
	p.SetFree(free, hwprobe.SourceNVIDIASMI)
	switch {
	case row.says("gpuislost"):
		d.State = hwprobe.StateLost
	case row.cells["mig.mode.current"] == "Enabled":
		d.State = hwprobe.StateUnsupported
	case d.Pool != hwprobe.HostPool && total == (hwprobe.Bytes{}):
		d.State = hwprobe.StateDegraded
	}
	return d, p
}

// nvidiaUnified tells a device that shares the host's memory (GB10, Grace, Jetson). ATS is the hardware's shared page
// table; HMM is software and runs on ordinary cards. A small but plausible memory number beside ATS is a carve-out. Where
// the driver has no notion of device memory, rather than an error reading it, there is none.
func nvidiaUnified(row smiRow) bool {
	if row.text("addressing_mode") == "ATS" || strings.Contains(row.text("name"), "(nvgpu)") {
		return true
	}
	named := func(field string) bool { _, asked := row.cells[field]; return !asked || row.text(field) != "" }
	return row.notSupported("memory.total") && row.notSupported("memory.free") && named("name") && named("uuid")
}

func nvidiaWarnings(d hwprobe.Device, p hwprobe.Pool, row smiRow) []hwprobe.Warning {
	warning := func(code hwprobe.WarningCode, message, next string) []hwprobe.Warning {
		return []hwprobe.Warning{{Code: code, Device: d.ID, Message: d.Name + ": " + message, Next: next}}
	}
	switch {
	case d.State == hwprobe.StateLost:
		return warning(hwprobe.WarnDeviceLost, "the GPU is lost", "reboot; if it happens again check power, cooling and the card's seat")
	case d.State == hwprobe.StateUnsupported:
		return warning(hwprobe.WarnPartitioned, "it is split into MIG instances, which this version does not read",
			"switch MIG off (nvidia-smi -mig 0) to use the card as one")
	case row.says("insufficientpermissions"):
		return warning(hwprobe.WarnNoPermission, "nvidia-smi may not read its memory",
			"let this user open /dev/nvidia*, or run the container with access to the GPU")
	case d.Pool != hwprobe.HostPool && p.TotalBytes == (hwprobe.Bytes{}):
		return warning(hwprobe.WarnMemoryUnknown, "nvidia-smi does not tell its memory", "run nvidia-smi -q by hand and look at FB Memory Usage")
	}
	return nil
}

// failureOf says what an nvidia-smi that did not run to its end means.
func failureOf(err error) smiFailure {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return smiFailure{code: hwprobe.WarnToolMissing, state: hwprobe.StateDegraded,
			next: "install NVIDIA's driver with nvidia-smi, or put nvidia-smi on this process's PATH"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, source.ErrStuck):
		return smiFailure{code: hwprobe.WarnToolTimeout, state: hwprobe.StateDegraded,
			next: "see dmesg for Xid errors; a hanging nvidia-smi usually ends only with a reboot"}
	}
	return classifySMI("")
}

// addFailure records a failure that nvidia-smi printed. It may be about the cards whose addresses it names, or about all.
func addFailure(f *hwprobe.Findings, missing []drm.Card, host hwprobe.Host, answer source.Output, text string, hasRows bool) {
	failure := classifySMI(text)
	addresses := failedAddresses(text)
	if len(addresses) == 0 {
		switch {
		case len(missing) > 0:
			addUnread(f, missing, host, failure, text)
		case failure.text == "nodeviceswerefound": // and sysfs has none either: a driver without a card is no fault
		case !hasRows || answer.ExitCode != 0:
			said := cmp.Or(excerpt(text), "it printed no device and no reason")
			f.Warn(failure.code, "", fmt.Sprintf("nvidia-smi failed with exit code %d: %s", answer.ExitCode, said), failure.next)
		}
		return
	}
	for _, address := range addresses {
		missing = slices.DeleteFunc(missing, func(c drm.Card) bool { return c.PCI == address })
		addUnread(f, []drm.Card{{PCI: address}}, host, failure, text)
	}
	// Older versions give up at the first bad card, so nothing is known about the others.
	addUnread(f, missing, host, smiFailure{code: hwprobe.WarnToolFailed, state: hwprobe.StateDegraded, next: failure.next}, text)
}

// addUnread adds cards that are there and that nvidia-smi tells nothing about.
func addUnread(f *hwprobe.Findings, cards []drm.Card, host hwprobe.Host, failure smiFailure, why string) {
	for _, c := range cards {
		d := hwprobe.Device{ID: c.DeviceID(), Vendor: hwprobe.NVIDIA, Name: "NVIDIA GPU", PCI: c.PCI, Driver: c.Driver, State: failure.state}
		if c.ID != "" {
			d.Name += " (" + c.ID + ")"
		}
		if host.Arch == "amd64" { // NVIDIA's unified devices are all ARM systems
			d.Integrated = hwprobe.Known(false)
		}
		d.Pool = d.ID
		f.Add(d, hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice})
		message := d.Name + ": nvidia-smi does not answer for it"
		if why != "" {
			message += ": " + excerpt(why)
		}
		f.Warn(failure.code, d.ID, message, failure.next)
	}
}

// excerpt is the beginning of a tool's text on one line.
func excerpt(text string) string {
	const most = 200
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	return string(words)
}
