package scheduler

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt; commit a change only when you can explain it")

var (
	small  = model("llama3.1:8b", llama8b)
	middle = model("qwen2.5:14b", qwen14b)
	big    = model("qwen2.5:32b", qwen32b)
	huge   = model("llama3.3:70b", llama70b)
)

func place(t *testing.T, waiting []Task, nodes ...Node) Plan {
	t.Helper()
	return Place(Snapshot{Now: noon, Nodes: nodes, Waiting: waiting}, Limits{})
}

func expect(t *testing.T, plan Plan, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, actions(plan)); diff != "" {
		t.Errorf("plan (-want +got):\n%s\n%s", diff, transcript(plan))
	}
}

func TestLoadsOnFreeMemoryAndStartsWhenLoaded(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), node), "load alpha llama3.1:8b", "wait load llama3.1:8b/1")
	expect(t, place(t, tasks(2, "llama3.1:8b", 0), node.load(loadedAt(small, 8192, 1, 0, time.Minute))),
		"start alpha llama3.1:8b/1", "wait slot llama3.1:8b/2")
}

func TestTwoIdleMachinesAreBothUsed(t *testing.T) {
	batch := tasks(40, "llama3.1:8b", 0)
	a, b := gpuNode("alpha", 24, 23.5, small), gpuNode("beta", 24, 23.5, small)
	got := actions(place(t, batch, a, b))
	if !slices.Contains(got, "load alpha llama3.1:8b") || !slices.Contains(got, "load beta llama3.1:8b") {
		t.Errorf("with nothing loaded: %v", got[:3])
	}
	got = actions(place(t, batch, a.load(loadedAt(small, 8192, 1, 1, time.Minute)), b))
	if got[0] != "load beta llama3.1:8b" {
		t.Errorf("with one busy copy: %v", got[:3])
	}
	one := actions(place(t, batch[:1], a, b))
	if want := []string{"load alpha llama3.1:8b", "wait load llama3.1:8b/1"}; !slices.Equal(one, want) {
		t.Errorf("one task needs one copy: %v", one)
	}
}

func TestStartsOnTheLeastBusyForItsSlots(t *testing.T) {
	a, b := gpuNode("alpha", 24, 23.5, small), gpuNode("beta", 24, 23.5, small)
	a.Slots, b.Slots = 2, 4
	a, b = a.load(loadedAt(small, 8192, 2, 1, time.Minute)), b.load(loadedAt(small, 8192, 4, 1, time.Minute))
	expect(t, place(t, tasks(4, "llama3.1:8b", 0), a, b),
		"start beta llama3.1:8b/1", "start alpha llama3.1:8b/2", "start beta llama3.1:8b/3", "start beta llama3.1:8b/4")
}

// A model whose memory Ollama shows a fraction of (ollama#17251) is unloaded all the same when another needs the room.
func TestUnloadsAModelThatIsShownTooSmall(t *testing.T) {
	node := hostNode("alpha", 14, 13, small, middle).load(loadedAt(small, 8192, 1, 0, time.Minute))
	node.Loaded[0].SizeBytes, node.Loaded[0].VRAMBytes = node.Loaded[0].SizeBytes*12/90, 0
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), node), "unload alpha llama3.1:8b", "wait load qwen2.5:14b/1")
}

// A model that unloads leave in memory is not asked to go again before its pause is over; after several it counts as a part of
// the machine until then, and what needs its room goes elsewhere or waits. Nothing is refused for it.
func TestAModelThatDoesNotLeave(t *testing.T) {
	node := func(times int, retry time.Duration) Node {
		n := hostNode("alpha", 14, 13, small, middle).load(loadedAt(small, 8192, 1, 0, time.Hour))
		n.Loaded[0].Stuck, n.Loaded[0].Retry = times, noon.Add(retry)
		return n
	}
	waiting := tasks(1, "qwen2.5:14b", 10*time.Minute)
	expect(t, place(t, waiting, node(1, time.Second)), "wait memory qwen2.5:14b/1")
	expect(t, place(t, waiting, node(1, 0)), "unload alpha llama3.1:8b", "wait load qwen2.5:14b/1")
	plan := place(t, waiting, node(3, time.Minute))
	expect(t, plan, "wait memory qwen2.5:14b/1")
	if why := plan.Decisions[0].Why.Summary; !strings.HasPrefix(why, "qwen2.5:14b waits for memory: an unload on alpha is stuck (its Ollama keeps llama3.1:8b in memory, which 3 unloads did not remove, tried again in 61 s") {
		t.Error(why)
	}
	if ok, why := Admit(Snapshot{Now: noon, Nodes: []Node{node(3, time.Minute)}}, "qwen2.5:14b", 8192, Limits{}); !ok || why.Wait != WaitMemory {
		t.Errorf("a new run: %v, %+v", ok, why)
	}
	if ok, why := Admit(Snapshot{Now: noon, Nodes: []Node{node(3, time.Minute)}}, "qwen2.5:14b", 32768, Limits{}); ok || why.Wait != "" {
		t.Errorf("one that is too large for the empty machine: %v, %+v", ok, why)
	}
	expect(t, place(t, waiting, node(3, 0)), "unload alpha llama3.1:8b", "wait load qwen2.5:14b/1")
	expect(t, place(t, waiting, node(3, time.Minute), gpuNode("beta", 24, 23.5, middle)), "load beta qwen2.5:14b", "wait load qwen2.5:14b/1")
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), node(3, time.Minute)), "start alpha llama3.1:8b/1")
}

