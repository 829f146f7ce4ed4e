package scheduler

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var pulled = []Model{small, middle, big, huge, model("qwen2.5:7b", qwen7b)}

// drawNode is any node: any state, memory known or not, full or not, with figures that need not agree with each other.
func drawNode(t *rapid.T, id string) Node {
	draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, id+" "+name) }
	n := Node{
		ID: id, Name: id, LastSeen: noon,
		State:         rapid.SampledFrom([]NodeState{NodeUp, NodeUp, NodeUp, NodeLost, NodeDraining, NodeDegraded}).Draw(t, id+" state"),
		OllamaVersion: rapid.SampledFrom([]string{"0.17.4", "0.31.0", ""}).Draw(t, id+" version"),
		Slots:         draw("slots", 0, 4),
	}
	kind := rapid.SampledFrom([]PoolKind{PoolHost, PoolDevice, PoolUnified}).Draw(t, id+" kind")
	for i := range draw("pools", 0, 2) {
		total := draw("total", 4, 96)
		p := Pool{ID: fmt.Sprint("pool", i), Kind: kind, Total: known(float64(total)), Free: known(float64(draw("free", 0, total)))}
		if draw("unknown", 0, 9) == 0 {
			p.Free = Bytes{}
		}
		n.Pools = append(n.Pools, p)
		n.Devices = append(n.Devices, Device{Pool: p.ID, Usable: kind != PoolHost})
	}
	for _, m := range pulled {
		if draw(m.Name+" pulled", 0, 3) == 0 {
			continue
		}
		if draw(m.Name+" shapeless", 0, 9) == 0 {
			m.Shape = nil
		}
		n.Models = append(n.Models, m)
	}
	for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, id+" loaded")[:draw("count", 0, 2)] {
		l := loadedAt(pulled[i], 4096*draw("context", 1, 2), 1, draw("busy", 0, 2), time.Duration(draw("since", 0, 600))*time.Second)
		l.Leaving, l.Foreign, l.Pinned = draw("leaving", 0, 9) == 0, draw("foreign", 0, 3) == 0, draw("pinned", 0, 5) == 0
		n.Loaded = append(n.Loaded, l)
	}
	if draw("capped", 0, 3) == 0 {
		n.MaxCalls = draw("calls", 1, 3)
	}
	if draw("measured", 0, 1) == 0 {
		n.Speeds = map[string]Speed{}
		for _, m := range pulled {
			n.Speeds[m.Digest] = Speed{Load: time.Duration(draw("load", 0, 60)) * time.Second, Prompt: float64(draw("prompt", 0, 3000)), Decode: float64(draw("decode", 0, 100))}
		}
	}
	if draw("promised", 0, 2) == 0 {
		n.RoomFor = fmt.Sprint("t", draw("for", 0, 11))
	}
	if draw("loading", 0, 3) == 0 {
		m := pulled[draw("loads", 0, 4)]
		n.Loading = &Claim{Digest: m.Digest, Name: m.Name, Context: 8192, Need: giB}
	}
	return n
}

func drawSnapshot(t *rapid.T) Snapshot {
	s := Snapshot{Now: noon, Received: map[string]time.Duration{"run0": time.Duration(rapid.IntRange(0, 600).Draw(t, "received")) * time.Second}}
	s.Resources = map[string]Resource{"browser": {Cap: 2, InUse: rapid.IntRange(0, 3).Draw(t, "in use")}, "host": {Rate: 1, Tokens: rapid.Float64Range(0, 2).Draw(t, "tokens")}}
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		s.Nodes = append(s.Nodes, drawNode(t, fmt.Sprint("n", i)))
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "tasks") {
		m := rapid.SampledFrom(pulled).Draw(t, "model")
		task := Task{Key: fmt.Sprint("t", i), Model: m.Name, Context: 4096 * rapid.IntRange(0, 2).Draw(t, "context")}
		task.Ready = noon.Add(-time.Duration(rapid.IntRange(0, 600).Draw(t, "age")) * time.Second)
		node := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node"))
		switch rapid.IntRange(0, 9).Draw(t, "special") {
		case 0:
			task.Pinned = node
		case 1, 2:
			task.Avoid = []string{node}
		case 3:
			task.Prefer = node
		case 4:
			task.Resources = []string{rapid.SampledFrom([]string{"browser", "host", "anything"}).Draw(t, "resource")}
		case 5:
			task.Priority = rapid.SampledFrom([]Priority{PriorityBatch, PriorityInteractive}).Draw(t, "priority")
		case 6:
			task.Work = Work{Prompt: rapid.IntRange(0, 4000).Draw(t, "prompt"), Output: rapid.IntRange(0, 800).Draw(t, "output")}
		}
		task.Run = fmt.Sprint("run", i%3)
		s.Waiting = append(s.Waiting, task)
	}
	slices.SortStableFunc(s.Waiting, func(a, b Task) int { return a.Ready.Compare(b.Ready) })
	return s
}

