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
	loading *Loaded // by its Ollama, whether or not anybody remembers
	foreign uint64  // bytes
	lazy    float64 // share of what a model reserves that shows as used
	claim   *Claim  // the executor's
	leaving []string
	at      time.Time // of the report
}

type run struct {
	task   Task
	node   int
	digest string
}

func size(m *Model, context, slots int) uint64 {
	need := NeedFor(*m.Shape, context, slots, NeedOptions{GPUs: 1})
	return need.Total() - need.Margin
}

// holding is a model as the machine holds it.
func (m *truth) holding(model *Model, context int, now time.Time) Loaded {
	n := size(model, context, m.node.Slots)
	return Loaded{Digest: model.Digest, Name: model.Name, Context: context, SizeBytes: n, VRAMBytes: n, Since: now}
}

func (m *truth) used() uint64 {
	used := m.foreign
	for _, l := range m.holds {
		used += uint64(m.lazy * float64(l.SizeBytes))
	}
	if m.loading != nil {
		used += uint64(m.lazy * float64(m.loading.SizeBytes))
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
			c.mayStart(s.Nodes[i], c.waiting[k], d)
			c.running = append(c.running, run{c.waiting[k], i, d.Digest})
			c.waiting = slices.Delete(c.waiting, k, k+1)
		case Load:
			c.load(i, s.Nodes[i], d)
		case Unload:
			c.mayUnload(i, s, d)
			c.truths[i].leaving = append(c.truths[i].leaving, d.Digest)
			c.truths[i].node.RoomFor = d.Task
		}
	}
}

// mayStart: on a machine that is up, in a free slot of a model that stays, at the context asked for.
func (c *chaos) mayStart(n Node, t Task, d Decision) {
	j := slices.IndexFunc(n.Loaded, func(l Loaded) bool { return l.Digest == d.Digest && !l.Leaving })
	switch {
	case n.State != NodeUp || j < 0 || n.Loaded[j].Context != t.Context || n.Loaded[j].Name != t.Model:
		c.Fatalf("%s of %s at %d tokens starts on %s, which is %s and holds %+v", d.Task, t.Model, t.Context, d.Node, n.State, n.Loaded)
	case c.busy(slices.IndexFunc(c.truths, func(m *truth) bool { return m.node.ID == d.Node }), d.Digest) >= n.Slots:
		c.Fatalf("%s starts on %s beyond its %d slots", d.Task, d.Node, n.Slots)
	}
}

// mayUnload: nothing that is busy or somebody's to keep, and nothing in the hope of memory that was measured long ago.
func (c *chaos) mayUnload(i int, s Snapshot, d Decision) {
	n := s.Nodes[i]
	j := slices.IndexFunc(n.Loaded, func(l Loaded) bool { return l.Digest == d.Digest })
	k := slices.IndexFunc(s.Waiting, func(t Task) bool { return t.Key == d.Task })
	itself := func(l Loaded) bool { // a pin keeps a model, not its context
		return k >= 0 && s.Waiting[k].Model == l.Name
	}
	switch l := n.Loaded[j]; {
	case c.busy(i, d.Digest) > 0:
		c.Fatalf("%s is unloaded from %s while it is busy", d.Model, d.Node)
	case l.Foreign || l.Pinned && !itself(l) || l.Leaving || n.State != NodeUp:
		c.Fatalf("%s is unloaded from %s, which is %s: %+v", d.Model, d.Node, n.State, l)
	case n.Pools[1].FreeAge > FreshFor && n.Pools[1].Free.N < size(findName(&n, s.Waiting[k].Model), s.Waiting[k].Context, n.Slots) && s.Waiting[k].Model != l.Name:
		c.Fatalf("%s is unloaded from %s for %s on a figure of %s ago", d.Model, d.Node, d.Task, n.Pools[1].FreeAge)
	}
}

func (c *chaos) load(i int, n Node, d Decision) {
	m := c.truths[i]
	if m.claim != nil || m.loading != nil || n.State != NodeUp {
		c.Fatalf("a load on %s, which is %s and loads %v", d.Node, n.State, m.claim)
	}
	claims := d.Need
	for _, l := range n.Loaded {
		all := Node{Models: []Model{small, middle, big}} // an old report may show one that was deleted since
		claims += NeedFor(*findDigest(&all, l.Digest).Shape, l.Context, n.Slots, NeedOptions{GPUs: 1}).Total()
		if l.Digest == d.Digest {
			c.Fatalf("%s is loaded on %s, which holds it at %d tokens", d.Model, d.Node, l.Context)
		}
	}
	if room := n.Pools[1].Total.N - (Limits{}).reserve(n.Pools[1]); claims > room {
		c.Fatalf("%s: %s claimed of %s", d.Node, gib(claims), gib(room))
	}
	loading := m.holding(findDigest(&n, d.Digest), d.Context, c.now)
	m.claim, m.loading = &Claim{Digest: d.Digest, Name: d.Model, Context: d.Context, Need: d.Need, Since: c.now}, &loading
	if used := m.used(); used > n.Pools[1].Total.N {
		c.Fatalf("%s: %s in use of %s after the load of %s", d.Node, gib(used), gib(n.Pools[1].Total.N), d.Model)
	}
}

