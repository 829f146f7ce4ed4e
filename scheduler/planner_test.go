package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// What a Planner keeps changes nothing: not a decision and not a word of its explanation, while nodes, calls and the clock move on.
func TestAPlannerThatIsKeptPlansAsANewOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, kept := drawSnapshot(t), new(Planner)
		for range 6 {
			s.rereadShapes(t)
			want, got := Place(s, Limits{}), kept.Place(s, Limits{})
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("a new planner (-) and one that is kept (+):\n%s", diff)
			}
			s = drawNext(t, s, want)
		}
	})
}

// rereadShapes is what is known of the models now: a worker reads their files one after the other, and again when it begins anew.
func (s *Snapshot) rereadShapes(t *rapid.T) {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Models = slices.Clone(n.Models)
		for j := range n.Models {
			switch m := &n.Models[j]; rapid.IntRange(0, 5).Draw(t, "a shape") {
			case 0:
				m.Shape = nil
			case 1:
				known := slices.IndexFunc(pulled, func(p Model) bool { return p.Digest == m.Digest })
				m.Shape = pulled[known].Shape
			}
		}
	}
}

// drawNext is what a snapshot may look like a moment later, with some of a plan carried out.
func drawNext(t *rapid.T, s Snapshot, plan Plan) Snapshot {
	likely := func(what string) bool { return rapid.IntRange(0, 2).Draw(t, what) > 0 }
	s.Now = s.Now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	s.Nodes, s.Waiting = slices.Clone(s.Nodes), slices.Clone(s.Waiting)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Loaded, n.Pools = slices.Clone(n.Loaded), slices.Clone(n.Pools)
		for j := range n.Loaded {
			switch l := &n.Loaded[j]; rapid.IntRange(0, 5).Draw(t, "a call") {
			case 0:
				l.Busy, l.LastUsed = max(l.Busy-1, 0), s.Now
			case 1:
				l.LastUsed = s.Now
			}
		}
		for j := range n.Pools {
			if p := &n.Pools[j]; !likely("free as before") {
				p.Free.N = uint64(rapid.IntRange(0, 100).Draw(t, "percent free")) * (p.Total.N / 100)
			}
			n.Pools[j].FreeAge = time.Duration(rapid.IntRange(0, 14).Draw(t, "age")) * time.Second
		}
	}
	for _, d := range plan.Decisions {
		if i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.ID == d.Node }); i >= 0 && likely(fmt.Sprint(d.Action, " ", d.Task)) {
			s.carryOut(&s.Nodes[i], d)
		}
	}
	return s
}

func (s *Snapshot) carryOut(n *Node, d Decision) {
	j := slices.IndexFunc(n.Loaded, func(l Loaded) bool { return l.Digest == d.Digest })
	switch d.Action {
	case Start:
		n.Loaded[j].Busy++
		n.Loaded[j].LastUsed = s.Now
		s.Waiting = slices.DeleteFunc(s.Waiting, func(t Task) bool { return t.Key == d.Task })
	case Load:
		n.Loading = &Claim{Digest: d.Digest, Name: d.Model, Context: d.Context, Need: d.Need, Since: s.Now}
	case Unload:
		n.Loaded[j].Leaving, n.RoomFor = true, d.Task
	}
}

// A worker reads the files of its models after it has told their names: what waited for that goes on.
func TestATaskGoesOnWhenTheShapeOfItsModelBecomesKnown(t *testing.T) {
	n := gpuNode("alpha", 24, 23.5, small)
	unread := n
	unread.Models = []Model{small}
	unread.Models[0].Shape = nil
	kept, waiting := new(Planner), tasks(1, small.Name, 0)
	before := kept.Place(Snapshot{Now: noon, Nodes: []Node{unread}, Waiting: waiting}, Limits{})
	if d := before.Decisions[0]; d.Action != Wait || d.Why.Wait != WaitFacts {
		t.Fatalf("before: %s, waits for %q", d.Action, d.Why.Wait)
	}
	after := kept.Place(Snapshot{Now: noon.Add(time.Second), Nodes: []Node{n}, Waiting: waiting}, Limits{})
	if !slices.ContainsFunc(after.Decisions, func(d Decision) bool { return d.Action == Load && d.Node == "alpha" }) {
		t.Fatalf("after: nothing is loaded: %v", after.Decisions)
	}
}
