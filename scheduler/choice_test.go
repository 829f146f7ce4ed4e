package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// paced gives a node the speeds of a model: seconds of a load, prompt and output tokens per second.
func (n Node) paced(m Model, load int, prompt, decode float64) Node {
	speeds := map[string]Speed{m.Digest: {Load: time.Duration(load) * time.Second, Prompt: prompt, Decode: decode}}
	for digest, v := range n.Speeds {
		speeds[digest] = v
	}
	n.Speeds = speeds
	return n
}

// sized gives tasks their work in tokens.
func sized(list []Task, prompt, output int) []Task {
	for i := range list {
		list[i].Work = Work{Prompt: prompt, Output: output}
	}
	return list
}

// busyFor makes one call of a node's last loaded model run for so many seconds more, at 10 output tokens a second.
func (n Node) busyFor(seconds int) Node {
	n.Loaded = slices.Clone(n.Loaded)
	l := &n.Loaded[len(n.Loaded)-1]
	l.Busy++
	l.Calls = append(slices.Clone(l.Calls), Call{Run: "other", Since: noon, Work: Work{Prompt: 1, Output: 10 * seconds}})
	return n
}

func TestWaitsForABusyFastNodeInsteadOfStartingOnASlowOne(t *testing.T) {
	fast := gpuNode("fast", 24, 23.5, small).paced(small, 5, 1e6, 100).load(loadedAt(small, 8192, 1, 0, time.Hour))
	slow := gpuNode("slow", 24, 23.5, small).paced(small, 5, 1e6, 10).load(loadedAt(small, 8192, 1, 0, time.Hour))
	fast.Loaded[0].Busy, fast.Loaded[0].Calls = 1, []Call{{Since: noon, Work: Work{Prompt: 1, Output: 300}}} // 3 s more
	waiting := sized(tasks(1, small.Name, 0), 1, 300)                                                        // 3 s on one, 30 s on the other
	plan := place(t, waiting, fast, slow)
	expect(t, plan, "wait faster llama3.1:8b/1")
	if why := plan.Decisions[0].Why; !strings.Contains(why.Summary, "fast") || why.Nodes[0].Expect.Finish() >= why.Nodes[1].Expect.Finish() {
		t.Errorf("%s\n%+v", why, why.Nodes)
	}
	// nine of them take 27 s there, so that the tenth would wait for longer than the slow one takes
	got := actions(place(t, sized(tasks(12, small.Name, 0), 1, 300), fast, slow))
	if starts := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, "start slow") }); len(starts) != 1 {
		t.Errorf("a long queue: %v", got)
	}
	// beyond its bound a call takes what is free
	expect(t, place(t, sized(tasks(1, small.Name, time.Minute), 1, 300), fast, slow), "start slow llama3.1:8b/1")
}

func TestLoadsOnAFastNodeInsteadOfASlowOne(t *testing.T) {
	fast := gpuNode("fast", 24, 23.5, small).paced(small, 20, 1e6, 100)
	slow := gpuNode("a-slow", 24, 23.5, small).paced(small, 5, 1e6, 10)
	expect(t, place(t, sized(tasks(1, small.Name, 0), 1, 300), fast, slow), "load fast llama3.1:8b", "wait load llama3.1:8b/1")
	expect(t, place(t, sized(tasks(1, small.Name, 0), 1, 100), fast, slow), "load a-slow llama3.1:8b", "wait load llama3.1:8b/1")
	// beyond its bound a call that waits for a busy node is loaded on an idle one
	full := gpuNode("fast", 24, 23.5, small, big).paced(small, 5, 1e6, 100).paced(big, 5, 1e6, 10).load(loadedAt(big, 8192, 1, 0, time.Hour)).busyFor(10)
	expect(t, place(t, sized(tasks(1, small.Name, 0), 1, 300), full, slow), "wait memory llama3.1:8b/1")
	expect(t, place(t, sized(tasks(1, small.Name, time.Minute), 1, 300), full, slow), "load a-slow llama3.1:8b", "wait load llama3.1:8b/1")
}

