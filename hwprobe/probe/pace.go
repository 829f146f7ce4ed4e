package probe

import (
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// The arithmetic of polling. One probe of files alone takes under 5 ms of processor time, and nvidia-smi some 20 to 100 ms
// more, which differs by driver and number of cards: so it is measured, not assumed. With a cost of c per probe, an interval
// of c / share takes that share of one core: 5 ms at 0.2 % is 2.5 s, 45 ms is 22.5 s. The bounds keep a report from getting
// old: at 2 minutes a tool may take 240 ms and stay within its share.
const (
	ownCost   = 5 * time.Millisecond // of a probe besides the tools it runs; the benchmark holds it
	idleShare = 0.002                // of one core, while nothing happens
	busyShare = 0.02                 // of one core, while numbers move

	leastIdle = 10 * time.Second
	mostIdle  = 2 * time.Minute
	leastBusy = 2 * time.Second
	mostBusy  = 10 * time.Second
)

// pace says how long it is from one probe to the next.
type pace struct {
	interval time.Duration // the last one; 0: none yet
}

// next is the shortest interval while the machine is in use, and doubles from there to the longest while it is not. tools is
// the processor time that the last probe's commands took.
func (p *pace) next(inUse bool, tools time.Duration) time.Duration {
	cost := float64(ownCost + tools)
	short := min(max(time.Duration(cost/busyShare), leastBusy), mostBusy)
	long := min(max(time.Duration(cost/idleShare), leastIdle), mostIdle)
	if inUse || p.interval == 0 {
		p.interval = short
	} else {
		p.interval = min(2*p.interval, long)
	}
	return p.interval
}

// moved says whether something goes on: a device works, or more than 1/64 of a pool was taken or given back. Less is the
// machine's own breathing.
func moved(earlier, later hwprobe.Report) bool {
	const working = 10 // percent
	for _, d := range later.Devices {
		if was, known := earlier.Device(d.ID); !known || d.State != was.State || d.Utilisation.Or(0) >= working {
			return true
		}
	}
	for _, p := range later.Pools {
		was, known := earlier.Pool(p.ID)
		if !known || distance(was.FreeBytes.Or(0), p.FreeBytes.Or(0)) > p.TotalBytes.Or(0)/64 {
			return true
		}
	}
	return len(earlier.Devices) > len(later.Devices)
}

func distance(a, b uint64) uint64 { return max(a, b) - min(a, b) }
