package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func incidents(r *rig, kind string) (texts []string) {
	r.t.Helper()
	all, err := r.e.Incidents(r.t.Context(), "", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, i := range all {
		if i.Kind == kind {
			texts = append(texts, i.Text)
		}
	}
	return texts
}

// A larger context that silently spills to the processor: the model goes, and its step runs on a machine that holds it.
func TestALoadThatSpilledIsUnloadedAndItsStepPlacedAgain(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	for name, spill := range map[string]func(m *Move){
		"Ollama says so": func(m *Move) { m.Spilled, m.VRAM, m.Size = true, m.Need/2, m.Need },
		// ollama#10445, #11812: ps shows 100 % GPU, and nothing is there
		"ps says 100 % GPU and the card is empty": func(m *Move) {
			m.VRAM, m.Size, m.Observed = m.Need, m.Need, scheduler.Bytes{N: 200 << 20, Known: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(2)
				f.ends = func(node string, m *Move) {
					if node == "n1" {
						spill(m)
					}
				}
				r := newRig(t, f, Options{})
				id := r.submit(p, items(40))
				time.Sleep(8 * time.Second)
				if got := f.loaded("n1"); len(got) != 0 {
					t.Errorf("it stays on n1: %v", got)
				}
				if v := r.wait(id); v.Status != run.Completed {
					t.Fatalf("%+v", v)
				}
				for _, a := range f.sent() {
					if a.Node == "n1" {
						t.Errorf("%s was sent to a model that had spilled", a.Key)
					}
				}
				if got := incidents(r, IncidentSpilled); len(got) != 1 || !strings.Contains(got[0], "small:8b at 8192 tokens did not fit on box-1") {
					t.Errorf("%q", got)
				}
				if n := f.node("n1").loads; n != 1 {
					t.Errorf("%d loads", n)
				}
			})
		})
	}
}

// The report that shows a model may come before the load returns and says that it spilled: nothing starts on it until then.
func TestNothingStartsBeforeTheLoadHasReturned(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.late = 3 * time.Second
		f.ends = func(node string, m *Move) { m.Spilled, m.VRAM = node == "n1", m.Need/2 }
		r := newRig(t, f, Options{})
		if v := r.wait(r.submit(p, items(12))); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		for _, a := range f.sent() {
			if a.Node == "n1" {
				t.Errorf("%s was sent to a model that had spilled", a.Key)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.late = time.Hour // it hangs, and the model is there
		r := newRig(t, f, Options{})
		began := time.Now()
		if v := r.wait(r.submit(p, items(4))); v.Status != run.Completed || time.Since(began) > 30*time.Second {
			t.Errorf("%s after %s", v.Status, time.Since(began))
		}
	})
}

// With one machine the work waits and is tried again, each time after a longer pause, over restarts too; once it fits all is well.
func TestASpillOnTheOnlyMachineIsTriedAgainWithLongerPauses(t *testing.T) {
	p := program(t, oneCall)
	synctest.Test(t, func(t *testing.T) {
		f, left := newFarm(1), 3
		f.ends = func(_ string, m *Move) {
			if left--; left >= 0 {
				m.Spilled, m.VRAM = true, m.Need/2
			}
		}
		r := newRig(t, f, Options{})
		began, id := time.Now(), r.submit(p, nil)
		time.Sleep(30 * time.Second)
		r.e.Stop()
		r.start()
		v := r.wait(id)
		if took := time.Since(began); v.Status != run.Completed || took < 7*time.Minute || took > 9*time.Minute { // 1 + 2 + 4 minutes
			t.Errorf("%s after %s", v.Status, took)
		}
	})
}

// rate makes a farm's calls write so many tokens a second.
func rate(tokens func(a Attempt) float64) func(a Attempt) Result {
	return func(a Attempt) Result {
		r := value(a)
		r.Report.OutputTokens = 100
		r.Report.OutputNanos = int64(100 / tokens(a) * 1e9)
		return r
	}
}

