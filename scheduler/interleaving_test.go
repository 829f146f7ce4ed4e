package scheduler

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// chaos drives a planner through whatever may happen to a fleet, in any order. Each machine has a truth, and a report of it that may be old.
type chaos struct {
	*rapid.T
	planner Planner
	now     time.Time
	truths  []*truth
	waiting []Task
	running []run
	made    int
}

// truth is a machine as it is, and what the executor knows of it.
type truth struct {
	node    Node // as last reported
	holds   []Loaded
	loading *Model // by its Ollama, whether or not anybody remembers
	foreign uint64 // bytes
	claim   *Claim // the executor's
	leaving []string
	at      time.Time // of the report
}

type run struct {
	task   Task
	node   int
	digest string
}

func size(m *Model) uint64 {
	need := NeedFor(*m.Shape, 8192, 1, NeedOptions{GPUs: 1})
	return need.Total() - need.Margin
}

func (m *truth) used() uint64 {
	used := m.foreign
	for _, l := range m.holds {
		used += l.SizeBytes
	}
	if m.loading != nil {
		used += size(m.loading)
	}
	return used
}

// report brings what is known of a machine up to date.
func (c *chaos) report(m *truth) {
	card := &m.node.Pools[1]
	card.Free = Bytes{N: card.Total.N - m.used(), Known: true}
	m.node.Loaded, m.at = slices.Clone(m.holds), c.now
	shown := func(digest string) bool {
		return slices.ContainsFunc(m.holds, func(l Loaded) bool { return l.Digest == digest })
	}
	if m.claim != nil && m.loading == nil {
		m.claim = nil
	}
	m.leaving = slices.DeleteFunc(m.leaving, func(d string) bool { return !shown(d) })
}

