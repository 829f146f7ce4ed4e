package serve

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// card is the nvidia-smi of a machine with one card, and answers as 595.71.05 does.
type card struct {
	there atomic.Bool
	hang  atomic.Bool
	free  atomic.Uint64 // MiB
	asked atomic.Int64
}

const (
	cardID    = "gpu:0000:01:00.0"
	cardQuery = "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%%]\n" +
		"GPU-00000000-0000-0000-0000-000000000000, NVIDIA GeForce RTX 4080 SUPER, 00000000:01:00.0, 595.71.05, 16376 MiB, %d MiB, 0 %%\n"
)

// Run implements source.Runner.
func (c *card) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	if !strings.HasPrefix(name, "nvidia-smi") || !c.there.Load() {
		return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	c.asked.Add(1)
	if c.hang.Load() {
		<-ctx.Done()
		return source.Output{}, ctx.Err()
	}
	return source.Output{Stdout: fmt.Appendf(nil, cardQuery, c.free.Load())}, nil
}

func prober(c *card, o hwprobe.Overrides) *probe.Prober {
	return probe.New(probe.Options{Overrides: o, Machine: source.Machine{OS: "linux", Arch: "amd64", Calls: source.Calls{}, Commands: c,
		Files: fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n")}}}})
}

// newCardRig is a worker that takes its stand-in for a real Ollama, on a machine with a card of which free MiB are free.
func newCardRig(t *testing.T, free uint64, o hwprobe.Overrides, cfg ollamatest.Config) (*rig, *card) {
	c := &card{}
	c.there.Store(true)
	c.free.Store(free)
	return newRig(t, cfg, func(options *Options, l *line) { l.fake.Store(true); options.Prober = prober(c, o) }), c
}

// pool is the card's pool in the newest report.
func (r *rig) pool() *workerv1.Pool {
	for _, p := range r.server.Report().GetPools() {
		if p.GetId() == cardID {
			return p
		}
	}
	return nil
}

func TestToolThatHangsSilencesNobodyAndTakesNoMemoryAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newCardRig(t, 6144, hwprobe.Overrides{}, ollamatest.Config{})
		if p := r.pool(); p.GetTotalBytes() != 16376<<20 || p.GetFreeBytes() != 6144<<20 {
			t.Fatalf("pool %v", p)
		}
		c.hang.Store(true)
		time.Sleep(20 * time.Second) // the next look, and its deadline
		for range 10 {
			time.Sleep(9 * time.Second)
			rep := r.server.Report()
			if age := time.Since(rep.GetTime().AsTime()); age > 9*time.Second {
				t.Fatalf("no report for %s", age)
			}
			if p := r.pool(); p.GetTotalBytes() != 16376<<20 || p.FreeBytes != nil || p.GetSource() != "last known" || len(rep.GetWarnings()) == 0 {
				t.Fatalf("pool %v, warnings %v", p, rep.GetWarnings())
			}
		}
	})
}

func TestFirstReportDoesNotWaitForADriverThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &card{}
		c.there.Store(true)
		c.hang.Store(true)
		start := time.Now()
		r := newRig(t, ollamatest.Config{}, func(o *Options, l *line) { l.fake.Store(true); o.Prober = prober(c, hwprobe.Overrides{}) })
		rep := r.server.Report()
		if took := time.Since(start); took > 6*time.Second || len(rep.GetModels()) == 0 || rep.Probed != nil || len(rep.GetWarnings()) != 1 {
			t.Errorf("after %s: %v", took, rep)
		}
		time.Sleep(25 * time.Second)
		if rep := r.server.Report(); rep.Probed == nil || len(rep.GetPools()) == 0 {
			t.Errorf("what the first look saw never came: %v", rep)
		}
	})
}

