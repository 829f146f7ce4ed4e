package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
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
	xml := fixture.Text(t, "nvidia-xml-a100-40g-mig-510.xml")
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

// One nvidia-smi that answers, hangs, fails, is gone, or prints in another form, poll by poll: the card keeps its total and who it
// is, and whenever it answers all is well.
func TestCardOutlivesAFlakyTool(t *testing.T) {
	csv := fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv")
	good := source.Output{Stdout: []byte(csv)}
	var out source.Output
	var err error
	p := New(Options{Machine: machine(fstest.MapFS{}, runner(func([]string) (source.Output, error) { return out, err }), bigHost("amd64"))})
	for i, s := range []struct {
		out   source.Output
		err   error
		state hwprobe.State
	}{
		{good, nil, hwprobe.StateOK},
		{source.Output{}, context.DeadlineExceeded, hwprobe.StateDegraded},
		{source.Output{Stdout: []byte(strings.ReplaceAll(csv, "\n", "\r\n"))}, nil, hwprobe.StateOK},
		{source.Output{Stdout: good.Stdout[:len(good.Stdout)/2]}, context.DeadlineExceeded, hwprobe.StateDegraded},
		{source.Output{Stderr: []byte("Échec de l'initialisation de NVML : erreur inconnue\r\n"), ExitCode: 255}, nil, hwprobe.StateDegraded},
		{good, nil, hwprobe.StateOK},
		{source.Output{Stdout: []byte{0xff, 0xfe, 0, 1}}, nil, hwprobe.StateDegraded},
		{source.Output{}, source.ErrStuck, hwprobe.StateDegraded},
		{source.Output{}, source.ErrOutputTooLarge, hwprobe.StateDegraded},
		{good, nil, hwprobe.StateOK},
	} {
		out, err = s.out, s.err
		r := p.Probe(t.Context())
		checkConsistent(t, r)
		if len(r.Devices) != 1 || r.Devices[0].State != s.state || !strings.Contains(r.Devices[0].Name, "4080") {
			t.Errorf("poll %d: %+v, want one device, %s", i, r.Devices, s.state)
		}
		if pool, _ := r.Pool(r.Devices[0].Pool); pool.TotalBytes != hwprobe.Known[uint64](16376<<20) || (pool.FreeBytes == hwprobe.Bytes{}) != (s.state != hwprobe.StateOK) {
			t.Errorf("poll %d: pool %+v", i, pool)
		}
		if (len(r.Warnings) == 0) != (s.state == hwprobe.StateOK) {
			t.Errorf("poll %d: warnings %+v", i, r.Warnings)
		}
	}
}

// Two cards of one name that change their places, in the tool's order or in their slots, are told apart.
func TestEqualCardsThatChangePlaces(t *testing.T) {
	const header = "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB]\n"
	row := func(uuid, pci string, free int) string {
		return fmt.Sprintf("%s, NVIDIA GeForce RTX 3080, %s, 595.1, 20480 MiB, %d MiB\n", uuid, pci, free)
	}
	var csv string
	p := New(Options{Machine: machine(fstest.MapFS{}, runner(func([]string) (source.Output, error) { return source.Output{Stdout: []byte(csv)}, nil }), bigHost("amd64"))})
	for i, s := range []struct {
		csv  string
		want map[string]string // free by UUID, in MiB
	}{
		{row("GPU-a", "00000000:01:00.0", 100) + row("GPU-b", "00000000:02:00.0", 200), map[string]string{"GPU-a": "100", "GPU-b": "200"}},
		{row("GPU-b", "00000000:02:00.0", 200) + row("GPU-a", "00000000:01:00.0", 100), map[string]string{"GPU-a": "100", "GPU-b": "200"}},
		{row("GPU-a", "00000000:02:00.0", 100) + row("GPU-b", "00000000:01:00.0", 200), map[string]string{"GPU-a": "100", "GPU-b": "200"}},
		{row("GPU-b", "00000000:03:00.0", 200), map[string]string{"GPU-a": "?", "GPU-b": "200"}}, // one unplugged, the other at a new place
		{row("GPU-b", "00000000:03:00.0", 200) + row("GPU-a", "00000000:04:00.0", 100), map[string]string{"GPU-a": "100", "GPU-b": "200"}},
	} {
		csv = header + s.csv
		r := p.Probe(t.Context())
		checkConsistent(t, r)
		got := map[string]string{}
		for _, d := range r.Devices {
			pool, _ := r.Pool(d.Pool)
			got[d.UUID] = "?"
			if free, known := pool.FreeBytes.Value(); known {
				got[d.UUID] = fmt.Sprint(free >> 20)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(s.want) || len(r.Devices) != 2 {
			t.Errorf("poll %d: free %v of %d devices, want %v", i, got, len(r.Devices), s.want)
		}
	}
}

// A thousand cards are no reason to be slow, nor is one name too long or one that commands a terminal.
func TestAThousandCards(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB]\n")
	for i := range 1000 {
		fmt.Fprintf(&csv, "GPU-%d, \x1b]0;owned\x07\xff%s, %08x:%02x:00.0, 595.1, 16376 MiB, 16000 MiB\n", i, strings.Repeat("x", i), i>>8, i&0xff)
	}
	m := machine(fstest.MapFS{}, printed{Stdout: []byte(csv.String())}, bigHost("amd64"))
	p := New(Options{Machine: m})
	p.Probe(t.Context())
	r := p.Probe(t.Context())
	checkConsistent(t, r)
	if len(r.Devices) != 1000 || counted(r) != 1000*16376<<20 {
		t.Errorf("%d devices with %d bytes", len(r.Devices), counted(r))
	}
	for _, d := range r.Devices {
		if !utf8.ValidString(d.Name) || strings.ContainsAny(d.Name, "\x1b\x07") {
			t.Fatalf("%q can command a terminal", d.Name)
		}
	}
}

// Everything that a worker does with a Prober, at once; the race detector and goleak judge.
func TestProberIsSafeForConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Machine: machine(fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar"), printed{Stdout: []byte(a100("Disabled"))}, bigHost("amd64"))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var work sync.WaitGroup
		for i := range 3 {
			work.Go(func() {
				for u := range p.Watch(ctx) {
					if len(u.Report.Devices) != 2 {
						t.Errorf("devices %+v", u.Report.Devices)
					}
				}
			})
			work.Go(func() {
				for ctx.Err() == nil {
					p.Probe(ctx)
					p.Busy(i%2 == 0)
					p.Poke()
					time.Sleep(time.Duration(i+1) * 700 * time.Millisecond)
				}
			})
		}
		work.Wait()
	})
}
