package probe

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// script is a vendor whose findings the test says before each probe.
type script struct {
	find func(context.Context) hwprobe.Findings
}

func (s *script) probe(ctx context.Context, _ source.Machine, _ hwprobe.Host) hwprobe.Findings {
	return s.find(ctx)
}

func (s *script) finds(f hwprobe.Findings) {
	s.find = func(context.Context) hwprobe.Findings { return f }
}

// scripted is a Prober of a machine with one scripted vendor, beside one that always finds the card quiet.
func scripted(o Options) (*Prober, *script) {
	s := &script{}
	quiet := func(context.Context, source.Machine, hwprobe.Host) hwprobe.Findings {
		return card("gpu:quiet", 8<<30, 1<<30)
	}
	o.Machine = machine(fstest.MapFS{}, absent{}, bigHost("amd64"))
	return newProber(o, []vendor{{"scripted", s.probe}, {"quiet", quiet}}), s
}

// card is a working card with these bytes.
func card(id string, total, free uint64) hwprobe.Findings {
	var f hwprobe.Findings
	p := hwprobe.Pool{ID: id, Kind: hwprobe.PoolOfDevice}
	p.SetTotal(hwprobe.Known(total), hwprobe.SourceNVIDIASMI)
	p.SetFree(hwprobe.Known(free), hwprobe.SourceNVIDIASMI)
	f.Add(hwprobe.Device{ID: id, Vendor: hwprobe.NVIDIA, Name: "Card", UUID: "GPU-" + id, Driver: "595.1", Integrated: hwprobe.Known(false),
		State: hwprobe.StateOK, Pool: id, Utilisation: hwprobe.Known(3.0)}, p)
	return f
}

// blind is what a part finds whose tool failed: nothing, or a card of which it knows the address only.
func blind(ids ...string) hwprobe.Findings {
	var f hwprobe.Findings
	for _, id := range ids {
		f.Add(hwprobe.Device{ID: id, Vendor: hwprobe.NVIDIA, Name: "NVIDIA GPU", Driver: "nvidia", State: hwprobe.StateDegraded, Pool: id},
			hwprobe.Pool{ID: id, Kind: hwprobe.PoolOfDevice})
	}
	f.Warn(hwprobe.WarnToolTimeout, "", "no answer", "look")
	return f
}

func TestLastGoodTotalIsKeptWithItsState(t *testing.T) {
	asleep := blind("gpu:a")
	asleep.Devices[0].State, asleep.Warnings = hwprobe.StateAsleep, nil
	halfRead := card("gpu:a", 0, 0)
	halfRead.Pools[0] = hwprobe.Pool{ID: "gpu:a", Kind: hwprobe.PoolOfDevice}
	for name, c := range map[string]struct {
		then    hwprobe.Findings
		state   hwprobe.State
		age     uint64
		free    string
		warning hwprobe.WarningCode
	}{
		"its tool failed, and nothing else shows it": {blind(), hwprobe.StateDegraded, 90, "?", hwprobe.WarnToolTimeout},
		"its tool failed, and sysfs shows it":        {blind("gpu:a"), hwprobe.StateDegraded, 0, "?", hwprobe.WarnToolTimeout},
		"it is cleanly gone":                         {hwprobe.Findings{}, hwprobe.StateLost, 90, "?", hwprobe.WarnDeviceRemoved},
		"it sleeps: what sleeps holds nothing":       {asleep, hwprobe.StateAsleep, 0, "12884901888", ""},
		"it works, but for its memory":               {halfRead, hwprobe.StateDegraded, 0, "?", hwprobe.WarnMemoryUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, vendor := scripted(Options{})
				vendor.finds(card("gpu:a", 16<<30, 12<<30))
				p.Probe(t.Context())
				vendor.finds(card("gpu:a", 16<<30, 1<<30))
				p.Probe(t.Context())
				time.Sleep(90 * time.Second)
				vendor.finds(c.then)
				r := p.Probe(t.Context())
				checkConsistent(t, r)
				d, _ := r.Device("gpu:a")
				if d.State != c.state || d.AgeSeconds != c.age || d.Name != "Card" || d.Utilisation == hwprobe.Known(3.0) && c.age > 0 {
					t.Errorf("device %+v, want %s, last seen %d s ago", d, c.state, c.age)
				}
				checkPool(t, r, "gpu:a", "17179869184", c.free)
				if pool, _ := r.Pool("gpu:a"); pool.TotalSource != hwprobe.SourceLastKnown || pool.TotalAgeSeconds != 90 {
					t.Errorf("pool %+v, want a last known total, 90 s old", pool)
				}
				if c.warning != "" && !slices.Contains(warned(r), c.warning) {
					t.Errorf("warnings %+v, want %s", r.Warnings, c.warning)
				}
				vendor.finds(card("gpu:a", 16<<30, 2<<30))
				r = p.Probe(t.Context())
				if d, _ := r.Device("gpu:a"); d.State != hwprobe.StateOK || d.AgeSeconds != 0 || len(r.Warnings) != 0 {
					t.Errorf("it is back: %+v, %v", d, r.Warnings)
				}
				checkPool(t, r, "gpu:a", "17179869184", "2147483648")
			})
		})
	}
}

