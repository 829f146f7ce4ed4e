package scheduler

import (
	"strings"
	"testing"
	"time"
)

// A model that is in use keeps its node through the moments in which it is idle, for some time.
func TestAModelInUseKeepsItsNodeForAWhile(t *testing.T) {
	node := func(since, idle time.Duration) Node {
		n := gpuNode("alpha", 24, 23.5, big, middle).paced(big, 4, 1000, 50).paced(middle, 4, 1000, 50).load(loadedAt(big, 8192, 1, 0, since))
		n.Loaded[0].LastUsed = noon.Add(-idle)
		return n
	}
	short := sized(tasks(2, middle.Name, 10*time.Second), 100, 50)
	const waits, unloads = "wait memory qwen2.5:14b/1", "unload alpha qwen2.5:32b"
	for name, c := range map[string]struct {
		node    Node
		waiting []Task
		want    string
	}{
		"used a moment ago":         {node(10*time.Second, 2*time.Second), short, waits},
		"not for five seconds":      {node(10*time.Second, 5*time.Second), short, unloads},
		"loaded twenty seconds ago": {node(20*time.Second, 2*time.Second), short, unloads},
		"loaded, and not used yet":  {node(2*time.Second, time.Hour), short, waits},
		"enough work waits":         {node(10*time.Second, 2*time.Second), sized(tasks(2, middle.Name, 10*time.Second), 100, 300), unloads},
		"interactive":               {node(10*time.Second, 2*time.Second), prioritised(sized(tasks(1, middle.Name, time.Second), 100, 50), "chat", PriorityInteractive), unloads},
		"beyond the bound":          {node(10*time.Second, 2*time.Second), sized(tasks(2, middle.Name, time.Minute), 100, 50), unloads},
		"a clock that was set back": {node(-time.Hour, -time.Hour), short, unloads},
	} {
		plan := place(t, c.waiting, c.node)
		got := actions(plan)[0]
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if why := plan.Decisions[0].Why.String(); (got == waits) != strings.Contains(why, "used just now") {
			t.Errorf("%s: %s", name, why)
		}
	}
	slow := node(30*time.Second, 10*time.Second)
	slow.Speeds = nil
	expect(t, place(t, short[:1], slow.paced(big, 30, 1000, 50)), waits) // a swap costs more there
	// meanwhile it takes what comes, and elsewhere nothing holds
	mixed := append(sized(tasks(1, big.Name, 0), 100, 50), short...)
	expect(t, place(t, mixed, node(10*time.Second, 2*time.Second)), "start alpha qwen2.5:32b/1", waits, "wait memory qwen2.5:14b/2")
	if got := actions(place(t, short, node(10*time.Second, 2*time.Second), gpuNode("beta", 12, 11.5, middle).paced(middle, 4, 1000, 50))); got[0] != "load beta qwen2.5:14b" {
		t.Errorf("beside a free node: %v", got)
	}
}

// What has not had its time goes last, so that more free memory never makes it the one in the way.
func TestWhatIsInUseGoesLast(t *testing.T) {
	a, b, c := model("used:8b", llama8b), model("idle:8b", llama8b), model("next:8b", llama8b)
	node := gpuNode("alpha", 16, 15.5, a, b, c).paced(a, 1, 1000, 50).paced(b, 60, 1000, 50).
		load(loadedAt(a, 8192, 1, 0, 10*time.Second)).load(loadedAt(b, 8192, 1, 0, time.Hour))
	node.Loaded[0].LastUsed = noon.Add(-time.Second)
	expect(t, place(t, tasks(1, c.Name, 0), node), "unload alpha idle:8b", "wait load next:8b/1")
}

// A model at another context is in the way of itself alone: nobody can use it, so it is loaded anew at once. Ollama keeps one of a model.
func TestAModelDoesNotHoldItsNodeAgainstItself(t *testing.T) {
	node := gpuNode("alpha", 24, 23.5, small).paced(small, 4, 1000, 50).load(loadedAt(small, 4096, 1, 0, time.Second))
	node.Loaded[0].LastUsed = noon.Add(-time.Second)
	expect(t, place(t, sized(tasks(2, small.Name, time.Second), 100, 50), node), "unload alpha llama3.1:8b", "wait load llama3.1:8b/1", "wait load llama3.1:8b/2")
}