func TestPreferredNodeBreaksATie(t *testing.T) {
	a, b := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, 0)), gpuNode("beta", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, 0))
	task := tasks(1, "llama3.1:8b", 0)
	task[0].Prefer = "beta"
	expect(t, place(t, task, a, b), "start beta llama3.1:8b/1")
}

func TestAvoidedNodeIsTheLastResort(t *testing.T) {
	a, b := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, 0)), gpuNode("beta", 24, 23.5, small)
	task := tasks(1, "llama3.1:8b", 0)
	task[0].Avoid = []string{"alpha"}
	expect(t, place(t, task, a, b), "load beta llama3.1:8b", "wait load llama3.1:8b/1")
	expect(t, place(t, task, a), "start alpha llama3.1:8b/1")
	b.State = NodeLost
	expect(t, place(t, task, a, b), "start alpha llama3.1:8b/1")
}

func TestPinnedTaskGoesBackToItsNode(t *testing.T) {
	a, b := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, 0)), gpuNode("beta", 24, 23.5, small).load(loadedAt(small, 8192, 1, 1, 0))
	task := tasks(1, "llama3.1:8b", 0)
	task[0].Pinned = "beta"
	expect(t, place(t, task, a, b), "start beta llama3.1:8b/1")
	b.State = NodeDraining
	expect(t, place(t, task, a, b), "start beta llama3.1:8b/1")
	b.State = NodeLost
	expect(t, place(t, task, a, b), "wait node llama3.1:8b/1")
	expect(t, place(t, task, a), "wait node llama3.1:8b/1")
}

func TestOnlyNodesThatAreUpTakeWork(t *testing.T) {
	for _, state := range []NodeState{NodeLost, NodeDraining, NodeDegraded, "asleep"} {
		node := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, 0))
		node.State = state
		expect(t, place(t, tasks(1, "llama3.1:8b", 0), node), "wait node llama3.1:8b/1")
	}
}

func TestAnIdleModelMakesRoom(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 0, time.Minute))
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), node), "unload alpha qwen2.5:32b", "wait load qwen2.5:14b/1")
	node.Loaded[0].Leaving = true
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), node), "wait load qwen2.5:14b/1")
	node.Loaded, node.Pools[1].Free = nil, known(23.5)
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0), node), "load alpha qwen2.5:14b", "wait load qwen2.5:14b/1")
}

// llama-swap issue 19: a swap kills calls in flight.
func TestABusyModelIsNeverEvicted(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 1, 24*time.Hour))
	expect(t, place(t, tasks(1, "qwen2.5:14b", 12*time.Hour), node), "wait memory qwen2.5:14b/1")
}

func TestTheSmallestSufficientSetGoes(t *testing.T) {
	embedder := model("embedder:latest", Shape{Architecture: "bert", WeightBytes: 2 * giB, Layers: 12, EmbeddingLength: 768, Heads: 12})
	node := gpuNode("alpha", 24, 23.5, small, middle, embedder).
		load(loadedAt(embedder, 8192, 1, 0, 4*time.Hour)).load(loadedAt(small, 8192, 1, 0, 2*time.Hour)).load(loadedAt(middle, 8192, 1, 1, time.Hour))
	node.Models = append(node.Models, model("other:8b", llama8b))
	expect(t, place(t, tasks(1, "other:8b", 0), node), "unload alpha llama3.1:8b", "wait load other:8b/1")
}

// ollama#12948-like thrash: two wanted models on one card must not evict each other before each had its time.
func TestAWantedModelKeepsTheNodeForTheBound(t *testing.T) {
	waiting := func(age time.Duration) []Task {
		return append(tasks(1, "qwen2.5:14b", age), tasks(2, "qwen2.5:32b", 0)...)
	}
	node := func(resident time.Duration) Node {
		return gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 0, resident))
	}
	hot := []string{"start alpha qwen2.5:32b/1", "wait memory qwen2.5:14b/1", "wait slot qwen2.5:32b/2"}
	expect(t, place(t, waiting(50*time.Second), node(time.Hour)), hot...)
	expect(t, place(t, waiting(time.Hour), node(30*time.Second)), hot...)
	expect(t, place(t, waiting(2*time.Minute), node(2*time.Minute)),
		"unload alpha qwen2.5:32b", "wait load qwen2.5:14b/1", "wait memory qwen2.5:32b/1", "wait memory qwen2.5:32b/2")
}

