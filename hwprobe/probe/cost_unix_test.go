//go:build unix

package probe

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// processorTime is what this process and the children that it has waited for have taken.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}

// filesOnDisk is this machine with the cards of several recorded ones, in real files.
func filesOnDisk(b *testing.B) source.Machine {
	b.Helper()
	root := b.TempDir()
	write := func(name string, text []byte) {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(at, text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"amd-sysfs-rx6900xt-16g.txtar", "intel-sysfs-arc-b580-xe.txtar"} {
		for at, f := range fixture.Tree(b, name) {
			write(at, f.Data)
		}
	}
	for _, name := range []string{"proc/meminfo", "proc/self/cgroup", "proc/self/mountinfo"} {
		if text, err := os.ReadFile("/" + name); err == nil {
			write(name, text)
		}
	}
	m := ThisMachine()
	m.Files, m.Commands = source.Capped(os.DirFS(root)), absent{}
	return m
}

// BenchmarkProbeOfFiles is what one probe costs where only sysfs and /proc are read: it must be under 5 ms of processor time.
func BenchmarkProbeOfFiles(b *testing.B) {
	p := New(Options{Machine: filesOnDisk(b)})
	if r := p.Probe(b.Context()); len(r.Devices) < 2 {
		b.Fatalf("devices %+v, want two", r.Devices)
	}
	before := processorTime(b)
	for b.Loop() {
		p.Probe(b.Context())
	}
	each := (processorTime(b) - before) / time.Duration(b.N)
	b.ReportMetric(float64(each.Microseconds())/1000, "cpu-ms/op")
	if each > ownCost {
		b.Errorf("%v of processor time, want under %v", each, ownCost)
	}
}

// BenchmarkPollOfAnIdleWorker is the share of one core that polling takes while nothing happens, with a tool that is run as a
// process each time: it must be under 0.2 %. The real tool costs more and is polled as much more rarely, see pace.
func BenchmarkPollOfAnIdleWorker(b *testing.B) {
	dir := b.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "nvidia-smi")); err != nil {
		b.Fatal(err)
	}
	b.Setenv("PATH", dir)
	b.Setenv(behaviour, "idle")
	m := filesOnDisk(b)
	m.Commands = &source.Commands{}
	p := New(Options{Machine: m})
	if r := p.Probe(b.Context()); len(r.Devices) < 3 {
		b.Fatalf("devices %+v, want the card of the tool, too", r.Devices)
	}
	before, spent := processorTime(b), p.spent.total()
	for b.Loop() {
		p.Probe(b.Context())
	}
	each := (processorTime(b) - before) / time.Duration(b.N)
	var pace pace
	var interval time.Duration
	for range 10 {
		interval = pace.next(false, (p.spent.total()-spent)/time.Duration(b.N))
	}
	share := 100 * float64(each) / float64(interval)
	b.ReportMetric(float64(each.Microseconds())/1000, "cpu-ms/op")
	b.ReportMetric(interval.Seconds(), "s-interval")
	b.ReportMetric(float64(((p.spent.total()-spent)/time.Duration(b.N)).Microseconds())/1000, "tool-cpu-ms/op")
	b.ReportMetric(share, "%core")
	if share > 100*idleShare {
		b.Errorf("%.3f %% of a core, want under %.1f %%: %v each, every %v", share, 100*idleShare, each, interval)
	}
}
