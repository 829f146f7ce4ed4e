package scheduler

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The simulator drives Place with a fake fleet on simulated time: it carries out every decision, checks that nothing is
// ever beyond capacity, and counts loads. It is the whole of what an executor has to do, so it doubles as an example.

type event struct {
	at time.Time
	do func()
}

type simulation struct {
	t       *testing.T
	now     time.Time
	nodes   []Node
	foreign map[string]uint64 // memory that other programs use, by node
	waiting []Task
	events  []event
	work    map[string]time.Duration // service time by task key
	then    func(Task)               // called when a task has ended
	ended   map[string]time.Time
	takes   time.Duration // of a load; 0 for what its size says
	loads   int
	longest time.Duration // from ready to start
	waited  time.Duration // in all
}

func newSimulation(t *testing.T, nodes ...Node) *simulation {
	return &simulation{
		t: t, now: noon, nodes: nodes, foreign: map[string]uint64{}, work: map[string]time.Duration{},
		ended: map[string]time.Time{}, then: func(Task) {},
	}
}

func (s *simulation) after(d time.Duration, do func()) {
	s.events = append(s.events, event{s.now.Add(d), do})
}

func (s *simulation) submit(task Task, work time.Duration) {
	task.Ready = s.now
	s.work[task.Key] = work
	s.waiting = append(s.waiting, task)
}

// run ends when every task has. A tick every 5 s stands for heartbeats: waiting alone can change a decision.
func (s *simulation) run(limit time.Duration) {
	s.t.Helper()
	tick := s.now
	for len(s.ended) < len(s.work) || len(s.events) > 0 {
		s.place()
		next := tick.Add(5 * time.Second)
		k := -1
		for i, e := range s.events {
			if e.at.Before(next) {
				next, k = e.at, i
			}
		}
		s.now = next
		if s.now.Sub(noon) > limit {
			s.t.Fatalf("%d of %d tasks ended within %s; first waiting: %+v", len(s.ended), len(s.work), limit, s.waiting[:min(1, len(s.waiting))])
		}
		if k < 0 {
			tick = next
			continue
		}
		do := s.events[k].do
		s.events = slices.Delete(s.events, k, k+1)
		do()
	}
}

func (s *simulation) node(id string) *Node {
	return &s.nodes[slices.IndexFunc(s.nodes, func(n Node) bool { return n.ID == id })]
}

func (s *simulation) measure() {
	for i := range s.nodes {
		n := &s.nodes[i]
		used := s.foreign[n.ID]
		for _, l := range n.Loaded {
			used += l.SizeBytes
		}
		card := &n.Pools[len(n.Pools)-1]
		if used > card.Total.N {
			s.t.Fatalf("%s: %s in use of %s: %+v", n.ID, gib(used), gib(card.Total.N), n.Loaded)
		}
		card.Free = Bytes{N: card.Total.N - used, Known: true}
	}
}

func (s *simulation) place() {
	s.measure()
	plan := Place(Snapshot{Now: s.now, Nodes: s.nodes, Waiting: s.waiting}, Limits{})
	for _, d := range plan.Decisions {
		switch d.Action {
		case Start:
			s.start(d)
		case Load:
			s.load(d)
		case Unload:
			s.unload(d)
		case Impossible:
			s.t.Fatalf("%s: %s", d.Task, d.Why)
		}
	}
}

func (s *simulation) loaded(d Decision) *Loaded {
	n := s.node(d.Node)
	j := slices.IndexFunc(n.Loaded, func(l Loaded) bool { return l.Digest == d.Digest })
	if j < 0 {
		return nil
	}
	return &n.Loaded[j]
}

func (s *simulation) start(d Decision) {
	i := slices.IndexFunc(s.waiting, func(t Task) bool { return t.Key == d.Task })
	task := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.longest = max(s.longest, s.now.Sub(task.Ready))
	s.waited += s.now.Sub(task.Ready)
	l := s.loaded(d)
	l.Busy, l.LastUsed = l.Busy+1, s.now
	s.after(s.work[d.Task], func() {
		l := s.loaded(d)
		if s.node(d.Node).State == NodeLost || l == nil {
			task.Avoid = append(task.Avoid, d.Node)
			s.waiting = append([]Task{task}, s.waiting...)
			return
		}
		l.Busy, l.LastUsed = l.Busy-1, s.now
		s.ended[d.Task] = s.now
		s.then(task)
	})
}