// A model that other nodes can run as well does not take the only one that can hold another.
func TestALoadCountsWhatItKeepsFromOthers(t *testing.T) {
	large := gpuNode("alpha", 48, 47.5, big, huge).paced(big, 10, 1e6, 10).paced(huge, 30, 1e6, 10)
	other := gpuNode("beta", 24, 23.5, big).paced(big, 10, 1e6, 12)
	waiting := append(sized(tasks(2, big.Name, time.Second), 1, 300), sized(tasks(3, huge.Name, 0), 1, 100)...)
	got := actions(place(t, waiting, large, other))
	if want := []string{"load alpha llama3.3:70b", "load beta qwen2.5:32b"}; !slices.Equal(got[:2], want) {
		t.Errorf("%v, want first %v", got, want)
	}
	got = actions(place(t, waiting[:2], large, other)) // with nobody else waiting it takes both
	if want := []string{"load beta qwen2.5:32b", "load alpha qwen2.5:32b"}; !slices.Equal(got[:2], want) {
		t.Errorf("%v, want first %v", got, want)
	}
}

func TestAConversationGoesBackToItsWarmSlot(t *testing.T) {
	node := func(id string, warm ...string) Node {
		n := gpuNode(id, 24, 23.5, small).paced(small, 5, 1000, 100).load(loadedAt(small, 8192, 1, 0, time.Hour))
		n.Loaded[0].Affinity = warm
		return n
	}
	turn := tasks(1, small.Name, 0)
	turn[0].Work, turn[0].Affinity = Work{Prompt: 5000, Output: 100, Shared: 4000}, "chat" // 4 of 6 s are saved
	expect(t, place(t, turn, node("alpha", "other"), node("beta", "chat")), "start beta llama3.1:8b/1")
	expect(t, place(t, turn, node("alpha"), node("beta", "chat").busyFor(3)), "wait faster llama3.1:8b/1") // at 100 a second: 0.3 s
	expect(t, place(t, turn, node("alpha"), node("beta", "chat").busyFor(60)), "start alpha llama3.1:8b/1")
	expect(t, place(t, turn, node("alpha"), node("beta", "other", "chat")), "start alpha llama3.1:8b/1") // one slot keeps one context
	// two conversations over one slot are not interleaved
	both := append(tasks(1, small.Name, 2*time.Second), tasks(1, small.Name, 0)...)
	both[0].Key, both[0].Affinity, both[1].Affinity = "other/1", "other", "chat"
	both[0].Work, both[1].Work = turn[0].Work, turn[0].Work
	expect(t, place(t, both, node("alpha", "chat")), "start alpha llama3.1:8b/1", "wait slot other/1")
}

func TestTwoContextsShareNoPrompt(t *testing.T) {
	unknown := tasks(1, small.Name, 0)
	unknown[0].Affinity = "chat"
	n := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Hour))
	expect(t, place(t, unknown, n), "start alpha llama3.1:8b/1")
}