// arrive adds a call.
func (c *chaos) arrive() {
	c.made++
	m := rapid.SampledFrom([]Model{small, middle, big}).Draw(c.T, "model")
	c.waiting = append(c.waiting, Task{Key: fmt.Sprint("t", c.made), Run: fmt.Sprint("run", c.made%3), Model: m.Name, Ready: c.now,
		Context: rapid.SampledFrom([]int{8192, 8192, 4096}).Draw(c.T, "context"), Priority: rapid.SampledFrom([]Priority{PriorityNormal, PriorityNormal, PriorityBatch, PriorityInteractive}).Draw(c.T, "priority")})
}

// happen is one event.
func (c *chaos) happen() {
	i := rapid.IntRange(0, len(c.truths)-1).Draw(c.T, "machine")
	m := c.truths[i]
	switch rapid.SampledFrom([]string{"arrive", "arrive", "end", "fail", "loaded", "broken", "unloaded", "report", "lost", "back", "foreign", "visitor", "keep", "upgrade", "delete", "time", "time"}).Draw(c.T, "event") {
	case "arrive":
		c.arrive()
	case "end", "fail":
		if len(c.running) > 0 {
			k := rapid.IntRange(0, len(c.running)-1).Draw(c.T, "call")
			c.running = slices.Delete(c.running, k, k+1)
		}
	case "loaded":
		c.loaded(m)
	case "broken":
		if m.loading != nil {
			m.loading, m.claim = nil, nil
			m.node.Avoid = map[string]time.Time{small.Digest: c.now.Add(time.Minute)}
		}
	case "unloaded":
		c.unloaded(i)
	case "visitor": // somebody else loads a model, or has it go
		if !m.send() && m.node.State == NodeUp && m.loading == nil && len(m.holds) == 0 {
			l := m.holding(&small, 8192, c.now)
			l.Foreign = true
			if m.used()+l.SizeBytes < m.node.Pools[1].Total.N {
				m.holds = append(m.holds, l)
			}
			c.report(m)
		}
	case "keep": // a person keeps what is in memory, or no longer does
		for j := range m.holds {
			m.holds[j].Pinned = !m.holds[j].Pinned
		}
		if m.node.State == NodeUp {
			c.report(m)
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

// loaded ends the load of a machine.
func (c *chaos) loaded(m *truth) {
	if m.loading != nil {
		m.loading.Since = c.now
		m.holds, m.loading = append(m.holds, *m.loading), nil
	}
}

// unloaded lets go what was told to.
func (c *chaos) unloaded(i int) {
	m := c.truths[i]
	for _, d := range m.leaving {
		m.holds = slices.DeleteFunc(m.holds, func(l Loaded) bool { return l.Digest == d && c.busy(i, d) == 0 })
	}
}

// send has visitors go, and reports whether there were any.
func (m *truth) send() bool {
	before := len(m.holds)
	m.holds = slices.DeleteFunc(m.holds, func(l Loaded) bool { return l.Foreign })
	return len(m.holds) < before
}

// settle is what follows when nothing happens any more but what was ordered: everything that waits is served.
func (c *chaos) settle() {
	for _, m := range c.truths {
		m.send()
		m.foreign, m.node.State, m.node.OllamaVersion, m.node.Models = 0, NodeUp, "0.17.4", []Model{small, middle, big}
		for j := range m.holds {
			m.holds[j].Pinned = false
		}
	}
	for range 40 + 4*c.made {
		c.running = nil
		for i, m := range c.truths {
			c.loaded(m)
			c.unloaded(i)
			c.report(m)
		}
		c.now = c.now.Add(10 * time.Second)
		c.step()
		if len(c.waiting) == 0 {
			return
		}
	}
	c.Fatalf("%d calls of %d are never served, the first %+v:\n%s", len(c.waiting), c.made, c.waiting[0], transcript(Place(c.snapshot(), Limits{})))
}

// Whatever arrives, fails, is lost or reported late: claims never exceed a pool, nothing spills, no two loads meet, nothing goes that is busy or
// kept, calls start only where they may; and once it is quiet, every call is served.
func TestNothingIsOverfullWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{T: t, now: noon}
		for i, total := range []float64{26, 26, 16}[:rapid.IntRange(1, 3).Draw(t, "machines")] {
			n := gpuNode(fmt.Sprint("n", i), total, total, small, middle, big)
			n.Slots = rapid.IntRange(1, 2).Draw(t, "slots")
			c.truths = append(c.truths, &truth{node: n, at: noon, lazy: rapid.SampledFrom([]float64{1, 0.7}).Draw(t, "lazy")})
		}
		for range rapid.IntRange(20, 60).Draw(t, "events") {
			c.happen()
			c.step()
		}
		c.settle()
	})
}
