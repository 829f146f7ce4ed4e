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

// Read asks for the machine's processor and main memory. What could not be read stays unknown and has a warning.
func Read(ctx context.Context, m source.Machine) (hwprobe.Host, []hwprobe.Warning) {
	h, err := source.Ask[hwprobe.Host](ctx, m.Calls, CallHost)
	h.OS, h.Arch = cmp.Or(h.OS, m.OS), cmp.Or(h.Arch, m.Arch)
	const next = "check that the process may read the system's memory statistics (/proc/meminfo on Linux)"
	switch {
	case err != nil:
		return h, []hwprobe.Warning{{Code: hwprobe.WarnHostUnreadable, Message: "cannot read the host: " + err.Error(), Next: next}}
	case h.TotalBytes == hwprobe.Bytes{} || h.AvailableBytes == hwprobe.Bytes{}:
		return h, []hwprobe.Warning{{Code: hwprobe.WarnHostUnreadable, Message: "the system does not tell its total or available memory", Next: next}}
	}
	return h, nil
}