func TestCapsAndRatesHold(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	node.Slots = 8
	node = node.load(loadedAt(small, 8192, 8, 0, time.Hour))
	waiting := tasks(6, small.Name, 0)
	for i := range 5 {
		waiting[i].Resources = []string{"browser"}
	}
	waiting[4].Resources = []string{"host", "browser"}
	s := Snapshot{Now: noon, Nodes: []Node{node}, Waiting: waiting, Resources: map[string]Resource{
		"browser": {Cap: 3, InUse: 1}, "host": {Rate: 0.5, Tokens: 0.25, Behind: 40}}}
	plan := Place(s, Limits{})
	expect(t, plan, "start alpha llama3.1:8b/1", "start alpha llama3.1:8b/2", "start alpha llama3.1:8b/6",
		"wait cap llama3.1:8b/3", "wait cap llama3.1:8b/4", "wait rate llama3.1:8b/5")
	want := []Queue{{Resource: "browser", Cap: 3, InUse: 3, Waiting: 3}, {Resource: "host", Waiting: 41, Next: 1500 * time.Millisecond}}
	if diff := cmp.Diff(want, plan.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	s.Waiting, s.Resources["browser"] = waiting[4:5], Resource{Cap: 3}
	plan = Place(s, Limits{})
	expect(t, plan, "wait rate llama3.1:8b/5")
	if why := plan.Decisions[0].Why.Summary; why != "llama3.1:8b waits for host: 0.5 a second, the next one in 2 s" {
		t.Error(why)
	}
	s.Resources["host"] = Resource{Rate: 0.5, Tokens: 1}
	expect(t, Place(s, Limits{}), "start alpha llama3.1:8b/5")
}

// Nothing holds a resource while it waits for another, and what waits for two is not passed for ever by what needs one.
func TestATaskOfTwoResourcesIsNotPassedForEver(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	node.Slots = 8
	node = node.load(loadedAt(small, 8192, 8, 0, time.Hour))
	both := tasks(1, small.Name, 10*time.Second)
	both[0].Key, both[0].Resources = "both", []string{"a", "b"}
	one := tasks(1, small.Name, 0)
	one[0].Key, one[0].Resources = "one", []string{"a"}
	s := Snapshot{Now: noon, Nodes: []Node{node}, Waiting: append(both, one...), Resources: map[string]Resource{"a": {Cap: 1}, "b": {Cap: 1, InUse: 1}}}
	expect(t, Place(s, Limits{}), "start alpha one", "wait cap both")
	s.Waiting[0].Ready = noon.Add(-time.Minute)
	plan := Place(s, Limits{})
	expect(t, plan, "wait cap both", "wait cap one")
	if why := plan.Decisions[1].Why.Summary; !strings.Contains(why, "kept for a task that has waited longer") {
		t.Error(why)
	}
	s.Resources["b"] = Resource{Cap: 1}
	expect(t, Place(s, Limits{}), "start alpha both", "wait cap one")
}

// A model is not loaded for tasks that a resource would not let start.
func TestNoLoadForWhatAResourceHolds(t *testing.T) {
	waiting := tasks(1, small.Name, 0)
	waiting[0].Resources = []string{"browser"}
	s := Snapshot{Now: noon, Nodes: []Node{gpuNode("alpha", 24, 23.5, small)}, Waiting: waiting, Resources: map[string]Resource{"browser": {Cap: 1, InUse: 1}}}
	expect(t, Place(s, Limits{}), "wait cap llama3.1:8b/1")
	s.Resources["browser"] = Resource{Cap: 1}
	expect(t, Place(s, Limits{}), "load alpha llama3.1:8b", "wait load llama3.1:8b/1")
}

func prioritised(list []Task, run string, p Priority) []Task {
	for i := range list {
		list[i].Run, list[i].Priority, list[i].Key = run, p, fmt.Sprint(run, i+1)
	}
	return list
}

func TestInteractiveGoesBeforeBatch(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big, middle)
	waiting := append(prioritised(tasks(2, big.Name, time.Minute), "batch", PriorityBatch), prioritised(tasks(1, big.Name, 0), "chat", PriorityInteractive)...)
	expect(t, place(t, waiting, node.load(loadedAt(big, 8192, 1, 0, time.Hour))), "start alpha chat1", "wait slot batch1", "wait slot batch2")
	// for another model, too: nothing new starts on the batch's, however many of its slots are free
	other := append(prioritised(tasks(3, big.Name, time.Minute), "batch", PriorityBatch), prioritised(tasks(1, middle.Name, 0), "chat", PriorityInteractive)...)
	node.Slots = 2
	roomy := gpuNode("alpha", 26, 25.5, big, middle)
	roomy.Slots = 2
	busy := roomy.load(loadedAt(big, 8192, 2, 1, time.Hour))
	expect(t, place(t, other, busy), "wait memory batch1", "wait memory batch2", "wait memory batch3", "wait memory chat1")
	idle := roomy.load(loadedAt(big, 8192, 2, 0, time.Hour))
	expect(t, place(t, other, idle), "unload alpha qwen2.5:32b", "wait memory batch1", "wait memory batch2", "wait memory batch3", "wait load chat1")
	// but what was just loaded keeps the node for twice the time that its load takes
	young := roomy.load(loadedAt(big, 8192, 2, 0, 30*time.Second))
	if got := actions(place(t, other, young)); got[0] != "start alpha batch1" {
		t.Errorf("within the residency: %v", got)
	}
}

func TestANeglectedRunGetsATurn(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Hour))
	waiting := append(prioritised(tasks(2, small.Name, 5*time.Minute), "batch", PriorityBatch), prioritised(tasks(2, small.Name, 0), "chat", PriorityInteractive)...)
	s := Snapshot{Now: noon, Nodes: []Node{node}, Waiting: waiting, Received: map[string]time.Duration{"chat": 4 * time.Minute}}
	expect(t, Place(s, Limits{}), "start alpha batch1", "wait slot batch2", "wait slot chat1", "wait slot chat2")
	s.Received["batch"] = 10 * time.Second
	expect(t, Place(s, Limits{}), "start alpha chat1", "wait slot batch1", "wait slot batch2", "wait slot chat2")
}

