package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

func TestWhyAModelVanished(t *testing.T) {
	now := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	loaded := vanished{held: held{Model: "m"}, shown: now.Add(-time.Hour), keep: now.Add(-time.Minute)}
	with := func(change func(*vanished)) vanished {
		v := loaded
		change(&v)
		return v
	}
	for name, c := range map[string]struct {
		v            vanished
		answering    time.Time
		outOfMemory  time.Time
		says, saysNo string
	}{
		"Ollama was restarted":          {loaded, now.Add(-time.Minute), time.Time{}, "restarted", ""},
		"a call ran out of memory":      {loaded, now.Add(-2 * time.Hour), now.Add(-time.Second), "out of memory", ""},
		"that was long ago":             {loaded, time.Time{}, now.Add(-time.Hour), "a person", "memory"},
		"another program came":          {with(func(v *vanished) { v.others = []string{"llama3:70b"} }), time.Time{}, time.Time{}, "another program loaded llama3:70b", ""},
		"nothing asked for it":          {with(func(v *vanished) { v.keep = now.Add(-10 * time.Minute) }), time.Time{}, time.Time{}, "nothing asked for it for 10m", ""},
		"everything is gone":            {with(func(v *vanished) { v.all = true }), time.Time{}, time.Time{}, "all that was loaded is gone", ""},
		"nothing explains it":           {loaded, time.Time{}, time.Time{}, "a person or a program", ""},
		"it answered all the time long": {loaded, now.Add(-2 * time.Hour), time.Time{}, "a person or a program", "restarted"},
	} {
		got := c.v.guess(c.answering, c.outOfMemory, 10*time.Minute, now)
		if !strings.Contains(got, c.says) || c.saysNo != "" && strings.Contains(got, c.saysNo) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// ollama#13227: another client's load evicts ours. It is told, and the work goes on.
func TestAnotherProgramEvictsOurModelAndThatIsTold(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		r := newRig(t, f, Options{})
		r.wait(r.submit(p, items(40)))
		f.mu.Lock()
		n := f.node("n1")
		n.Loaded = nil
		f.mu.Unlock()
		f.put("n1", "llama3:70b", 8*gib)
		time.Sleep(time.Second)
		if got := incidents(r, IncidentVanished); len(got) != 1 || !strings.Contains(got[0], "small:8b is gone from the memory of box-1") || !strings.Contains(got[0], "llama3:70b") {
			t.Errorf("%q", got)
		}
		if v := r.wait(r.submit(p, items(40))); v.Status != run.Completed {
			t.Errorf("%+v", v)
		}
		time.Sleep(10 * time.Minute) // what we unload ourselves is no incident
		if got := incidents(r, IncidentVanished); len(got) != 1 {
			t.Errorf("%q", got)
		}
	})
}

// gpustack#5513: after a partition, memory that nothing holds any more stays allocated in the books.
func TestNoGhostAllocationAfterAPartition(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		id := r.submit(p, items(40))
		time.Sleep(2 * time.Second) // in the middle of the load
		f.lose("n1")
		time.Sleep(time.Minute)
		snap, err := r.e.Snapshot(t.Context())
		if err != nil || snap.Nodes[0].Loading != nil {
			t.Errorf("a machine that is gone is still loading: %+v %v", snap.Nodes[0].Loading, err)
		}
		f.put("n1", "small:8b", 0) // it comes back with nothing in memory
		f.back("n1")
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		f.lose("n1")
		time.Sleep(time.Minute)
		f.back("n1")
		time.Sleep(20 * time.Second)
		nodes, err := r.e.Nodes(t.Context())
		if err != nil || len(nodes[0].Kept) != 0 || nodes[0].Node.Loading != nil {
			t.Errorf("ghosts: %+v %v", nodes[0], err)
		}
	})
}
