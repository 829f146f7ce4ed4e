package apple

import (
	"context"
	"math"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallSysctl is the name of the call that answers with the whole number that a sysctl, its only argument, has.
const CallSysctl = "sysctl"

// wiredLimit is how much memory the owner lets the GPU wire, in MiB; 0 is the system's default.
const wiredLimit = "iogpu.wired_limit_mb"

const mebibyte = 1 << 20

// limit is how much memory a GPU may use.
type limit struct {
	bytes hwprobe.Bytes
	from  hwprobe.Source
}

// limitOf is what the GPU's own source tells. Where Metal cannot be reached it is the owner's setting, and without one an
// estimate.
func limitOf(ctx context.Context, calls source.Caller, g gpu, host hwprobe.Host) limit {
	if g.memory != (hwprobe.Bytes{}) {
		return limit{g.memory, g.from}
	}
	if g.vendor != hwprobe.Apple {
		return limit{}
	}
	set, err := source.Ask[hwprobe.Bytes](ctx, calls, CallSysctl, wiredLimit)
	if n := set.Or(0); err == nil && n > 0 && n <= math.MaxUint64/mebibyte {
		return limit{hwprobe.Least(hwprobe.Known(n*mebibyte), host.TotalBytes), hwprobe.SourceSysctl}
	}
	return limit{estimate(host.TotalBytes), hwprobe.SourceEstimate}
}

// estimate is the system's default, which is not one ratio: recorded are 66.7 % of 16 GB, 75 % of 96 GB and 84 % of 128 GB
// (research/hardware.md 1.4), and it grows with the machine. It errs on the small side: 66 % up to 32 GiB, 75 % above.
func estimate(ram hwprobe.Bytes) hwprobe.Bytes {
	n, known := ram.Value()
	switch {
	case !known:
		return hwprobe.Bytes{}
	case n <= 32<<30:
		return hwprobe.Known(n / 100 * 66)
	}
	return hwprobe.Known(n / 4 * 3)
}