func TestAHugeBatchNeverBlocksASmallRun(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	node.Slots = 4
	node = node.load(loadedAt(small, 8192, 4, 2, time.Hour))
	waiting := append(prioritised(tasks(2000, small.Name, time.Hour), "huge", 0), prioritised(tasks(2, small.Name, 0), "small", 0)...)
	s := Snapshot{Now: noon, Nodes: []Node{node}, Waiting: waiting, Received: map[string]time.Duration{"huge": 10 * time.Minute}}
	if got := actions(Place(s, Limits{})); !slices.Equal(got[:2], []string{"start alpha small1", "start alpha small2"}) {
		t.Errorf("%v", got[:2])
	}
	// a run that is worth ten times as much takes ten times as much
	for i := range waiting[:2000] {
		s.Waiting[i].Weight = 100
	}
	s.Received = map[string]time.Duration{"huge": 10 * time.Minute, "small": 2 * time.Minute}
	if got := actions(Place(s, Limits{})); got[0] != "start alpha huge1" {
		t.Errorf("by weight: %v", got[:2])
	}
	// without any record the calls that run count
	s.Received, s.Nodes[0].Loaded[0].Calls = nil, []Call{{Run: "huge", Since: noon, Work: Work{Prompt: 9000, Output: 9000}}, {Run: "huge", Since: noon, Work: Work{Prompt: 9000, Output: 9000}}}
	for i := range s.Waiting {
		s.Waiting[i].Weight = 0
	}
	if got := actions(Place(s, Limits{})); !slices.Equal(got[:2], []string{"start alpha small1", "start alpha small2"}) {
		t.Errorf("by what runs: %v", got[:2])
	}
}

func TestShortCallsGoFirstAndLongOnesDoNotStarve(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small).paced(small, 5, 1e6, 10).load(loadedAt(small, 8192, 1, 0, time.Hour))
	waiting := append(sized(tasks(1, small.Name, 20*time.Second), 1, 300), sized(tasks(1, small.Name, 0), 1, 50)...)
	waiting[0].Key = "long"
	expect(t, place(t, waiting, node), "start alpha llama3.1:8b/1", "wait slot long")
	waiting[0].Ready = noon.Add(-time.Minute) // and no queue explains that
	if got := actions(place(t, waiting, node)); got[0] != "start alpha long" {
		t.Errorf("beyond the bound: %v", got)
	}
}

func TestPinnedModelsAreLoadedAndStay(t *testing.T) {
	pins := Limits{Pins: map[string][]string{"qwen2.5:32b": {"alpha"}}, Contexts: map[string]int{"qwen2.5:32b": 4096}}
	empty := func() Node { return gpuNode("alpha", 24, 23.5, big, middle) }
	plan := Place(Snapshot{Now: noon, Nodes: []Node{empty()}, Waiting: tasks(1, middle.Name, 0)}, pins)
	expect(t, plan, "load alpha qwen2.5:32b", "wait load qwen2.5:14b/1")
	if plan.Decisions[0].Context != 4096 {
		t.Errorf("loaded at %d tokens", plan.Decisions[0].Context)
	}
	there := empty().load(loadedAt(big, 4096, 1, 0, time.Hour))
	plan = Place(Snapshot{Now: noon, Nodes: []Node{there}, Waiting: tasks(1, middle.Name, time.Hour)}, pins)
	expect(t, plan, "wait memory qwen2.5:14b/1")
	if why := plan.Decisions[0].Why.Summary; !strings.Contains(why, "while qwen2.5:32b is pinned") {
		t.Error(why)
	}
	there.Loaded[0].Pinned = true
	expect(t, place(t, tasks(1, middle.Name, time.Hour), there), "wait memory qwen2.5:14b/1")
	// what is idle makes room for it, what is in use does not
	idle := empty().load(loadedAt(middle, 8192, 1, 0, time.Hour))
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{idle}}, pins), "unload alpha qwen2.5:14b")
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{idle.busyFor(10)}}, pins))
}