func (s *simulation) load(d Decision) {
	n := s.node(d.Node)
	if n.Loading != nil {
		s.t.Fatalf("two loads on %s", n.ID)
	}
	s.loads++
	m := findDigest(n, d.Digest)
	n.Loading = &Claim{Digest: d.Digest, Name: d.Model, Context: d.Context, Need: d.Need, Since: s.now}
	s.after(cmp.Or(s.takes, loadTime(m.FileBytes)), func() {
		n := s.node(d.Node)
		n.Loading = nil
		if n.State == NodeLost {
			return
		}
		need := NeedFor(*m.Shape, d.Context, slotsOf(n, m, m.Shape), NeedOptions{GPUs: 1})
		size := need.Total() - need.Margin
		n.Loaded = append(n.Loaded, Loaded{Digest: d.Digest, Name: d.Model, Context: d.Context, SizeBytes: size, VRAMBytes: size, Since: s.now, LastUsed: s.now})
	})
}

func (s *simulation) unload(d Decision) {
	l := s.loaded(d)
	if l.Busy > 0 {
		s.t.Fatalf("%s is unloaded from %s while busy", d.Model, d.Node)
	}
	l.Leaving = true
	s.node(d.Node).RoomFor = d.Task
	s.after(time.Second, func() {
		n := s.node(d.Node)
		n.Loaded = slices.DeleteFunc(n.Loaded, func(l Loaded) bool { return l.Digest == d.Digest })
	})
}

func TestAMixedWorkloadEnds(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			a, b, c := gpuNode("a", 48, 47, pulled...), gpuNode("b", 24, 23.5, pulled...), gpuNode("c", 12, 11.5, pulled...)
			b.Slots = 2
			s := newSimulation(t, a, b, c)
			s.foreign["b"] = giB
			for i := range 150 {
				m := pulled[rnd.IntN(len(pulled))]
				task := Task{Key: fmt.Sprint(m.Name, "/", i), Model: m.Name}
				if rnd.IntN(5) == 0 {
					task.Context = 4096
				}
				work := time.Duration(1+rnd.IntN(20)) * time.Second
				s.after(time.Duration(rnd.IntN(600))*time.Second, func() { s.submit(task, work) })
			}
			s.after(200*time.Second, func() {
				n := s.node("b")
				n.State, n.Loaded = NodeLost, nil
			})
			s.after(400*time.Second, func() { s.node("b").State = NodeUp })
			s.run(3 * time.Hour)
			if len(s.ended) != 150 {
				t.Errorf("%d tasks ended, want 150", len(s.ended))
			}
			t.Logf("makespan %s, %d loads, longest wait %s", s.now.Sub(noon), s.loads, s.longest)
			if s.loads > 75 {
				t.Errorf("%d loads for 150 tasks", s.loads)
			}
		})
	}
}

// The thrash of this product: what one model writes another judges, and one card holds only one of them. Items have to
// flow in waves.
func TestGenerateAndJudgeOnOneCardFlowInWaves(t *testing.T) {
	s := newSimulation(t, gpuNode("a", 24, 23.5, big, middle))
	s.then = func(task Task) {
		if task.Model == middle.Name {
			s.submit(Task{Key: "judge " + task.Key, Model: big.Name}, 3*time.Second)
		}
	}
	for i := range 100 {
		s.submit(Task{Key: fmt.Sprint("item ", i), Model: middle.Name}, 4*time.Second)
	}
	s.run(2 * time.Hour)
	work := 700 * time.Second
	t.Logf("makespan %s for %s of work, %d loads, longest wait %s", s.now.Sub(noon), work, s.loads, s.longest)
	if s.loads > 14 {
		t.Errorf("%d loads: the two models evict each other", s.loads)
	}
	if len(s.ended) != 200 || s.now.Sub(noon) > 2*work {
		t.Errorf("%d calls ended, makespan %s", len(s.ended), s.now.Sub(noon))
	}
}

