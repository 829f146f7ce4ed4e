// Package host reads a machine's processor and main memory, and what a control group leaves of it.
package host

import (
	"cmp"
	"context"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallHost is the name of the call that answers with a hwprobe.Host.
const CallHost = "host"

// Read returns the machine's processor and main memory. Linux' own account of memory, /proc/meminfo, is taken where it can be
// read; elsewhere the call's. What could not be read stays unknown and has a warning.
func Read(ctx context.Context, m source.Machine) (hwprobe.Host, []hwprobe.Warning) {
	h, err := source.Ask[hwprobe.Host](ctx, m.Calls, CallHost)
	h.OS, h.Arch = cmp.Or(h.OS, m.OS), cmp.Or(h.Arch, m.Arch)
	if total, available := meminfo(source.ReadText(m.Files, "proc/meminfo")); total != (hwprobe.Bytes{}) {
		h.TotalBytes, h.AvailableBytes = total, available
	}
	// Nothing may be available, but who says that of a machine without memory could not read either.
	h.TotalBytes = hwprobe.Size(h.TotalBytes)
	h.AvailableBytes = hwprobe.Least(h.AvailableBytes, h.TotalBytes)
	const next = "check that the process may read the system's memory statistics (/proc/meminfo on Linux)"
	unreadable := func(message string) []hwprobe.Warning {
		return []hwprobe.Warning{{Code: hwprobe.WarnHostUnreadable, Message: message, Next: next}}
	}
	switch {
	case h.TotalBytes == hwprobe.Bytes{} && err != nil:
		return h, unreadable("cannot read the host: " + err.Error())
	case h.TotalBytes == hwprobe.Bytes{} || h.AvailableBytes == hwprobe.Bytes{}:
		return h, unreadable("the system does not tell its total or available memory")
	case err != nil:
		return h, []hwprobe.Warning{{Code: hwprobe.WarnHostUnreadable, Message: "cannot read the host's name and processor: " + err.Error(),
			Next: "nothing depends on them but what people see; check the process's rights if it matters"}}
	}
	return h, nil
}
