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

// fleets are the states of the farm that a decision is measured in.
func fleets() map[string]Snapshot {
	return map[string]Snapshot{
		"busy": farm(func(node int) bool { return node%20 == 0 }, false), // at work, with a slot free here and there: some 10 starts
		"cold": farm(func(int) bool { return true }, true),               // nothing is loaded: a load on nearly every node
		"free": farm(func(int) bool { return true }, false),              // a slot is free for every model everywhere: some 300 starts at once
	}
}

// BenchmarkPlace is one decision: Place of a Planner that is kept, as the engine keeps it, for 64 nodes and 2,000 waiting calls, with
// the explanation of every one of them. It is done when the 99th percentile is under a millisecond on a busy and on a cold fleet. The
// snapshot is the same every time, so what was found on the nodes holds; everything else is decided anew.
func BenchmarkPlace(b *testing.B) {
	all := fleets()
	for _, name := range []string{"busy", "cold", "free"} {
		b.Run(name, func(b *testing.B) { decide(b, all[name]) })
	}
}

// BenchmarkQueue is that decision on a busy fleet for queues of three lengths: bytes and allocations stay what they are.
func BenchmarkQueue(b *testing.B) {
	s := fleets()["busy"]
	for _, n := range []int{500, 2000, 8000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { decide(b, queued(s, n)) })
	}
}

func decide(b *testing.B, s Snapshot) {
	p := new(Planner)
	heap := make([]byte, 32<<20) // less than a coordinator's; with next to none the collector would run every few decisions
	for range 600 {              // until memory is used again
		p.Place(s, Limits{})
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		if plan := p.Place(s, Limits{}); len(plan.Decisions) < len(s.Waiting) {
			b.Fatalf("%d decisions", len(plan.Decisions))
		}
		took = append(took, time.Since(began))
	}
	runtime.KeepAlive(heap)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// queued is the snapshot with n calls that wait, of the same runs, models and resources however many they are.
func queued(s Snapshot, n int) Snapshot {
	some := s.Waiting[:500]
	s.Waiting = make([]Task, n)
	for i := range s.Waiting {
		s.Waiting[i] = some[i%len(some)]
		s.Waiting[i].Key = fmt.Sprint("t", i)
	}
	return s
}

// What a decision allocates is about nodes and models; a queue that is sixteen times as long takes no more.
func TestAllocationDoesNotGrowWithTheQueue(t *testing.T) {
	for name, s := range fleets() {
		short, long := allocated(queued(s, 500)), allocated(queued(s, 8000))
		t.Logf("%s: %d bytes with 500 calls that wait, %d with 8,000", name, short, long)
		if long > short+short/20 {
			t.Errorf("%s: %d bytes a decision with 500 calls that wait, %d with 8,000", name, short, long)
		}
	}
}

// allocated is how many bytes a decision allocates once memory is used again.
func allocated(s Snapshot) uint64 {
	const rounds = 5
	p := new(Planner)
	for range 3 {
		p.Place(s, Limits{})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		p.Place(s, Limits{})
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / rounds
}
