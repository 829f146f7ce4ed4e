package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// runner answers by a function.
type runner func(args []string) (source.Output, error)

func (r runner) Run(_ context.Context, name string, args ...string) (source.Output, error) {
	if name != "nvidia-smi" {
		return absent{}.Run(context.Background(), name)
	}
	return r(args)
}

// a100 is what nvidia-smi prints of the A100 of the XML fixture, which is split in two or whole.
func a100(mig string) string {
	return "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], mig.mode.current, compute_cap\n" +
		"GPU-00000001-aaaa-4bbb-8ccc-000000000001, NVIDIA A100-SXM4-40GB, 00000000:00:04.0, 510.47.03, 40960 MiB, 40315 MiB, " + mig + ", 8.0\n"
}

// counted is how many bytes the report's devices have in all, each pool once.
func counted(r hwprobe.Report) (sum uint64) {
	for _, p := range r.Pools[1:] {
		sum += p.TotalBytes.Or(0)
	}
	return sum
}

// A card that is split and put together again between polls, by an nvidia-smi whose costlier answer fails now and then, never
// counts its memory twice.
func TestSplitCardIsNeverCountedTwice(t *testing.T) {
	type step struct {
		mig, xml string // "" of xml: it hangs
		devices  []string
	}
	const card, one, two = "gpu:0000:00:04.0", "gpu:0000:00:04.0/mig1.0", "gpu:0000:00:04.0/mig2.0"
	xml := readFixture(t, "nvidia-xml-a100-40g-mig-510.xml")
	half := xml[:strings.Index(xml, "<mig_devices>")]
	var now step
	p := New(Options{Machine: machine(fstest.MapFS{}, runner(func(args []string) (source.Output, error) {
		switch {
		case slices.Contains(args, "-L"):
			return source.Output{}, context.DeadlineExceeded
		case !slices.Contains(args, "-x"):
			return source.Output{Stdout: []byte(a100(now.mig))}, nil
		case now.xml == "":
			return source.Output{}, context.DeadlineExceeded
		}
		return source.Output{Stdout: []byte(now.xml)}, nil
	}), bigHost("amd64"))})
	for i, s := range []step{
		{"Enabled", xml, []string{one + " ok", two + " ok"}},
		{"Enabled", "", []string{one + " degraded", two + " degraded"}},
		{"Enabled", half, []string{one + " degraded", two + " degraded"}},
		{"Enabled", xml, []string{one + " ok", two + " ok"}},
		{"Disabled", xml, []string{card + " ok"}},
		{"Enabled", "", []string{card + " degraded"}},
		{"Enabled", xml, []string{one + " ok", two + " ok"}},
	} {
		now = s
		r := p.Probe(t.Context())
		checkConsistent(t, r)
		var got []string
		for _, d := range r.Devices {
			got = append(got, d.ID+" "+string(d.State))
		}
		if !slices.Equal(got, s.devices) {
			t.Errorf("step %d: %v, want %v", i, got, s.devices)
		}
		if n := counted(r); n > 40960<<20 {
			t.Errorf("step %d: %d MiB of a card with 40960: %s", i, n>>20, fmt.Sprint(r.Pools))
		}
	}
}