// A unified device that fails has no memory of its own all of a sudden.
func TestDeviceOnTheHostPoolStaysThereWhenItFails(t *testing.T) {
	p, vendor := scripted(Options{})
	var f hwprobe.Findings
	f.Add(hwprobe.Device{ID: "gpu:a", Vendor: hwprobe.NVIDIA, Name: "GB10", Integrated: hwprobe.Known(true), State: hwprobe.StateOK, Pool: hwprobe.HostPool}, hwprobe.Pool{})
	vendor.finds(f)
	p.Probe(t.Context())
	for _, then := range []hwprobe.Findings{blind("gpu:a"), blind(), {}} {
		vendor.finds(then)
		r := p.Probe(t.Context())
		checkConsistent(t, r)
		if d, _ := r.Device("gpu:a"); d.Pool != hwprobe.HostPool || d.Name != "GB10" || d.State == hwprobe.StateOK || len(r.Pools) != 2 {
			t.Errorf("device %+v, pools %+v", d, r.Pools)
		}
	}
}

// MIG instances get new UUIDs when the card is partitioned anew; the old ones are not lost.
func TestCardThatIsPartitionedAnewLosesNothing(t *testing.T) {
	instance := func(id, partition string) hwprobe.Findings {
		f := card(id, 10<<30, 10<<30)
		f.Devices[0].PCI, f.Devices[0].Partition = "0000:65:00.0", partition
		return f
	}
	p, vendor := scripted(Options{})
	for _, f := range []hwprobe.Findings{instance("gpu:0000:65:00.0", ""), instance("gpu:MIG-1", "3g.40gb"), instance("gpu:MIG-2", "1g.10gb")} {
		vendor.finds(f)
		r := p.Probe(t.Context())
		if len(r.Devices) != 2 || r.Devices[0].ID != f.Devices[0].ID || len(r.Warnings) != 0 {
			t.Errorf("devices %+v, warnings %v; want %s and the quiet one", r.Devices, r.Warnings, f.Devices[0].ID)
		}
	}
}

func TestHostThatCannotBeReadAnyMoreIsTheLastKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{})
		vendor.finds(hwprobe.Findings{})
		p.Probe(t.Context())
		p.o.Machine.Calls = brokenHost{}
		time.Sleep(time.Minute)
		r := p.Probe(t.Context())
		checkConsistent(t, r)
		if r.Host.TotalBytes != hwprobe.Known[uint64](124<<30) || r.Pools[0].TotalSource != hwprobe.SourceLastKnown || r.Pools[0].TotalAgeSeconds != 60 {
			t.Errorf("host %+v, pool %+v", r.Host, r.Pools[0])
		}
		checkPool(t, r, hwprobe.HostPool, "133143986176", "?")
	})
}

