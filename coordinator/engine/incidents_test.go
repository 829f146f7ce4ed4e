package engine

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func TestWhyAModelVanished(t *testing.T) {
	now := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		keep, answering, outOfMemory time.Duration // how long before it was missed; 0: unknown
		others                       []string
		says                         string
	}{
		"Ollama was restarted":         {time.Minute, time.Minute, 0, nil, "restarted"},
		"a call ran out of memory":     {time.Minute, 2 * time.Hour, time.Second, []string{"x"}, "out of memory"},
		"that was long ago":            {time.Minute, 0, time.Hour, nil, ""},
		"another program came":         {time.Minute, 0, 0, []string{"llama3:70b"}, "another program loaded llama3:70b"},
		"nothing asked for it":         {10 * time.Minute, 0, 0, nil, "nothing asked for it for 10m"},
		"nothing explains it":          {time.Minute, 0, 0, nil, ""},
		"it answered all the time":     {time.Minute, 2 * time.Hour, 0, nil, ""},
		"it was asked for a while ago": {9 * time.Minute, 2 * time.Hour, 0, nil, ""},
	} {
		v := vanished{held: held{Model: "m"}, shown: now.Add(-time.Hour), at: now, keep: now.Add(-c.keep)}
		before := func(d time.Duration) time.Time {
			if d == 0 {
				return time.Time{}
			}
			return now.Add(-d)
		}
		got := v.guess(before(c.answering), ending{before(c.outOfMemory), "m", true, "a call of m ran out of memory"}, 10*time.Minute, c.others)
		if !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A runner that dies says that it may be a lack of memory, and not more. From 0.30 on all others are ended with it, before that it alone.
func TestARunnerThatDiedExplainsWhatIsGone(t *testing.T) {
	now := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	died := ending{now.Add(-time.Second), "judge:8b", false, "a call of judge:8b failed (model runner has unexpectedly stopped)"}
	for _, c := range []struct {
		model, version string
		want           bool
	}{{"judge:8b", "0.17.4", true}, {"small:8b", "0.17.4", false}, {"small:8b", "0.30.5", true}} {
		v := vanished{held: held{Model: c.model}, node: scheduler.Node{OllamaVersion: c.version}, shown: now.Add(-time.Hour), at: now, keep: now}
		if got := v.guess(time.Time{}, died, 10*time.Minute, nil); strings.Contains(got, "judge:8b failed (model runner has unexpectedly stopped) there a moment before") != c.want {
			t.Errorf("%s on %s: %q", c.model, c.version, got)
		}
	}
}

// A person stops the model, or its runner ends: nothing explains it, and that is said, too, once it is clear that nothing does.
func TestAModelThatVanishesWithoutAReason(t *testing.T) {
	p := program(t, oneCall)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		r.wait(r.submit(p, nil))
		f.put("n1", "small:8b", 0)
		time.Sleep(guessAfter - time.Second)
		if got := incidents(r, IncidentVanished); len(got) != 0 {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(2 * time.Second)
		if got := incidents(r, IncidentVanished); len(got) != 1 || !strings.Contains(got[0], "all that was loaded is gone") {
			t.Errorf("%q", got)
		}
	})
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

// The log says what happened, and what a person asked for is no warning there.
func TestTheLogSaysWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := newRig(t, newFarm(1), Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
		if err := r.e.Drain(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		r.e.Reported("n1", "slots is -3, which is taken for 0")
		synctest.Wait()
		for _, want := range []string{`level=INFO msg="box-1 is drained" node=n1 kind=use`,
			`level=WARN msg="a report of box-1 makes no sense: slots is -3, which is taken for 0" node=n1 kind=report`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, out.String())
			}
		}
		r.e.Stop()
	})
}