// A person keeps a model on a machine and then asks for a longer context in the settings: the model must not wait for itself.
func TestAPinnedModelIsLoadedAnewAtAnotherContext(t *testing.T) {
	pins := Limits{Pins: map[string][]string{small.Name: {"alpha"}}, Contexts: map[string]int{small.Name: 16384}}
	waiting := tasks(1, small.Name, time.Second)
	waiting[0].Context = 16384
	node := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Hour))
	snapshot := Snapshot{Now: noon, Nodes: []Node{node}, Waiting: waiting}
	expect(t, Place(snapshot, pins), "unload alpha "+small.Name, "wait load "+small.Name+"/1")
	busy := snapshot
	busy.Nodes = []Node{node.busyFor(10)}
	if got := actions(Place(busy, pins)); slices.Contains(got, "unload alpha "+small.Name) {
		t.Errorf("while it works: %v", got)
	}
	gone := gpuNode("alpha", 24, 23.5, small)
	gone.RoomFor = waiting[0].Key
	plan := Place(Snapshot{Now: noon, Nodes: []Node{gone}, Waiting: waiting}, pins)
	if got := actions(plan); got[0] != "load alpha "+small.Name || plan.Decisions[0].Context != 16384 {
		t.Errorf("%v at %d tokens", got, plan.Decisions[0].Context)
	}
	// it makes room for itself alone
	both := gpuNode("alpha", 24, 23.5, small, big).load(loadedAt(small, 8192, 1, 0, time.Hour))
	for name, others := range map[string][]Task{"alone": nil, "beside calls at another context": waiting} {
		plan := Place(Snapshot{Now: noon, Nodes: []Node{both}, Waiting: append(slices.Clone(others), prioritised(tasks(1, big.Name, time.Hour), "chat", PriorityInteractive)...)}, pins)
		for _, d := range plan.Decisions {
			if d.Action == Unload && d.Task != "" && !strings.HasPrefix(d.Task, small.Name) {
				t.Errorf("%s: it goes for %s", name, d.Task)
			}
		}
	}
	if r := Fit(Snapshot{Now: noon, Nodes: []Node{node}}, FitQuestion{Model: small.Name, Context: 16384}, pins); r.Nodes[0].Verdict != FitEvict {
		t.Errorf("asked whether it fits: %+v", r.Nodes[0])
	}
	foreign := node
	foreign.Loaded = slices.Clone(node.Loaded)
	foreign.Loaded[0].Foreign = true
	if got := actions(Place(Snapshot{Now: noon, Nodes: []Node{foreign}, Waiting: waiting}, pins)); slices.Contains(got, "unload alpha "+small.Name) {
		t.Errorf("somebody else's: %v", got)
	}
}

// What somebody else loaded is not ours to unload: what does not fit beside it waits, or goes elsewhere.
func TestForeignModelsAreNeverUnloaded(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 0, 24*time.Hour))
	node.Loaded[0].Foreign = true
	plan := place(t, tasks(1, middle.Name, 24*time.Hour), node)
	expect(t, plan, "wait memory qwen2.5:14b/1")
	if why := plan.Decisions[0].Why.Summary; !strings.Contains(why, "8.9 GiB short while qwen2.5:32b is not ours to unload") {
		t.Error(why)
	}
	expect(t, place(t, tasks(1, middle.Name, 0), node, gpuNode("beta", 12, 11.5, middle)), "load beta qwen2.5:14b", "wait load qwen2.5:14b/1")
	expect(t, place(t, tasks(1, big.Name, 0), node), "start alpha qwen2.5:32b/1") // but we may use it
}

func TestAPausedNodeFreesItsCard(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small, middle).load(loadedAt(small, 8192, 1, 0, time.Hour)).load(loadedAt(middle, 8192, 1, 1, time.Hour))
	node.State = NodePaused
	expect(t, place(t, tasks(1, small.Name, 0), node), "unload alpha llama3.1:8b", "wait node llama3.1:8b/1")
	node.Loaded[0].Foreign = true
	expect(t, place(t, nil, node))
}

func TestIdleModelsGo(t *testing.T) {
	limits := Limits{IdleUnload: 5 * time.Minute}
	node := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Hour)) // used half an hour ago
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{node}}, limits), "unload alpha llama3.1:8b")
	node.Loaded[0].LastUsed = noon.Add(-4 * time.Minute)
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{node}}, limits))
	node.Loaded[0].LastUsed = time.Time{} // just loaded, and not used yet
	node.Loaded[0].Since = noon.Add(-time.Minute)
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{node}}, limits))
	node.Loaded[0].Since = time.Time{}
	node.Loaded[0].Foreign = true
	expect(t, Place(Snapshot{Now: noon, Nodes: []Node{node}}, limits))
}

func TestACapOnTheCallsOfANode(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small, middle)
	node.Slots, node.MaxCalls = 2, 2
	node = node.load(loadedAt(small, 8192, 2, 1, time.Hour)).load(loadedAt(middle, 8192, 2, 0, time.Hour))
	plan := place(t, append(tasks(1, small.Name, time.Second), tasks(1, middle.Name, 0)...), node)
	expect(t, plan, "start alpha llama3.1:8b/1", "wait slot qwen2.5:14b/1")
	if why := plan.Decisions[1].Why.Nodes[0].Why(); why != "loaded, and the machine runs 2 of 2 calls" {
		t.Error(why)
	}
}