// llama-swap issue 612: A B A B in arrival order must not become a load per call, however fast loads are: 40 calls of two models that
// arrive over a minute cost at most four, and none of them waits beyond the bound.
func TestASwapIsAmortisedHoweverFastLoadsAre(t *testing.T) {
	for _, load := range []time.Duration{500 * time.Millisecond, 3700 * time.Millisecond, 10 * time.Second, 30 * time.Second} {
		for _, call := range []time.Duration{200 * time.Millisecond, 1400 * time.Millisecond} {
			for _, measured := range []bool{true, false} {
				t.Run(fmt.Sprintf("loads of %s, calls of %s, measured %v", load, call, measured), func(t *testing.T) {
					node := gpuNode("a", 24, 23.5, big, middle)
					if measured {
						speed := Speed{Load: load, Prompt: 1e6, Decode: 300 / call.Seconds(), Service: call}
						node.Speeds = map[string]Speed{big.Digest: speed, middle.Digest: speed}
					}
					s := newSimulation(t, node)
					s.takes = load
					for i := range 40 {
						m := []Model{big, middle}[i%2]
						s.after(time.Duration(i)*1500*time.Millisecond, func() { s.submit(Task{Key: fmt.Sprint(i), Model: m.Name}, call) })
					}
					s.run(time.Hour)
					t.Logf("%d loads, makespan %s, longest wait %s, mean %s", s.loads, s.now.Sub(noon), s.longest, s.waited/40)
					bound := Limits{}.bound(load)
					if !measured { // what is expected of the larger one
						bound = max(bound, Limits{}.bound(loadTime(big.FileBytes)))
					}
					if s.loads > 4 || s.longest > bound {
						t.Errorf("%d loads for 40 calls over a minute, want at most 4; longest wait %s, want at most %s", s.loads, s.longest, bound)
					}
				})
			}
		}
	}
}

// A stream that never ends on one model must not starve the other beyond the bound, a drain and a load.
func TestNobodyStarves(t *testing.T) {
	s := newSimulation(t, gpuNode("a", 24, 23.5, big, middle))
	for i := range 300 {
		s.after(time.Duration(i)*2*time.Second, func() { s.submit(Task{Key: fmt.Sprint("hot ", i), Model: big.Name}, 2*time.Second) })
	}
	var waited time.Duration
	s.then = func(task Task) {
		if task.Model == middle.Name {
			waited = max(waited, s.now.Sub(task.Ready))
		}
	}
	for i := range 3 {
		s.after(time.Duration(100+200*i)*time.Second, func() { s.submit(Task{Key: fmt.Sprint("rare ", i), Model: middle.Name}, 2*time.Second) })
	}
	s.run(time.Hour)
	// the bound, and then a running call, an unload, a load and the call itself
	bound := Limits{}.bound(loadTime(middle.FileBytes)) + 30*time.Second
	t.Logf("rare calls took %s at most, %d loads", waited, s.loads)
	if waited > bound {
		t.Errorf("a rare call took %s, want at most %s", waited, bound)
	}
}

func TestABatchUsesBothMachines(t *testing.T) {
	s := newSimulation(t, gpuNode("a", 24, 23.5, small), gpuNode("b", 24, 23.5, small))
	on := map[string]int{}
	for i := range 40 {
		s.submit(Task{Key: fmt.Sprint(i), Model: small.Name}, 5*time.Second)
	}
	for len(s.ended) < 40 {
		s.place()
		before := map[string]int{}
		for _, n := range s.nodes {
			for _, l := range n.Loaded {
				before[n.ID] += l.Busy
			}
		}
		k := 0
		for i := range s.events {
			if s.events[i].at.Before(s.events[k].at) {
				k = i
			}
		}
		s.now = s.events[k].at
		do := s.events[k].do
		s.events = slices.Delete(s.events, k, k+1)
		do()
		for _, n := range s.nodes {
			for _, l := range n.Loaded {
				on[n.ID] += before[n.ID] - l.Busy
			}
		}
	}
	if on["a"] < 10 || on["b"] < 10 {
		t.Errorf("items by node %v: each should have done at least a quarter", on)
	}
}
