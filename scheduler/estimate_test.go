package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What one machine was measured at is expected of another, each figure alone: short prompts never tell how fast a machine reads, and
// models that write thousands of tokens a second tell no rate at all. Else the second machine would be loaded and stay empty.
func TestWhatAMachineIsNotKnownForIsExpectedAsElsewhere(t *testing.T) {
	node := func(id string, v Speed) Node {
		n := gpuNode(id, 24, 23.5, small).load(loadedAt(small, 8192, 1, 0, time.Minute))
		n.Speeds = map[string]Speed{small.Digest: v}
		return n
	}
	for name, c := range map[string]struct {
		known  Speed
		prompt int
		output int
	}{
		"short prompts": {Speed{Decode: 200, Service: 60 * time.Millisecond}, 20, 10},
		"fast answers":  {Speed{Prompt: 4000, Service: 60 * time.Millisecond}, 100, 300},
		"service alone": {Speed{Service: 60 * time.Millisecond}, 20, 10},
		"of no size":    {Speed{Service: 60 * time.Millisecond}, 0, 0},
		"both rates":    {Speed{Prompt: 4000, Decode: 6000, Service: 60 * time.Millisecond}, 100, 300},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := sized(tasks(2, small.Name, 0), c.prompt, c.output)
			expect(t, place(t, waiting, node("alpha", c.known), node("beta", Speed{})), "start alpha llama3.1:8b/1", "start beta llama3.1:8b/2")
		})
	}
}

// The kind of memory scales what is taken over; a machine of the same kind is believed first.
func TestWhatIsTakenOverIsScaledByTheKindOfMemory(t *testing.T) {
	known := Speed{Load: 9 * time.Second, Prompt: 4000, Decode: 100, Service: 3 * time.Second}
	card, host := gpuNode("alpha", 24, 23.5, small), hostNode("beta", 32, 30, small)
	card.Speeds = map[string]Speed{small.Digest: known}
	pace := func(nodes ...Node) pace {
		hosts := new(Planner)
		hosts.begin(&Snapshot{Now: noon, Nodes: nodes}, Limits{})
		h := hosts.hosts[len(nodes)-1]
		return hosts.paceOf(h, small.Digest, small.Shape, small.Shape.WeightBytes, small.FileBytes)
	}
	got := pace(card, host) // 400 and 60 GB/s
	if rate := float64(time.Second) / got.output; rate < 14.9 || rate > 15.1 || got.service != 20*time.Second || got.load != 9*time.Second || got.known || got.counted {
		t.Errorf("%.1f tokens per second, %+v", rate, got)
	}
	near := hostNode("alphb", 32, 30, small)
	near.Speeds = map[string]Speed{small.Digest: {Decode: 8}}
	got = pace(card, near, host)
	if rate := float64(time.Second) / got.output; rate < 7.9 || rate > 8.1 || got.service != 20*time.Second {
		t.Errorf("beside one of its kind: %.1f tokens per second, %+v", rate, got)
	}
}

// A batch of short calls is shared with a second machine where that pays: 12 seconds of work are worth a load of half a second, and
// not one of a minute.
func TestShortCallsAreSharedWhereItPays(t *testing.T) {
	node := func(id string, load time.Duration) Node {
		n := gpuNode(id, 24, 23.5, small)
		n.Speeds = map[string]Speed{small.Digest: {Load: load, Service: 40 * time.Millisecond}}
		return n
	}
	busy := node("alpha", 500*time.Millisecond).load(loadedAt(small, 8192, 1, 1, time.Minute))
	batch := sized(tasks(300, small.Name, time.Second), 20, 10)
	for name, c := range map[string]struct {
		second Node
		want   bool
	}{
		"never seen there":    {gpuNode("beta", 24, 23.5, small), true},
		"known to load fast":  {node("beta", 500*time.Millisecond), true},
		"known to load in 60": {node("beta", time.Minute), false},
	} {
		if got := actions(place(t, batch, busy, c.second)); slices.ContainsFunc(got, func(a string) bool { return strings.HasPrefix(a, "load beta") }) != c.want {
			t.Errorf("%s: %v", name, got[:2])
		}
	}
	if got := actions(place(t, batch[:10], busy, gpuNode("beta", 24, 23.5, small))); got[0] != "wait slot llama3.1:8b/1" {
		t.Errorf("half a second of work: %v", got[:1])
	}
}
