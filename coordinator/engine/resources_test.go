package engine

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// together counts how many calls of a farm run at once.
type together struct {
	mu        sync.Mutex
	now, most int
}

func (c *together) takes(time.Duration) func(Attempt) time.Duration {
	return func(Attempt) time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now++
		c.most = max(c.most, c.now)
		return time.Second
	}
}

func (c *together) answer(a Attempt) Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
	return value(a)
}

func TestACapHoldsOverTheWholeFleet(t *testing.T) {
	for name, c := range map[string]struct {
		uses      string
		resources map[string]Resource
		most      int
	}{
		"none":                {`[]`, nil, 8},
		"a resource":          {`["browser"]`, map[string]Resource{"browser": {Cap: 3}}, 3},
		"one without a limit": {`["other"]`, map[string]Resource{"browser": {Cap: 3}}, 8},
		"a model":             {`[]`, map[string]Resource{"model:small:8b": {Cap: 2}}, 2},
		"two, the smaller":    {`["browser", "db"]`, map[string]Resource{"browser": {Cap: 3}, "db": {Cap: 1}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items, uses: `+c.uses+` });`)
			synctest.Test(t, func(t *testing.T) {
				f, count := newFarm(2), &together{}
				f.takes, f.answer = count.takes(time.Second), count.answer
				r := newRig(t, f, Options{Resources: c.resources})
				if v := r.wait(r.submit(p, items(40))); v.Status != run.Completed {
					t.Fatalf("%+v", v)
				}
				if count.most != c.most {
					t.Errorf("%d at once, want %d", count.most, c.most)
				}
			})
		})
	}
}

// Ten a minute are ten in each minute, after a pause as many as the burst.
func TestARateSpreadsTheStarts(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items, uses: ["site"] });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		r := newRig(t, f, Options{Resources: map[string]Resource{"site": {Rate: 10.0 / 60, Burst: 4}}})
		id := r.submit(p, items(24))
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		var at []time.Time
		for _, ev := range r.events(id) {
			if _, ok := ev.Data.(*run.Placed); ok {
				at = append(at, ev.Time)
			}
		}
		if took := at[len(at)-1].Sub(at[0]); took < 119*time.Second || took > 125*time.Second { // 20 after the burst of 4
			t.Errorf("24 starts in %s", took)
		}
		for i := range len(at) - 14 {
			if d := at[i+14].Sub(at[i]); d < 59*time.Second {
				t.Errorf("14 starts after another in %s", d)
			}
		}
	})
}

// ollama#11889: a disconnect does not stop prompt processing. A cancelled call keeps its slot, and what else it holds, until its
// worker says that it has ended.
func TestACancelledCallHoldsItsSlotUntilItsWorkerConfirms(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items, uses: ["browser"] });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.deaf, f.takes = true, func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{Resources: map[string]Resource{"browser": {Cap: 4}}})
		first := r.submit(p, items(4))
		time.Sleep(10 * time.Second) // the load takes four
		if _, err := r.e.Cancel(t.Context(), first, "enough"); err != nil {
			t.Fatal(err)
		}
		second := r.submit(p, items(2))
		time.Sleep(10 * time.Second)
		snap, err := r.e.Snapshot(t.Context())
		if err != nil || snap.Nodes[0].Loaded[0].Busy != 4 || snap.Resources["browser"].InUse != 4 {
			t.Errorf("%+v, %+v, %v", snap.Nodes[0].Loaded, snap.Resources, err)
		}
		for _, a := range f.sent() {
			if a.RunID == second {
				t.Error("a call was sent to a slot that is still busy")
			}
		}
		if v := r.wait(second); v.Status != run.Completed {
			t.Errorf("%+v", v)
		}
	})
}

func TestRunsOfHigherPriorityGoFirst(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 10 * time.Second }
		r := newRig(t, f, Options{})
		submit := func(p2 run.Priority, n int) string {
			id, _, err := r.e.Submit(t.Context(), Submission{Workflow: string(p2), Program: p, Input: inputOf(n), Priority: p2})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		low := submit(run.Batch, 40)
		time.Sleep(time.Minute)
		r.e.Stop() // the priority is kept with the run
		r.start()
		high := submit(run.Interactive, 4)
		began := time.Now()
		if v := r.wait(high); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("four calls of a person took %s behind a batch", took)
		}
		if v := r.wait(low); v.Status != run.Completed {
			t.Errorf("%+v", v)
		}
	})
}

func TestTokensOfARate(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newResources(map[string]Resource{"site": {Rate: 0.5, Burst: 3}})
	var got []float64
	for range 4 {
		got = append(got, r.tokens("site", at))
		r.taken([]string{"site", "unknown"}, at)
	}
	got = append(got, r.tokens("site", at.Add(time.Second)), r.tokens("site", at.Add(time.Hour)))
	if want := []float64{3, 2, 1, 0, 0.5, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if next := r.next(at); next.Sub(at) < 2*time.Second || next.Sub(at) > 2*time.Second+10*time.Millisecond {
		t.Errorf("next in %s", next.Sub(at))
	}
	if s := r.snapshot(map[string]int{"site": 2}, map[string]int{"site": 9}, at)["site"]; s != (scheduler.Resource{InUse: 2, Rate: 0.5, Behind: 9}) {
		t.Errorf("%+v", s)
	}
	for _, c := range [][2]string{{"model:llama3", "llama3:latest"}, {"model:llama3:latest", "llama3"}} {
		if got := newResources(map[string]Resource{c[0]: {Cap: 1}}).of(nil, c[1]); fmt.Sprint(got) != "["+c[0]+"]" {
			t.Errorf("%s holds %v, want %s", c[1], got, c[0])
		}
	}
}

// What waits for a resource is counted in full: a placement is shown the first few hundred items of a step.
func TestAQueueCountsWhatAPlacementIsNotShown(t *testing.T) {
	p := program(t, `await all([
		batch({ model: "small:8b", prompt: "{{item}}", items: input.items, uses: ["site"] }),
		batch({ model: "small:8b", prompt: "{{item}}", items: ["a", "b"] })]);`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return time.Hour }
		r := newRig(t, f, Options{Resources: map[string]Resource{"site": {Cap: 2}, "model:small:8b": {Cap: 3}}})
		id := r.submit(p, items(900))
		time.Sleep(20 * time.Second)
		snap, err := r.e.Snapshot(t.Context())
		if err != nil || len(snap.Waiting) >= 900 {
			t.Fatalf("%d of 900 items are shown, %v", len(snap.Waiting), err)
		}
		got := map[string]int{}
		for _, q := range scheduler.Place(snap, scheduler.Limits{}).Queues {
			got[q.Resource] = q.InUse*10000 + q.Waiting
		}
		if want := map[string]int{"site": 10899, "model:small:8b": 30899}; !maps.Equal(got, want) {
			t.Errorf("calls that hold it × 10000 and that wait: %v, want %v", got, want)
		}
		if _, err := r.e.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		r.wait(id)
	})
}
