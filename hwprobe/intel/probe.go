// Package intel reads Intel's graphics cards and processors with graphics on Linux: what the i915 and xe drivers answer on
// the card's render node, and the few files that tell memory. Without rights the drivers tell a card's size, but not what
// is free of it.
package intel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/drm"
	"github.com/loopkeeper/loopkeeper/hwprobe/pciids"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

const pciVendor = "0x8086"

// Probe reads every card and every processor's graphics. It wakes no sleeping card.
func Probe(ctx context.Context, m source.Machine, _ hwprobe.Host) hwprobe.Findings {
	var f hwprobe.Findings
	for _, c := range drm.Cards(m.Files, pciVendor) {
		d := hwprobe.Device{ID: c.DeviceID(), Vendor: hwprobe.Intel, Name: cardName(c), PCI: c.PCI, Driver: c.Driver, State: hwprobe.StateOK}
		d.Integrated = chip(c)
		var answer regions
		var asked error
		if !d.Integrated.Or(false) {
			answer, asked = askRegions(ctx, m.Calls, c)
			d.Integrated = integrated(c, answer)
		}
		if c.Asleep {
			d.State = hwprobe.StateAsleep
		} else {
			// xe calls the chip's sensor "pkg", i915 labels nothing. Both count energy instead of power, which takes two readings.
			d.Temperature, d.Power = c.Temperature(m.Files, "pkg"), c.Power(m.Files)
		}
		if d.Integrated.Or(false) {
			d.Pool = hwprobe.HostPool // no memory of its own, and the driver maps what the host has
			f.Add(d, hwprobe.Pool{})
			continue
		}
		addCard(&f, m.Files, c, d, answer, asked)
	}
	return f
}

// addCard adds a device with memory of its own, or one that cannot be told from such.
func addCard(f *hwprobe.Findings, root fs.FS, c drm.Card, d hwprobe.Device, answer regions, asked error) {
	d.Pool = d.ID
	p := hwprobe.Pool{ID: d.ID, Kind: hwprobe.PoolOfDevice}
	fromFiles := readFiles(root, c)
	p.SetTotal(answer.total, hwprobe.SourceDRM)
	p.SetFree(answer.free, hwprobe.SourceDRM)
	if answer.total == (hwprobe.Bytes{}) {
		p.SetTotal(fromFiles.total, hwprobe.SourceIntelFiles)
	}
	if answer.free == (hwprobe.Bytes{}) {
		p.SetFree(hwprobe.Least(fromFiles.free, p.TotalBytes), hwprobe.SourceIntelFiles)
	}
	switch {
	case p.TotalBytes == hwprobe.Bytes{}:
		if d.State == hwprobe.StateOK {
			d.State = hwprobe.StateDegraded
		}
		code, message, next := whyUnknown(c, asked)
		f.Warn(code, d.ID, d.Name+": "+message, next)
	case p.FreeBytes == hwprobe.Bytes{} && !mayAccount(root):
		f.Warn(hwprobe.WarnNoPermission, d.ID, d.Name+": without the right CAP_PERFMON the driver does not tell how much of the memory is used",
			"give the worker the right: setcap cap_perfmon+ep on its program, AmbientCapabilities=CAP_PERFMON in its systemd unit, or --cap-add=PERFMON for its container")
	case p.FreeBytes == hwprobe.Bytes{}:
		f.Warn(hwprobe.WarnMemoryUnknown, d.ID, d.Name+": the driver does not tell how much of the memory is used",
			"run the worker outside a user namespace (a rootless container), whose rights the driver does not count, or use a newer kernel")
	}
	f.Add(d, p)
}

// whyUnknown says why a card's size is unknown, and what to do about it.
func whyUnknown(c drm.Card, asked error) (code hwprobe.WarningCode, message, next string) {
	switch {
	case c.Asleep:
		return hwprobe.WarnMemoryUnknown, "it sleeps, and asking it for its memory's size would wake it",
			"use the card once while the worker runs, or pin the memory's size in the worker's configuration"
	case c.RenderNode == "" || errors.Is(asked, fs.ErrNotExist):
		return hwprobe.WarnMemoryUnknown, "it has no render node here, the only place where its driver tells the memory's size",
			"make /dev/dri visible to this process (--device /dev/dri for a container), with the driver xe or i915"
	case errors.Is(asked, fs.ErrPermission):
		return hwprobe.WarnNoPermission, "this process may not open its render node " + c.RenderNode,
			"add the user that runs the worker to the group that owns /dev/dri/" + c.RenderNode + " (render or video), and start the worker anew"
	case asked != nil:
		return hwprobe.WarnMemoryUnknown, "its driver does not answer: " + asked.Error(), "look for " + c.Driver + " in dmesg"
	}
	return hwprobe.WarnMemoryUnknown, fmt.Sprintf("the driver %q does not tell the memory's size", c.Driver), "use the driver xe, or i915 on Linux 5.14 or newer"
}

// chip tells a processor's graphics from a card by what the chip is.
func chip(c drm.Card) hwprobe.Flag {
	device, err := strconv.ParseUint(strings.TrimPrefix(c.ID, "8086:"), 16, 16)
	if err != nil {
		return hwprobe.Flag{}
	}
	return pciids.Integrated(pciids.Intel, uint16(device))
}

// integrated tells a processor's graphics from a card: by the driver's word, else by what the chip is, else by its place,
// which is the same in every processor; a virtual machine may put a card there, too.
func integrated(c drm.Card, answer regions) hwprobe.Flag {
	if answer.known {
		return hwprobe.Known(!answer.ownMemory)
	}
	if flag := chip(c); flag != (hwprobe.Flag{}) {
		return flag
	}
	switch {
	case strings.HasSuffix(c.PCI, ":00:02.0"):
		return hwprobe.Known(true)
	case c.PCI != "" && !strings.Contains(c.PCI, ":00:"): // behind a bridge: in a slot
		return hwprobe.Known(false)
	}
	return hwprobe.Flag{}
}