// snapshot is what the scheduler is shown.
func (c *chaos) snapshot() Snapshot {
	s := Snapshot{Now: c.now, Waiting: slices.Clone(c.waiting)}
	for i, m := range c.truths {
		n := m.node
		n.Pools = slices.Clone(n.Pools)
		n.Pools[1].FreeAge = c.now.Sub(m.at)
		n.Loaded, n.Loading = slices.Clone(n.Loaded), m.claim
		for j := range n.Loaded {
			l := &n.Loaded[j]
			l.Leaving, l.Busy = slices.Contains(m.leaving, l.Digest), c.busy(i, l.Digest)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func (c *chaos) busy(node int, digest string) (n int) {
	for _, r := range c.running {
		if r.node == node && r.digest == digest {
			n++
		}
	}
	return n
}

// step plans, checks the plan and carries it out.
func (c *chaos) step() {
	s := c.snapshot()
	plan := c.planner.Place(s, Limits{})
	if fresh := Place(s, Limits{}); !reflect.DeepEqual(fresh.Decisions, plan.Decisions) && len(plan.Decisions)+len(fresh.Decisions) > 0 {
		c.Fatalf("a planner that was used decides otherwise (-fresh +used):\n%s", cmp.Diff(fresh, plan))
	}
	for _, d := range plan.Decisions {
		i := slices.IndexFunc(c.truths, func(m *truth) bool { return m.node.ID == d.Node })
		switch d.Action {
		case Start:
			k := slices.IndexFunc(c.waiting, func(t Task) bool { return t.Key == d.Task })
			c.running = append(c.running, run{c.waiting[k], i, d.Digest})
			c.waiting = slices.Delete(c.waiting, k, k+1)
		case Load:
			c.load(i, s.Nodes[i], d)
		case Unload:
			if c.busy(i, d.Digest) > 0 {
				c.Fatalf("%s is unloaded from %s while it is busy", d.Model, d.Node)
			}
			c.truths[i].leaving = append(c.truths[i].leaving, d.Digest)
			c.truths[i].node.RoomFor = d.Task
		}
	}
}

func (c *chaos) load(i int, n Node, d Decision) {
	m := c.truths[i]
	if m.claim != nil || m.loading != nil {
		c.Fatalf("two loads at once on %s", d.Node)
	}
	claims := d.Need
	for _, l := range n.Loaded {
		all := Node{Models: []Model{small, middle, big}} // an old report may show one that was deleted since
		claims += NeedFor(*findDigest(&all, l.Digest).Shape, l.Context, 1, NeedOptions{GPUs: 1}).Total()
	}
	if room := n.Pools[1].Total.N - (Limits{}).reserve(n.Pools[1]); claims > room {
		c.Fatalf("%s: %s claimed of %s", d.Node, gib(claims), gib(room))
	}
	model := *findDigest(&n, d.Digest)
	m.claim, m.loading = &Claim{Digest: d.Digest, Name: d.Model, Context: d.Context, Need: d.Need, Since: c.now}, &model
	if used := m.used(); used > n.Pools[1].Total.N {
		c.Fatalf("%s: %s in use of %s after the load of %s", d.Node, gib(used), gib(n.Pools[1].Total.N), d.Model)
	}
}

// arrive adds a call.
func (c *chaos) arrive() {
	c.made++
	m := rapid.SampledFrom([]Model{small, middle, big}).Draw(c.T, "model")
	c.waiting = append(c.waiting, Task{Key: fmt.Sprint("t", c.made), Run: fmt.Sprint("run", c.made%3), Model: m.Name, Ready: c.now})
}

// happen is one event.
func (c *chaos) happen() {
	i := rapid.IntRange(0, len(c.truths)-1).Draw(c.T, "machine")
	m := c.truths[i]
	switch rapid.SampledFrom([]string{"arrive", "arrive", "end", "fail", "loaded", "broken", "unloaded", "report", "lost", "back", "foreign", "upgrade", "delete", "time", "time"}).Draw(c.T, "event") {
	case "arrive":
		c.arrive()
	case "end", "fail":
		if len(c.running) > 0 {
			k := rapid.IntRange(0, len(c.running)-1).Draw(c.T, "call")
			c.running = slices.Delete(c.running, k, k+1)
		}
	case "loaded":
		if m.loading != nil {
			m.holds = append(m.holds, Loaded{Digest: m.loading.Digest, Name: m.loading.Name, Context: 8192, SizeBytes: size(m.loading), VRAMBytes: size(m.loading), Since: c.now})
			m.loading = nil
		}
	case "broken":
		if m.loading != nil {
			m.loading, m.claim = nil, nil
			m.node.Avoid = map[string]time.Time{small.Digest: c.now.Add(time.Minute)}
		}
	case "unloaded":
		for _, d := range m.leaving {
			m.holds = slices.DeleteFunc(m.holds, func(l Loaded) bool { return l.Digest == d && c.busy(i, d) == 0 })
		}
	case "report":
		if m.node.State == NodeUp {
			c.report(m)
		}
	case "lost": // the machine goes on by itself, as behind a network that broke
		m.node.State, m.claim, m.leaving = NodeLost, nil, nil
		for _, r := range c.running {
			if r.node == i {
				r.task.Avoid = append(r.task.Avoid, m.node.ID)
				c.waiting = append(c.waiting, r.task)
			}
		}
		c.running = slices.DeleteFunc(c.running, func(r run) bool { return r.node == i })
	case "back":
		if m.node.State == NodeLost && m.loading == nil {
			m.node.State = NodeUp
			c.report(m)
		}
	case "foreign": // another program takes what is free, and that is seen
		if m.node.State == NodeUp {
			m.foreign = 0
			m.foreign = uint64(rapid.Float64Range(0, 1).Draw(c.T, "share") * float64(m.node.Pools[1].Total.N-m.used()))
			c.report(m)
		}
	case "upgrade":
		m.node.OllamaVersion = rapid.SampledFrom([]string{"0.17.4", "0.31.0"}).Draw(c.T, "version")
	case "delete": // models that are not in memory
		m.node.Models = slices.DeleteFunc([]Model{small, middle, big}, func(x Model) bool {
			inMemory := slices.ContainsFunc(m.holds, func(l Loaded) bool { return l.Digest == x.Digest }) || m.loading != nil
			return !inMemory && rapid.Bool().Draw(c.T, "deleted")
		})
	case "time":
		c.now = c.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(c.T, "seconds")) * time.Second)
	}
}

// Claims never exceed a pool, nothing spills, no busy model goes and no two loads meet, whatever arrives, fails, is lost or reported late.
func TestNothingIsOverfullWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{T: t, now: noon}
		for i, total := range []float64{24, 24, 16}[:rapid.IntRange(1, 3).Draw(t, "machines")] {
			n := gpuNode(fmt.Sprint("n", i), total, total, small, middle, big)
			c.truths = append(c.truths, &truth{node: n, at: noon})
		}
		for range rapid.IntRange(20, 60).Draw(t, "events") {
			c.happen()
			c.step()
		}
	})
}