// ollama#5464, #10053: after a suspend the GPU is lost, ps shows what it showed before, and the processor computes. Nothing but the
// rate tells. What was written slowly counts, and what waits goes elsewhere.
func TestSuspendLosesTheGPUAndOnlyTheRateTells(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		slow := false
		f.answer = rate(func(a Attempt) float64 {
			if slow && a.Node == "n1" {
				return 5
			}
			return 80
		})
		r := newRig(t, f, Options{})
		r.wait(r.submit(p, items(60))) // now the rates are known
		time.Sleep(10 * time.Minute)   // and nothing is loaded any more
		slow = true
		before := len(f.sent())
		v := r.wait(r.submit(p, items(60)))
		if v.Status != run.Completed || v.Items.Retried != 0 {
			t.Errorf("%s, %d tried again", v.Status, v.Items.Retried)
		}
		there := 0
		for _, a := range f.sent()[before:] {
			if a.Node == "n1" {
				there++
			}
		}
		if there < 2 || there > 8 { // its slots, and what began before two had ended
			t.Errorf("%d calls on the machine that lost its GPU", there)
		}
		if got := incidents(r, IncidentSpilled); len(got) != 1 || !strings.Contains(got[0], "write 5.0 tokens a second, known are 80.0") {
			t.Errorf("%q", got)
		}
		time.Sleep(10 * time.Second)
		if got := f.loaded("n1"); len(got) != 0 {
			t.Errorf("it stays: %v", got)
		}
	})
}

// A machine that is slower for good, such as on battery, is believed the second time.
func TestAMachineThatIsSlowForGoodIsUsedAtItsNewRate(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		now := 80.0
		f.answer = rate(func(Attempt) float64 { return now })
		r := newRig(t, f, Options{})
		r.wait(r.submit(p, items(20)))
		time.Sleep(10 * time.Minute)
		now = 20
		began := time.Now()
		if v := r.wait(r.submit(p, items(100))); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("it took %s", took)
		}
		snap, err := r.e.Snapshot(t.Context())
		if got := snap.Nodes[0].Speeds["sha-small:8b"].Decode; err != nil || got != 20 {
			t.Errorf("known as %v tokens per second", got)
		}
	})
}

func TestWhatWasMeasuredSurvivesARestart(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		n := &f.nodes[0].Node
		n.Pools[0].ID, n.Pools[0].Kind = "gpu:0", scheduler.PoolDevice
		n.Devices = []scheduler.Device{{Name: "card", Pool: "gpu:0", Usable: true}}
		f.ends = func(_ string, m *Move) { m.VRAM, m.Observed = m.Need, scheduler.Bytes{N: m.Need + gib/2, Known: true} }
		f.answer = rate(func(Attempt) float64 { return 80 })
		r := newRig(t, f, Options{})
		r.wait(r.submit(p, items(20)))
		before, err := r.e.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.e.Stop()
		r.start()
		after, err := r.e.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, a := before.Nodes[0], after.Nodes[0]
		if s := a.Speeds["sha-small:8b"]; s.Decode != 80 || s.Load != 4*time.Second || s.Service == 0 || s != b.Speeds["sha-small:8b"] {
			t.Errorf("speeds %+v, were %+v", s, b.Speeds["sha-small:8b"])
		}
		if a.LoadRate < 0.99*gib || a.LoadRate > 1.01*gib || a.LoadRate != b.LoadRate { // 4 GiB in 4 s
			t.Errorf("load rate %v, was %v", a.LoadRate, b.LoadRate)
		}
		key := scheduler.MarginKey{Digest: "sha-small:8b", Context: 8192, Slots: 4}
		if a.Margins[key] < gib/2 || a.Margins[key] != b.Margins[key] {
			t.Errorf("margins %v, were %v", a.Margins, b.Margins)
		}
		if l := a.Loaded[0]; !l.Observed.Known || l.Observed != b.Loaded[0].Observed {
			t.Errorf("observed %+v, was %+v", l.Observed, b.Loaded[0].Observed)
		}
	})
}