// The scheduler takes what is free for what is left beside the models of the same report.
func TestFreeMemoryIsNewerThanTheLastLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newCardRig(t, 15000, hwprobe.Overrides{}, ollamatest.Config{})
		time.Sleep(5 * time.Minute) // looks have become rare
		asked := c.asked.Load()
		time.Sleep(time.Minute)
		if n := c.asked.Load() - asked; n > 6 {
			t.Errorf("an idle machine was looked at %d times in a minute", n)
		}
		shows := func(op string, free uint64, loaded int) {
			t.Helper()
			time.Sleep(time.Second)
			rep, p := r.server.Report(), r.pool()
			if age := time.Since(rep.GetProbed().AsTime()); p.GetFreeBytes() != free<<20 || len(rep.GetLoaded()) != loaded || age > time.Second {
				t.Errorf("%s: %d MiB free, %d loaded, seen %s ago", op, p.GetFreeBytes()>>20, len(rep.GetLoaded()), age)
			}
		}
		spec := &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}
		if _, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: spec}); err != nil {
			t.Fatal(err)
		}
		c.free.Store(9000)
		shows("load", 9000, 1)
		asked = c.asked.Load()
		time.Sleep(time.Minute)
		if n := c.asked.Load() - asked; n < 10 {
			t.Errorf("a machine in use was looked at %d times in a minute", n)
		}
		c.free.Store(15000)
		if _, err := r.client.Unload(t.Context(), &workerv1.UnloadRequest{Name: "qwen3:8b"}); err != nil {
			t.Fatal(err)
		}
		shows("unload", 15000, 0)
	})
}

// Somebody else's Ollama client may load a model: what is free must not be older than the list that shows it.
func TestFreeMemoryIsNewerThanALoadOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newCardRig(t, 15000, hwprobe.Overrides{}, ollamatest.Config{})
		time.Sleep(5*time.Minute + 500*time.Millisecond)
		if _, err := r.server.o.Ollama.Load(t.Context(), "qwen3:8b", 4096); err != nil {
			t.Fatal(err)
		}
		c.free.Store(9000)
		for len(r.server.Report().GetLoaded()) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		if p := r.pool(); p.GetFreeBytes() != 9000<<20 {
			t.Errorf("the model is there, and %d MiB are free", p.GetFreeBytes()>>20)
		}
	})
}

func TestChangesOfTheHardwareAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newCardRig(t, 6144, hwprobe.Overrides{}, ollamatest.Config{})
		if n := len(r.server.Report().GetChanges()); n != 0 {
			t.Fatalf("%d changes before anything happened", n)
		}
		c.there.Store(false)
		time.Sleep(15 * time.Second)
		rep := r.server.Report()
		if d := rep.GetDevices(); len(d) != 1 || d[0].GetId() != cardID || d[0].GetState() != "lost" || d[0].GetPci() != "0000:01:00.0" {
			t.Errorf("devices %v", d)
		}
		var kinds []string
		for _, ch := range rep.GetChanges() {
			kinds = append(kinds, ch.GetKind()+": "+ch.GetText())
		}
		if len(kinds) != 2 || kinds[0] != "device_lost: "+cardID+" is lost, it was ok" || !strings.HasPrefix(kinds[1], "warning_appeared: NVIDIA GeForce RTX 4080 SUPER is gone") {
			t.Errorf("changes %q", kinds)
		}
		c.there.Store(true)
		time.Sleep(15 * time.Second)
		if all := r.server.Report().GetChanges(); len(all) != 4 || all[2].GetKind() != "device_returned" || all[3].GetKind() != "warning_gone" {
			t.Errorf("changes %v", all)
		}
	})
}

func TestOwnersWordAboutTheHardwareIsReported(t *testing.T) {
	r, _ := newCardRig(t, 16000, hwprobe.Overrides{Pools: []hwprobe.PoolOverride{
		{Pool: "0000:01:00.0", TotalBytes: hwprobe.Known[uint64](10 << 30), ReserveBytes: 2 << 30}}}, ollamatest.Config{})
	if p := r.pool(); p.GetTotalBytes() != 10<<30 || p.GetReserveBytes() != 2<<30 || p.GetSource() != "override" {
		t.Errorf("pool %v", p)
	}
}

func TestWordsForWhatHappenedToTheHardware(t *testing.T) {
	for want, c := range map[string]hwprobe.Change{
		"the machine runs again after a suspension of 1h0m0s": {Kind: hwprobe.Resumed, To: "1h0m0s"},
		"gpu:a is asleep, it was ok":                          {Kind: hwprobe.DeviceAsleep, Device: "gpu:a", From: "ok", To: "asleep"},
		"the pool gpu:a has 16.0 GiB, it had unknown memory":  {Kind: hwprobe.PoolTotalChanged, Pool: "gpu:a", From: "unknown", To: "17179869184"},
		"no longer: the fan stands still":                     {Kind: hwprobe.WarningGone, Warning: &hwprobe.Warning{Message: "the fan stands still"}},
	} {
		if got := changeText(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
