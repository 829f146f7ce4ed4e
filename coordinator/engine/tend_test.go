package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

const oneCall = `await generate({ model: "small:8b", prompt: "x" });`

func TestAModelThatNothingUsesGoesAfterFiveMinutes(t *testing.T) {
	p := program(t, oneCall)
	for name, c := range map[string]struct {
		limits scheduler.Limits
		left   int // models after 4 and after 6 minutes
		later  int
	}{
		"by default":       {scheduler.Limits{}, 1, 0},
		"sooner":           {scheduler.Limits{IdleUnload: time.Minute}, 0, 0},
		"never":            {scheduler.Limits{IdleUnload: -1}, 1, 1},
		"one that is kept": {scheduler.Limits{Pins: map[string][]string{"small:8b": {"box-1"}}}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(1)
				r := newRig(t, f, Options{Limits: c.limits})
				r.wait(r.submit(p, nil))
				time.Sleep(4 * time.Minute)
				if got := f.loaded("n1"); len(got) != c.left {
					t.Errorf("after 4 minutes: %v", got)
				}
				time.Sleep(2 * time.Minute)
				if got := f.loaded("n1"); len(got) != c.later {
					t.Errorf("after 6 minutes: %v", got)
				}
			})
		})
	}
}

// What others loaded is theirs: not even a step that needs the room has it unloaded, and no restart forgets whose it is.
func TestAModelOfSomebodyElseIsNeverUnloaded(t *testing.T) {
	p := program(t, oneCall)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.put("n1", "judge:8b", 8*gib)
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		time.Sleep(10 * time.Minute)
		r.e.Stop()
		r.start()
		time.Sleep(10 * time.Minute)
		if got := f.loaded("n1"); !slices.Equal(got, []string{"judge:8b"}) {
			t.Fatalf("in memory: %v", got)
		}
		f.put("n1", "judge:8b", 0) // its owner unloads it
		if v := r.wait(id); v.Status != run.Completed {
			t.Errorf("%+v", v)
		}
	})
}

func TestWhatWeLoadedIsOursAfterARestart(t *testing.T) {
	p := program(t, oneCall)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		r.wait(r.submit(p, nil))
		r.e.Stop()
		r.start()
		nodes, err := r.e.Nodes(t.Context())
		if err != nil || len(nodes[0].Kept) != 1 || !nodes[0].Kept[0].Ours || nodes[0].Node.Loaded[0].Foreign {
			t.Errorf("%+v %v", nodes, err)
		}
		time.Sleep(6 * time.Minute)
		if got := f.loaded("n1"); len(got) != 0 {
			t.Errorf("it stays in memory: %v", got)
		}
		r.e.Stop()
		r.start()
		f.put("n1", "small:8b", 8*gib) // somebody loads the same one
		nodes, err = r.e.Nodes(t.Context())
		if err != nil || nodes[0].Kept[0].Ours || !nodes[0].Node.Loaded[0].Foreign {
			t.Errorf("what somebody else loaded later: %+v %v", nodes[0].Kept, err)
		}
	})
}

// A step that waits for something else than the model wants it all the same: it is renewed, so that Ollama does not let it go.
func TestAModelThatIsWaitedForIsRenewed(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: ["a", "b", "c"], uses: ["site"] });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{Resources: map[string]Resource{"site": {Rate: 1.0 / (16 * 60)}}})
		if v := r.wait(r.submit(p, nil)); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if f.node("n1").loads != 1 {
			t.Errorf("%d loads", f.node("n1").loads)
		}
		if n := len(f.renewed); n < 4 || n > 7 { // every 5 minutes in 32
			t.Errorf("renewed %d times: %v", n, f.renewed)
		}
	})
}

// ollama#13235: a worker moves one model at a time. An unload that is decided while a load is under way waits for its end, or it would
// look like one that hangs.
func TestNoUnloadWhileALoadIsUnderWay(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	load := scheduler.Decision{Action: scheduler.Load, Node: "n1", Digest: "a"}
	unload := scheduler.Decision{Action: scheduler.Unload, Node: "n1", Digest: "b"}
	elsewhere := scheduler.Decision{Action: scheduler.Unload, Node: "n2", Digest: "b"}
	m := newMoves()
	if !m.begin(load, now) || m.begin(unload, now) || !m.begin(elsewhere, now) {
		t.Error("beside the load")
	}
	m.ended("n1", Move{Decision: load}, now)
	if !m.begin(unload, now) {
		t.Error("after the load")
	}
}
