package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What users of other programs report, as far as it is about where calls go; each test is named after what goes wrong.
// More of it: TestAlternatingArrivalsAreBatched (llama-swap#612), TestABusyModelIsNeverEvicted (llama-swap#19), TestAModelThatDoesNotLeave
// (ollama#7779), TestOneLoadInFlightPerNode (ollama#13235).

// ollama#10445: ps shows a model on the GPU while the CPU computes. Its measured rate is what counts: calls go elsewhere.
func TestPSSaysGPUWhileTheCPUComputes(t *testing.T) {
	slow := gpuNode("alpha", 24, 23.5, small).paced(small, 8, 60, 4).load(loadedAt(small, 8192, 1, 0, time.Hour))
	sound := gpuNode("beta", 24, 23.5, small).paced(small, 8, 2000, 60)
	expect(t, place(t, sized(tasks(1, small.Name, 0), 1000, 300), slow, sound), "load beta llama3.1:8b", "wait load llama3.1:8b/1")
}

// ollama#12323: Docker loses the GPU after hours. The node is not empty and not full: it gets no calls.
func TestALostGPUGetsNoCalls(t *testing.T) {
	lost := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Hour))
	lost.State = NodeDegraded
	expect(t, place(t, tasks(1, small.Name, time.Hour), lost, gpuNode("beta", 24, 23.5, small)), "load beta llama3.1:8b", "wait load llama3.1:8b/1")
	blind := gpuNode("alpha", 24, 0, small)
	blind.Pools[1].Free = Bytes{}
	expect(t, place(t, tasks(1, small.Name, time.Hour), blind), "wait facts llama3.1:8b/1")
}

// ollama#8903, #9977, Aider#4687, paperless-ai#859: the options of two clients differ, and every call reloads the model. One context per
// model holds for all that do not ask for another.
func TestDifferingOptionsDoNotReloadOnEachCall(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	node.Slots = 4
	s := Snapshot{Now: noon, Nodes: []Node{node.load(loadedAt(small, 4096, 4, 0, time.Hour))}, Waiting: tasks(4, "llama3.1:8b", 0)}
	expect(t, Place(s, Limits{Contexts: map[string]int{"llama3.1:8b": 4096}}),
		"start alpha llama3.1:8b/1", "start alpha llama3.1:8b/2", "start alpha llama3.1:8b/3", "start alpha llama3.1:8b/4")
}

// ollama#10948: two models that are kept for ever evict each other all night. Each keeps the node for its time, and is
// swapped only while the other waits.
func TestTwoModelsDoNotThrash(t *testing.T) {
	s := newSimulation(t, gpuNode("alpha", 24, 23.5, big, middle))
	for i := range 240 {
		m := []Model{big, middle}[i%2]
		s.after(time.Duration(i)*5*time.Second, func() { s.submit(Task{Key: m.Name + time.Duration(i).String(), Model: m.Name}, 3*time.Second) })
	}
	s.run(2 * time.Hour)
	if s.loads > 36 || s.longest > 3*time.Minute {
		t.Errorf("%d loads for 240 calls, longest wait %s", s.loads, s.longest)
	}
}

// llama-swap#946: a model is unloaded for being idle between the look and the call. One plan decides both.
func TestAnIdleUnloadNeverMeetsACall(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, 24*time.Hour))
	limits := Limits{IdleUnload: time.Minute}
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{node}, Waiting: tasks(1, small.Name, 0)}, limits), "start alpha llama3.1:8b/1")
	waiting := tasks(1, small.Name, 0)
	waiting[0].Resources = []string{"browser"} // it cannot start, but it will
	s := Snapshot{Now: noon, Nodes: []Node{node}, Waiting: waiting, Resources: map[string]Resource{"browser": {Cap: 1, InUse: 1}}}
	expect(t, Place(s, limits), "wait cap llama3.1:8b/1")
	node.Loaded[0].Leaving = true
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{node}, Waiting: tasks(1, small.Name, 0)}, limits), "wait load llama3.1:8b/1")
}

// ollama#5464, #10053, #8426: after a suspend clocks have jumped. Calls and loads of before neither count as endless nor as over.
func TestAClockThatJumpedBreaksNothing(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": 8 * time.Hour, "back": -8 * time.Hour} {
		node := gpuNode("alpha", 24, 23.5, small, middle).load(loadedAt(small, 8192, 1, 1, time.Hour))
		node.Loaded[0].Calls = []Call{{Run: "run", Since: noon.Add(-jump), Work: Work{Prompt: 100, Output: 100}}}
		node.Loading = &Claim{Digest: middle.Digest, Name: middle.Name, Context: 8192, Need: 10 * giB, Since: noon.Add(-jump)}
		waiting := append(tasks(1, small.Name, jump), tasks(1, middle.Name, jump)...)
		got := actions(place(t, waiting, node))
		slices.Sort(got)
		if want := []string{"wait load qwen2.5:14b/1", "wait slot llama3.1:8b/1"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// ollama#11889, #2876: a disconnect does not stop prompt processing. A cancelled call keeps its slot until its worker says so.
func TestACancelledCallKeepsItsSlot(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small, big).load(loadedAt(small, 8192, 1, 1, time.Hour)) // busy, with a call that nobody waits for
	expect(t, place(t, tasks(1, small.Name, time.Hour), node), "wait slot llama3.1:8b/1")
	expect(t, place(t, tasks(1, big.Name, time.Hour), node), "wait memory qwen2.5:32b/1")
}

// ollama#11812: after a spill the next model runs on the CPU alone. What spilled takes no calls, goes, and only then the
// next is loaded, into memory that was measured free.
func TestAfterASpillTheNextModelWaitsForTheMemory(t *testing.T) {
	spilled := gpuNode("alpha", 24, 23.5, huge, small)
	spilled.Unfit = map[string]Unfit{huge.Digest: {Context: 8192, Until: noon.Add(time.Minute)}}
	spilled = spilled.load(Loaded{Digest: huge.Digest, Name: huge.Name, Context: 8192, SizeBytes: 43 * giB, VRAMBytes: 23 * giB, Since: noon})
	expect(t, place(t, tasks(1, small.Name, 0), spilled), "unload alpha llama3.3:70b", "wait load llama3.1:8b/1")
	spilled.Loaded[0].Leaving = true
	expect(t, place(t, tasks(1, small.Name, 0), spilled), "wait load llama3.1:8b/1")
	spilled.Loaded, spilled.Pools[1].Free = nil, known(3) // gone from ps, and not yet from the card
	expect(t, place(t, tasks(1, small.Name, 0), spilled), "wait memory llama3.1:8b/1")
	spilled.Pools[1].Free = known(23)
	expect(t, place(t, tasks(1, small.Name, 0), spilled), "load alpha llama3.1:8b", "wait load llama3.1:8b/1")
}

// gpustack#5513: after a partition an allocation stays that nothing holds. What counts is what the node reports when it is back.
func TestNoGhostAllocationAfterAPartition(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 1, time.Hour))
	node.State = NodeLost
	plan := place(t, tasks(1, middle.Name, 0), node)
	expect(t, plan, "wait node qwen2.5:14b/1")
	if !strings.Contains(plan.Decisions[0].Why.Summary, "lost") {
		t.Error(plan.Decisions[0].Why.Summary)
	}
	back := gpuNode("alpha", 24, 23.5, big, middle)
	expect(t, place(t, tasks(1, middle.Name, 0), back), "load alpha qwen2.5:14b", "wait load qwen2.5:14b/1")
}
