package scheduler

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// farm is 64 nodes of four sizes with two to four slots and ten models, and 2,000 waiting tasks of thirty runs, some with a context in
// common, some with resources, some that failed on a node. Nodes hold what fits and are at work on all slots but the free ones.
func farm(free func(node int) bool, cold bool) Snapshot {
	rnd := rand.New(rand.NewPCG(1, 2))
	var models []Model
	for i, shape := range []Shape{llama8b, qwen7b, qwen14b, qwen32b, llama8b, qwen7b, qwen14b, qwen32b, llama8b, llama70b} {
		models = append(models, model(fmt.Sprintf("model%d:latest", i), shape))
	}
	s := Snapshot{
		Now:       noon,
		Resources: map[string]Resource{"browser": {Cap: 3, InUse: 1}, "http:host": {Rate: 2, Tokens: 1}},
		Received:  map[string]time.Duration{},
	}
	for i := range 64 {
		size := []float64{24, 48, 12, 96}[i%4]
		n := gpuNode(fmt.Sprintf("node%02d", i), size, size-0.5, models...)
		n.Slots = 2 + i%3
		n.Speeds = map[string]Speed{}
		for k, m := range models {
			n.Speeds[m.Digest] = Speed{Load: time.Duration(5+k) * time.Second, Prompt: 1000 + 300*float64(i%7), Decode: 40 + 7*float64((i+k)%9)}
		}
		for k := range models {
			l := loadedAt(models[(i+k)%10], 8192, n.Slots, n.Slots, time.Hour)
			if cold || l.SizeBytes+giB > n.Pools[1].Free.N {
				continue
			}
			if free(i) {
				l.Busy--
			}
			for range l.Busy {
				l.Calls = append(l.Calls, Call{Run: fmt.Sprint("run", rnd.IntN(30)), Since: noon.Add(-time.Duration(rnd.IntN(20)) * time.Second), Work: Work{Prompt: 800, Output: 300}})
			}
			n = n.load(l)
		}
		n.RoomFor = fmt.Sprint("t", i*30) // it waits for something else by now
		s.Nodes = append(s.Nodes, n)
	}
	for i := range 2000 {
		task := Task{Key: fmt.Sprint("t", i), Run: fmt.Sprint("run", i/25%30), Model: models[(i/25%30+i/1000)%10].Name, Context: 8192,
			Ready: noon.Add(-time.Duration(2000-i) * 100 * time.Millisecond), Work: Work{Prompt: 200 + rnd.IntN(2000), Output: 50 + rnd.IntN(500)}}
		switch {
		case i%50 == 0:
			task.Avoid = []string{"node07"}
		case i%11 == 0:
			task.Resources = []string{"browser"}
		case i%13 == 0:
			task.Resources = []string{"http:host"}
		case i%5 == 0:
			task.Affinity = fmt.Sprint("context", i%100)
		}
		s.Waiting = append(s.Waiting, task)
		s.Received[task.Run] = time.Duration(i/25%30) * 20 * time.Second
	}
	return s
}

// BenchmarkPlace is one decision over 64 nodes and 2,000 waiting calls, done when the 99th percentile is under a millisecond: on a
// fleet at work with a slot free here and there, with one free for every model everywhere, and with nothing loaded at all.
func BenchmarkPlace(b *testing.B) {
	for _, c := range []struct {
		name string
		s    Snapshot
	}{
		{"busy", farm(func(node int) bool { return node%20 == 0 }, false)},
		{"free", farm(func(int) bool { return true }, false)},
		{"cold", farm(func(int) bool { return true }, true)},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := new(Planner)
			heap := make([]byte, 32<<20) // less than a coordinator's; with next to none the collector would run every few decisions
			for range 600 {              // until memory is used again
				p.Place(c.s, Limits{})
			}
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				if plan := p.Place(c.s, Limits{}); len(plan.Decisions) < len(c.s.Waiting) {
					b.Fatalf("%d decisions", len(plan.Decisions))
				}
				took = append(took, time.Since(began))
			}
			runtime.KeepAlive(heap)
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
