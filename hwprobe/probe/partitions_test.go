package probe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// split is a card in partitions that share its memory, or the whole card where there are none.
func split(partitions int) hwprobe.Findings {
	f := card("gpu:a", 192<<30, 190<<30)
	whole := f.Devices[0]
	whole.PCI = "0000:0c:00.0"
	f.Devices[0] = whole
	if partitions == 0 {
		return f
	}
	p := f.Pools[0]
	f = hwprobe.Findings{}
	for i := range partitions {
		d := whole
		d.ID, d.Partition = fmt.Sprintf("gpu:a/part%d", i), fmt.Sprintf("part %d", i)
		f.Add(d, p)
	}
	return f
}

// Devices that share one pool are remembered one by one, and their memory is never there twice.
func TestPartitionsShareTheirPoolAlsoWhenTheyAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{})
		see := func(when string, f hwprobe.Findings, devices int, state hwprobe.State, from hwprobe.Source) {
			t.Helper()
			time.Sleep(time.Minute)
			vendor.finds(f)
			r := p.Probe(t.Context())
			pool, _ := r.Pool("gpu:a")
			n := 0
			for _, d := range r.Devices {
				if d.Pool == "gpu:a" && d.State == state {
					n++
				}
			}
			if n != devices || len(r.Devices) != devices+1 || len(r.Pools) != 3 || pool.TotalBytes != hwprobe.Known[uint64](192<<30) || pool.TotalSource != from {
				t.Errorf("%s: devices %+v, pools %+v", when, r.Devices, r.Pools)
			}
		}
		see("split", split(4), 4, hwprobe.StateOK, hwprobe.SourceNVIDIASMI)
		see("the tool fails", blind(), 4, hwprobe.StateDegraded, hwprobe.SourceLastKnown)
		see("split anew", split(2), 2, hwprobe.StateOK, hwprobe.SourceNVIDIASMI)
		see("whole again", split(0), 1, hwprobe.StateOK, hwprobe.SourceNVIDIASMI)
	})
}