func TestAnotherContextIsAReload(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Minute))
	task := tasks(1, "llama3.1:8b", 0)
	task[0].Context = 4096
	expect(t, place(t, task, node), "unload alpha llama3.1:8b", "wait load llama3.1:8b/1")
	node.Loaded[0].Busy = 1
	expect(t, place(t, task, node), "wait load llama3.1:8b/1")
}

func TestOneLoadInFlightPerNode(t *testing.T) {
	node := gpuNode("alpha", 96, 95, small, middle)
	plan := place(t, append(tasks(1, "llama3.1:8b", 0), tasks(1, "qwen2.5:14b", 0)...), node)
	expect(t, plan, "load alpha llama3.1:8b", "wait load llama3.1:8b/1", "wait load qwen2.5:14b/1")
}

func TestEmbeddingModels(t *testing.T) {
	embedder := model("nomic-embed-text:latest", Shape{Architecture: "nomic-bert", WeightBytes: giB / 4, Layers: 12, EmbeddingLength: 768, Heads: 12, ContextLength: 2048})
	embedder.Embedding = true
	node := gpuNode("alpha", 24, 23.5, embedder)
	node.Slots = 4
	node = node.load(loadedAt(embedder, 2048, 1, 0, 0))
	embed := tasks(2, "nomic-embed-text", 0)
	embed[0].Embed, embed[1].Embed = true, true
	expect(t, place(t, embed, node), "start alpha nomic-embed-text/1", "wait slot nomic-embed-text/2")
	expect(t, place(t, tasks(1, "nomic-embed-text", 0), node), "impossible nomic-embed-text/1")
}

func TestASpilledModelIsNotTriedAgainAtOnce(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small)
	node.Avoid = map[string]time.Time{small.Digest: noon.Add(time.Minute)}
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), node), "wait node llama3.1:8b/1")
	node.Avoid[small.Digest] = noon
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), node), "load alpha llama3.1:8b", "wait load llama3.1:8b/1")
	spilled := node.load(loadedAt(huge, 8192, 1, 0, 0))
	spilled.Models, spilled.Loaded[0].VRAMBytes = append(spilled.Models, huge), 20*giB
	expect(t, place(t, tasks(1, "llama3.3:70b", 0), spilled), "impossible llama3.3:70b/1")
}

// Ollama 0.30 evicts on its own account when its prediction exceeds 80 % of what is free; 0.17 does not.
func TestTheEightyPercentRule(t *testing.T) {
	for version, want := range map[string]string{"0.17.4": "load alpha qwen2.5:32b", "0.31.0": "unload alpha qwen2.5:14b"} {
		node := gpuNode("alpha", 34, 33.5, big, middle).load(loadedAt(middle, 8192, 1, 0, time.Hour))
		node.OllamaVersion = version
		if got := actions(place(t, tasks(1, "qwen2.5:32b", 0), node)); got[0] != want {
			t.Errorf("%s: %v, want first %q", version, got, want)
		}
	}
	alone := gpuNode("alpha", 24, 23, big)
	alone.OllamaVersion = "0.31.0"
	expect(t, place(t, tasks(1, "qwen2.5:32b", 0), alone), "load alpha qwen2.5:32b", "wait load qwen2.5:32b/1")
}