func nodeOf(s Snapshot, id string) *Node {
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return &s.Nodes[i]
		}
	}
	return nil
}

func TestEveryTaskGetsOneDecisionWithAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		seen := map[string]int{}
		for _, d := range Place(s, Limits{}).Decisions {
			if d.Why.Summary == "" || d.Task != "" && len(d.Why.Nodes) != len(s.Nodes) {
				t.Fatalf("%s %s without a full reason: %s", d.Action, d.Task, d.Why)
			}
			if (d.Action == Wait) != (d.Why.Wait != "") {
				t.Fatalf("%s %s says it waits for %q", d.Action, d.Task, d.Why.Wait)
			}
			if strings.Contains(d.Why.String(), "%!") {
				t.Fatalf("broken text: %s", d.Why)
			}
			if d.Action != Load && d.Action != Unload {
				seen[d.Task]++
			}
		}
		for _, task := range s.Waiting {
			if seen[task.Key] != 1 {
				t.Fatalf("%s has %d decisions", task.Key, seen[task.Key])
			}
		}
	})
}

// The check knows nothing of the ledger: what a load claims must be free as measured, and must fit the total beside what
// Ollama itself says that it holds.
func TestMemoryIsNeverOvercommitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		loads := map[string]int{}
		for _, d := range Place(s, Limits{}).Decisions {
			if d.Action != Load {
				continue
			}
			n := nodeOf(s, d.Node)
			if loads[d.Node]++; loads[d.Node] > 1 || n.Loading != nil || n.State != NodeUp {
				t.Fatalf("a load on %s, which is %s, with %d others", d.Node, n.State, loads[d.Node]-1)
			}
			var free, total, held uint64
			pools, _ := modelPools(n)
			for _, p := range pools {
				if !p.Free.Known || !p.Total.Known {
					t.Fatalf("a load into memory that is not known")
				}
				free, total = free+p.Free.N, total+p.Total.N-Limits{}.reserve(p)
			}
			for _, l := range n.Loaded {
				held += l.VRAMBytes
				if l.Digest == d.Digest {
					t.Fatalf("%s is loaded a second time on %s", d.Model, d.Node)
				}
			}
			if d.Need == 0 || d.Need > free || n.OllamaVersion == "0.17.4" && d.Need+held > total {
				t.Fatalf("%s claims %s of %s free, beside %s in %s", d.Model, gib(d.Need), gib(free), gib(held), gib(total))
			}
		}
	})
}

func TestOnlyIdleModelsGoAndOnlyFreeSlotsAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		pinned, model := map[string]bool{}, map[string]string{}
		for _, task := range s.Waiting {
			pinned[task.Key], model[task.Key] = task.Pinned != "", task.Model
		}
		started, gone := map[[2]string]int{}, map[[2]string]bool{}
		for _, d := range Place(s, Limits{}).Decisions {
			if d.Action != Start && d.Action != Unload {
				continue
			}
			n, at := nodeOf(s, d.Node), [2]string{d.Node, d.Digest}
			j := slices.IndexFunc(n.Loaded, func(l Loaded) bool { return l.Digest == d.Digest })
			if j < 0 || n.Loaded[j].Context != d.Context {
				t.Fatalf("%s %s at %d tokens, which %s does not have loaded", d.Action, d.Model, d.Context, d.Node)
			}
			switch l := n.Loaded[j]; {
			case d.Action == Unload && (l.Busy > 0 || l.Leaving || started[at] > 0 || gone[at]):
				t.Fatalf("%s is unloaded from %s with %d running, %d just started", d.Model, d.Node, l.Busy, started[at])
			case d.Action == Unload && (l.Foreign || l.Pinned && model[d.Task] != l.Name): // a pin keeps a model, not its context
				t.Fatalf("%s is unloaded from %s, where it stays", d.Model, d.Node)
			case d.Action == Unload:
				gone[at] = true
			case pinned[d.Task]:
			case l.Leaving || gone[at] || l.Busy+started[at] >= max(n.Slots, 1):
				t.Fatalf("%s starts on %s beyond its slots: %d busy, %d started", d.Task, d.Node, l.Busy, started[at])
			}
			if d.Action == Start {
				started[at]++
			}
		}
	})
}

func TestTheOrderOfNodesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		first := Place(s, Limits{})
		if diff := cmp.Diff(first, Place(s, Limits{})); diff != "" {
			t.Fatalf("the same snapshot gave another plan:\n%s", diff)
		}
		s.Nodes = rapid.Permutation(s.Nodes).Draw(t, "order")
		if diff := cmp.Diff(first, Place(s, Limits{})); diff != "" {
			t.Fatalf("the order of nodes gave another plan:\n%s", diff)
		}
	})
}

// roomier is the snapshot with a share more of what is in use free, on every node.
func roomier(s Snapshot, share float64) Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Pools = slices.Clone(s.Nodes[i].Pools)
		for p := range s.Nodes[i].Pools {
			pool := &s.Nodes[i].Pools[p]
			pool.Free.N += uint64(share * float64(below(pool.Total.N, pool.Free.N)))
		}
	}
	return s
}

// surveyed is a planner that has looked at everything and decided nothing yet.
func surveyed(s Snapshot) *Planner {
	p := new(Planner)
	p.begin(&s, Limits{})
	p.line()
	p.forecast(PriorityNormal)
	return p
}

// samePlaces: with several devices it is guessed from what is free in which of them a loaded model sits, and the guess may differ.
func samePlaces(a, b *host) bool { return reflect.DeepEqual(a.memory.held, b.memory.held) }

// More free memory makes no load worse, whoever else waits: what was possible is possible, and what could begin at once can, ends no later
// and displaces nothing dearer. So what comes first in turn is placed no worse; what comes behind it may be, see README.md.
func TestMoreFreeMemoryMakesNoLoadWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		before, after := surveyed(s), surveyed(roomier(s, rapid.Float64Range(0, 1).Draw(t, "more")))
		for k, g := range before.groups {
			if g.pinned != "" {
				continue
			}
			h := after.groups[k]
			if len(g.sites) != len(h.sites) {
				t.Fatalf("%s may run on %d nodes, with more memory on %d", g.model, len(g.sites), len(h.sites))
			}
			for i := range g.sites {
				was, is := before.hosts[g.sites[i].host], after.hosts[h.sites[i].host]
				if !samePlaces(was, is) {
					continue
				}
				a, b := before.option(was, &g.sites[i]), after.option(is, &h.sites[i])
				if a.ok && !b.ok || a.now && !b.now {
					t.Fatalf("a load of %s on %s: %+v, with more memory %+v", g.model, was.ID, a, b)
				}
				if a.now && b.now && b.begin+b.takes+b.cost > a.begin+a.takes+a.cost {
					t.Fatalf("a load of %s on %s is ready at %s and costs others %s, with more memory %s and %s", g.model, was.ID, a.begin+a.takes, a.cost, b.begin+b.takes, b.cost)
				}
			}
		}
	})
}