func TestPartThatHangsIsLeftAndNotStartedAgainUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{FirstTimeout: 20 * time.Second, Timeout: 5 * time.Second})
		vendor.finds(card("gpu:a", 16<<30, 12<<30))
		p.Probe(t.Context())
		release := make(chan struct{})
		vendor.find = func(context.Context) hwprobe.Findings { // a read that hangs knows of no context
			<-release
			return card("gpu:a", 16<<30, 12<<30)
		}
		for i, atMost := range []time.Duration{7 * time.Second, 0, 0} {
			start := time.Now()
			r := p.Probe(t.Context())
			checkConsistent(t, r)
			if took := time.Since(start); took > atMost {
				t.Errorf("probe %d took %v, want at most %v", i, took, atMost)
			}
			if d, _ := r.Device("gpu:a"); d.State != hwprobe.StateDegraded || !slices.Equal(warned(r), []hwprobe.WarningCode{hwprobe.WarnProbeStuck}) {
				t.Errorf("device %+v, warnings %v; want it degraded and the part stuck", d, r.Warnings)
			}
			if d, _ := r.Device("gpu:quiet"); d.State != hwprobe.StateOK {
				t.Errorf("the other vendor's device: %+v", d)
			}
			checkPool(t, r, "gpu:a", "17179869184", "?")
		}
		if n := p.vendors[0].started; n != 2 {
			t.Errorf("started %d times, want the good one and the hanging one", n)
		}
		close(release)
		synctest.Wait()
		vendor.finds(card("gpu:a", 16<<30, 2<<30))
		r := p.Probe(t.Context())
		checkPool(t, r, "gpu:a", "17179869184", "2147483648")
		if d, _ := r.Device("gpu:a"); d.State != hwprobe.StateOK || len(r.Warnings) != 0 {
			t.Errorf("it came back: %+v, %v", d, r.Warnings)
		}
	})
}

// hangingFS never answers for one file, as sysfs does below a driver that hangs.
type hangingFS struct {
	fs.FS
	name    string
	release chan struct{}
}

func (h hangingFS) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, h.name) {
		<-h.release
	}
	return h.FS.Open(name)
}

// The whole probe, when a driver's file hangs.
func TestProbeOutlivesAHangingFile(t *testing.T) {
	amd := fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar")
	smi := printed{Stdout: []byte(fixture.Text(t, "nvidia-smi-rtx4080s-linux-595.query-idle.csv"))}
	synctest.Test(t, func(t *testing.T) {
		root := hangingFS{amd, "mem_info_vram_total", make(chan struct{})}
		start := time.Now()
		r := Probe(t.Context(), machine(root, smi, bigHost("amd64")))
		if took := time.Since(start); took > DefaultTimeout+endGrace {
			t.Errorf("took %v", took)
		}
		if len(r.Devices) != 1 || r.Devices[0].Vendor != hwprobe.NVIDIA || !slices.Contains(warned(r), hwprobe.WarnProbeStuck) {
			t.Errorf("got %+v, want the NVIDIA card and a warning", r)
		}
		close(root.release)
	})
}

func TestPartThatBreaksIsAWarning(t *testing.T) {
	p, vendor := scripted(Options{})
	vendor.finds(card("gpu:a", 16<<30, 12<<30))
	p.Probe(t.Context())
	var none []int
	vendor.find = func(context.Context) hwprobe.Findings { return card("gpu:a", uint64(none[1]), 0) }
	r := p.Probe(t.Context())
	if d, _ := r.Device("gpu:a"); d.State != hwprobe.StateDegraded || !slices.Equal(warned(r), []hwprobe.WarningCode{hwprobe.WarnProbeFailed}) {
		t.Errorf("device %+v, warnings %v", d, r.Warnings)
	}
}

func TestFirstProbeHasMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, vendor := scripted(Options{FirstTimeout: 20 * time.Second, Timeout: 5 * time.Second})
		vendor.find = func(ctx context.Context) hwprobe.Findings { <-ctx.Done(); return blind() }
		for _, want := range []time.Duration{20 * time.Second, 5 * time.Second, 5 * time.Second} {
			start := time.Now()
			if p.Probe(t.Context()); time.Since(start) != want {
				t.Errorf("took %v, want %v", time.Since(start), want)
			}
		}
	})
}
