// Package intel reads Intel's graphics cards and processors with graphics.
package intel

import (
	"context"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// Probe reads nothing yet.
func Probe(context.Context, source.Machine, hwprobe.Host) hwprobe.Findings {
	return hwprobe.Findings{}
}

// Calls is empty.
func Calls() source.Calls { return source.Calls{} }