// What a call gets done alone it gets done with more free memory, too, or it waits for a place that is booked for it where it is expected to
// end no later, what its load would cost others counted.
func TestMoreFreeMemoryMakesALoneCallWaitOnlyForASoonerEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		if len(s.Waiting) == 0 {
			return
		}
		s.Waiting = s.Waiting[:1]
		before, after := new(Planner), new(Planner)
		first := before.Place(s, Limits{})
		second := after.Place(roomier(s, rapid.Float64Range(0, 1).Draw(t, "more")), Limits{})
		for i := range before.hosts {
			if !samePlaces(before.hosts[i], after.hosts[i]) {
				return
			}
		}
		if !acts(first) || acts(second) {
			return
		}
		var costs time.Duration
		for _, site := range before.groups[0].sites {
			costs = max(costs, site.option.cost)
		}
		if was, is := before.groups[0].level, after.groups[0].level; is == 0 || is > was+costs {
			t.Fatalf("a call that was placed, to end in %s, waits with more free memory until %s:\n%s", was, is, transcript(second))
		}
	})
}

// The counterexample for several: what comes first in turn takes the room that was too small for it, and what comes next waits.
func TestMoreFreeMemoryForTheFirstMayMakeTheNextWait(t *testing.T) {
	waiting := append(sized(tasks(3, big.Name, 70*time.Second), 100, 100), sized(tasks(1, small.Name, 0), 100, 100)...)
	expect(t, place(t, waiting, gpuNode("alpha", 24, 10, big, small)), "load alpha llama3.1:8b",
		"wait load qwen2.5:32b/1", "wait load qwen2.5:32b/2", "wait load qwen2.5:32b/3", "wait load llama3.1:8b/1")
	expect(t, place(t, waiting, gpuNode("alpha", 24, 23.5, big, small)), "load alpha qwen2.5:32b",
		"wait load qwen2.5:32b/1", "wait load qwen2.5:32b/2", "wait load qwen2.5:32b/3", "wait load llama3.1:8b/1")
}

func acts(plan Plan) bool {
	return slices.ContainsFunc(plan.Decisions, func(d Decision) bool { return d.Action == Start || d.Action == Load || d.Action == Unload })
}

// No call waits beyond its bound while a machine is idle that could take it.
func TestNoCallWaitsBeyondItsBoundWhileAMachineIsIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		p := new(Planner)
		plan := p.Place(s, Limits{})
		for k, task := range s.Waiting {
			g := p.groupOf(int32(k))
			if p.begun[k] || task.Pinned != "" || p.age(task.Ready) < g.bound || p.closed(g) != nil || g.waiting() <= g.planned {
				continue
			}
			for site := range g.nodes {
				if h := p.hosts[site.host]; idle(s, plan, h.ID) && couldTake(h, site.fit) {
					t.Fatalf("%s waits since %s, bound %s, while %s is idle:\n%s", task.Key, p.age(task.Ready), g.bound, h.ID, transcript(plan))
				}
			}
		}
	})
}

// idle: nothing runs, loads or leaves there, before the plan or by it, and no room is kept.
func idle(s Snapshot, plan Plan, id string) bool {
	n := nodeOf(s, id)
	used := n.Loading != nil || slices.ContainsFunc(n.Loaded, func(l Loaded) bool { return l.Busy > 0 || l.Leaving })
	return !used && !slices.ContainsFunc(plan.Decisions, func(d Decision) bool { return d.Node == id })
}

// couldTake: the model fits once everything goes that may go, and that had its time if it is waited for.
func couldTake(h *host, f *fit) bool {
	if h.reserved != nil {
		return false // for another task beyond its bound
	}
	return h.runs(f, h.find(f)) || h.State == NodeUp && f.room.ok && h.clear(f, func(j int) bool {
		r := &h.residents[j]
		return !h.stays(j) && (!r.queued || r.since >= residency(r.pace.load))
	}).ok
}

func TestMoreFreeMemoryNeverMakesImpossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		before := impossible(Place(s, Limits{}))
		for i := range s.Nodes {
			for p := range s.Nodes[i].Pools {
				pool := &s.Nodes[i].Pools[p]
				if pool.Free.Known {
					pool.Free.N += (pool.Total.N - pool.Free.N) / 2
				}
			}
		}
		if after := impossible(Place(s, Limits{})); !slices.Equal(before, after) {
			t.Fatalf("impossible before %v, with more free memory %v", before, after)
		}
	})
}

func impossible(plan Plan) (keys []string) {
	for _, d := range plan.Decisions {
		if d.Action == Impossible {
			keys = append(keys, d.Task)
		}
	}
	return keys
}