func TestTranscripts(t *testing.T) {
	lost := gpuNode("gamma", 48, 47, huge)
	lost.State, lost.LastSeen = NodeLost, noon.Add(-10*time.Minute)
	blind := gpuNode("delta", 24, 0, small)
	blind.Pools[1].Free = Bytes{}
	for name, s := range map[string]Snapshot{
		"too-large":      {Nodes: []Node{gpuNode("alpha", 24, 23.5, huge), gpuNode("beta", 12, 11.5, small)}, Waiting: tasks(1, "llama3.3:70b", 0)},
		"lost-node":      {Nodes: []Node{gpuNode("alpha", 24, 23.5, small), lost}, Waiting: tasks(1, "llama3.3:70b", 0)},
		"not-pulled":     {Nodes: []Node{gpuNode("alpha", 24, 23.5, small), gpuNode("beta", 12, 11.5)}, Waiting: tasks(1, "qwen3:8b", 0)},
		"unknown-memory": {Nodes: []Node{blind}, Waiting: tasks(1, "llama3.1:8b", 0)},
		"no-machine":     {Waiting: tasks(1, "llama3.1:8b", 0)},
		"busy": {
			Nodes:   []Node{gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 1, time.Hour)), gpuNode("beta", 8, 7.5, middle)},
			Waiting: append(tasks(1, "qwen2.5:14b", 0), tasks(1, "qwen2.5:32b", 0)...),
		},
		"evict": {
			Nodes: []Node{gpuNode("alpha", 24, 23.5, big, middle).load(loadedAt(big, 8192, 1, 0, time.Hour))}, Waiting: tasks(1, "qwen2.5:14b", 0),
		},
		"batch": {
			Nodes:   []Node{gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Hour)), gpuNode("beta", 24, 23.5, small)},
			Waiting: tasks(3, "llama3.1:8b", 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.Now = noon
			golden(t, name, transcript(Place(s, Limits{})))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFurtherCopyEvictsOnlyForALongQueue(t *testing.T) {
	a := gpuNode("alpha", 24, 23.5, small).load(loadedAt(small, 8192, 1, 1, time.Hour))
	b := gpuNode("beta", 24, 23.5, small, big).load(loadedAt(big, 8192, 1, 0, time.Hour))
	expect(t, place(t, tasks(1, "llama3.1:8b", 0), a, b), "wait slot llama3.1:8b/1")
	expect(t, place(t, tasks(2, "llama3.1:8b", 0), a, b), "unload beta qwen2.5:32b", "wait load llama3.1:8b/1", "wait load llama3.1:8b/2")
}

func TestWhereALoadGoes(t *testing.T) {
	expect(t, place(t, tasks(1, "llama3.1:8b", 0),
		gpuNode("alpha", 24, 23.5, small, middle).load(loadedAt(middle, 8192, 1, 1, time.Hour)), gpuNode("beta", 24, 23.5, small)),
		"load beta llama3.1:8b", "wait load llama3.1:8b/1") // both have room, alpha is at work
	expect(t, place(t, tasks(1, "qwen2.5:14b", 0),
		gpuNode("alpha", 24, 23.5, middle, big).load(loadedAt(big, 8192, 1, 0, time.Hour)),
		gpuNode("beta", 12, 11.5, middle, small).load(loadedAt(small, 8192, 1, 0, time.Hour))),
		"unload beta llama3.1:8b", "wait load qwen2.5:14b/1") // the smaller loss
	a, b := gpuNode("alpha", 24, 23.5, small), gpuNode("beta", 24, 23.5, small)
	preferred := tasks(1, "llama3.1:8b", 0)
	preferred[0].Prefer = "beta"
	expect(t, place(t, preferred, a, b), "load beta llama3.1:8b", "wait load llama3.1:8b/1")
	// two tasks that look different do not count on the same slot of a load in flight
	a.Loading = &Claim{Digest: small.Digest, Name: small.Name, Context: 8192, Need: 7 * giB}
	two := tasks(2, "llama3.1:8b", 0)
	expect(t, place(t, two[:1], a, b), "wait load llama3.1:8b/1")
	two[1].Prefer = "beta"
	expect(t, place(t, two, a, b), "load beta llama3.1:8b", "wait load llama3.1:8b/1", "wait load llama3.1:8b/2")
}

func TestAFirstCopyComesBeforeAFurtherOne(t *testing.T) {
	a := gpuNode("alpha", 8, 7.5, small).load(loadedAt(small, 8192, 1, 1, time.Hour))
	b := gpuNode("beta", 24, 23.5, small, big)
	plan := place(t, append(tasks(2, "llama3.1:8b", 30*time.Second), tasks(1, "qwen2.5:32b", 0)...), a, b)
	expect(t, plan, "load beta qwen2.5:32b", "wait slot llama3.1:8b/1", "wait slot llama3.1:8b/2", "wait load qwen2.5:32b/1")
}

func TestRoomStaysWithTheTaskItWasMadeFor(t *testing.T) {
	waiting := append(tasks(1, "qwen2.5:32b", 30*time.Second), tasks(1, "qwen2.5:14b", 0)...)
	node := gpuNode("alpha", 24, 23.5, big, middle)
	node.RoomFor = "qwen2.5:14b/1"
	expect(t, place(t, waiting, node), "load alpha qwen2.5:14b", "wait load qwen2.5:32b/1", "wait load qwen2.5:14b/1")
	node.RoomFor = "qwen2.5:32b/1"
	node.Pools[1].Free = known(15) // a game took what was made free: nobody else waits for that
	expect(t, place(t, waiting, node), "load alpha qwen2.5:14b", "wait load qwen2.5:32b/1", "wait load qwen2.5:14b/1")
}