// What is unloaded first: little demand, quickly loaded again, large.
func TestTheLeastValuableGoesFirst(t *testing.T) {
	a, b := model("slow-to-load:8b", llama8b), model("quick:8b", llama8b)
	node := gpuNode("alpha", 16, 15.5, a, b, middle).paced(a, 60, 1000, 50).paced(b, 5, 1000, 50).
		load(loadedAt(a, 8192, 1, 0, time.Hour)).load(loadedAt(b, 8192, 1, 0, time.Hour))
	other := model("other:8b", llama8b)
	node.Models = append(node.Models, other)
	expect(t, place(t, tasks(1, other.Name, 0), node), "unload alpha quick:8b", "wait load other:8b/1")
	node.Loaded[0].LastUsed = noon.Add(-100 * time.Hour) // nobody has wanted it for days
	expect(t, place(t, tasks(1, other.Name, 0), node), "unload alpha slow-to-load:8b", "wait load other:8b/1")
}

// A speed that was measured on one node says something of another.
func TestUnknownSpeedsAreGuessedFromKnownOnes(t *testing.T) {
	known := gpuNode("alpha", 24, 23.5, small, middle).paced(small, 5, 2000, 100)
	p := new(Planner)
	s := Snapshot{Now: noon, Nodes: []Node{known, hostNode("beta", 64, 60, small), gpuNode("gamma", 24, 23.5, small)}, Waiting: tasks(1, small.Name, 0)}
	p.begin(&s, Limits{})
	var rates []float64
	for i := range p.groups[0].sites {
		rates = append(rates, 1e9/p.groups[0].sites[i].pace.output)
	}
	if len(rates) != 3 || rates[0] != 100 || rates[2] != 100 || rates[1] >= 30 || rates[1] <= 5 {
		t.Errorf("tokens a second on a card, a CPU and another card: %v", rates)
	}
	other := p.paceOf(p.hosts[0], middle.Digest, middle.Shape, middle.FileBytes, middle.FileBytes) // 14B on a card that does 100 a second with 8B
	if rate := 1e9 / other.output; rate < 45 || rate > 65 {
		t.Errorf("guessed %v tokens a second", rate)
	}
}

// Figures that make no sense lead to no panic and no sum that runs over.
func TestSenselessFiguresBreakNothing(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small, middle).paced(small, 1<<40, 1e-300, 1e-300).load(loadedAt(small, 8192, 1, 1, time.Hour))
	node.Speeds[middle.Digest] = Speed{Prompt: math.NaN(), Decode: math.Inf(1)}
	node.LoadRate = 1e-300
	other := gpuNode("beta", 24, 23.5, small, middle).paced(small, -4, -1, -1)
	waiting := append(sized(tasks(900, small.Name, 1<<62), math.MaxInt, math.MaxInt), sized(tasks(900, middle.Name, -time.Hour), -5, math.MinInt)...)
	plan := place(t, waiting, node, other)
	if n := len(plan.Decisions); n != 1801 || plan.Decisions[0].Action != Load {
		t.Errorf("%d decisions, the first %v", n, actions(plan)[0])
	}
	for _, d := range plan.Decisions {
		for _, v := range d.Why.Nodes {
			if v.Expect.Finish() < 0 {
				t.Fatalf("%s would end at %s", d.Task, v.Expect.Finish())
			}
		}
	}
}

// Nor does a report of millions of slots or calls cost a plan time or memory.
func TestAbsurdNumbersOfCallsAreBounded(t *testing.T) {
	for _, n := range []int{20_000_000, math.MaxInt, -20_000_000} {
		node := gpuNode("alpha", 24, 23.5, small, middle).load(loadedAt(small, 8192, 1, 1, time.Hour))
		node.Slots, node.MaxCalls, node.Loaded[0].Busy = n, n, n
		other := gpuNode("beta", 24, 23.5, small, middle)
		other.Slots = n
		p := new(Planner)
		s := Snapshot{Now: noon, Nodes: []Node{node, other}, Waiting: append(tasks(100, small.Name, time.Hour), tasks(100, middle.Name, time.Hour)...)}
		if plan := p.Place(s, Limits{}); len(plan.Decisions) < 200 || cap(p.ends) > 10*mostAtOnce {
			t.Errorf("%d: %d decisions, room for the ends of %d calls", n, len(plan.Decisions), cap(p.ends))
		}
	}
}
