package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

const fortyItems = `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items });`

// state is a node's state as a placement sees it.
func (r *rig) state(node string) (scheduler.NodeState, string) {
	r.t.Helper()
	nodes, err := r.e.Nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Node.ID == node {
			return n.Node.State, n.Why
		}
	}
	return "", ""
}

func TestPauseFreesTheCardNow(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return 10 * time.Minute }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(8))
		time.Sleep(30 * time.Second) // both machines work, for minutes to come
		if err := r.e.Pause(t.Context(), "box-1", 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := f.loaded("n1"); len(got) != 0 {
			t.Errorf("five seconds later it holds %v", got)
		}
		if s, why := r.state("n1"); s != scheduler.NodePaused || !strings.Contains(why, "paused until") {
			t.Errorf("%s, %s", s, why)
		}
		r.e.Stop() // a restart does not end it
		r.start()
		v := r.wait(id)
		if v.Status != run.Completed || v.Items.Retried == 0 {
			t.Errorf("%+v", v)
		}
		for _, st := range v.Failures {
			t.Errorf("%+v", st)
		}
		for _, n := range v.Nodes {
			if n.NodeID == "n1" && n.Items > 0 {
				t.Errorf("a paused machine did %d items", n.Items)
			}
		}
		time.Sleep(2 * time.Hour)
		if s, _ := r.state("n1"); s != scheduler.NodeUp {
			t.Errorf("two hours later: %s", s)
		}
	})
}

// A pause is no failure of the machine's: what it stopped goes on there when the machine is used again.
func TestWhatAPauseStoppedMayGoOnThere(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return time.Hour }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(8))
		time.Sleep(30 * time.Second) // four calls on either machine
		if err := r.e.Pause(t.Context(), "box-1", 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := r.e.Resume(t.Context(), "box-1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the other machine is busy for an hour
		v, err := r.e.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		busy := map[string]int{}
		for _, c := range v.InFlight {
			busy[c.Node]++
		}
		if busy["box-1"] != 4 || busy["box-2"] != 4 {
			t.Errorf("in flight %v, want four on either machine again", busy)
		}
		if _, err := r.e.Cancel(t.Context(), id, "seen enough"); err != nil {
			t.Fatal(err)
		}
	})
}

// A pause for a while ends by itself, which its history tells; a machine that was drained is drained still then, whichever came first.
func TestADrainSurvivesAPause(t *testing.T) {
	for name, c := range map[string]struct {
		drained, first bool
		after          scheduler.NodeState
		says           string
	}{
		"drained before":    {true, true, scheduler.NodeDraining, "box-1 is still drained: its pause is over"},
		"drained meanwhile": {true, false, scheduler.NodeDraining, "box-1 is still drained: its pause is over"},
		"not drained":       {false, false, scheduler.NodeUp, "box-1 is used again: its pause is over"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFarm(1), Options{})
				drain := func() {
					if err := r.e.Drain(t.Context(), "n1"); err != nil {
						t.Fatal(err)
					}
				}
				if c.first {
					drain()
				}
				if err := r.e.Pause(t.Context(), "n1", time.Hour); err != nil {
					t.Fatal(err)
				}
				if c.drained && !c.first {
					drain()
				}
				time.Sleep(30 * time.Minute)
				if s, _ := r.state("n1"); s != scheduler.NodePaused {
					t.Errorf("half an hour later: %s", s)
				}
				r.e.Stop()
				r.start()
				time.Sleep(31 * time.Minute)
				if got := incidents(r, IncidentUse); len(got) == 0 || got[0] != c.says { // told when it ends, before anybody looks
					t.Errorf("%q", got)
				}
				for range 2 { // the second time as the ledger has it
					if s, _ := r.state("n1"); s != c.after {
						t.Errorf("after the pause: %s", s)
					}
					r.e.Stop()
					r.start()
				}
				if got := incidents(r, IncidentUse); !strings.HasPrefix(got[len(got)-1], "box-1 is ") || strings.Count(strings.Join(got, ";"), "pause is over") != 1 {
					t.Errorf("%q", got)
				}
				if err := r.e.Resume(t.Context(), "n1"); err != nil {
					t.Fatal(err)
				}
				if s, _ := r.state("n1"); s != scheduler.NodeUp {
					t.Errorf("resumed: %s", s)
				}
			})
		})
	}
}

// A machine that is used again beside hundreds of waiting calls loads the model and shares the work, even where each call is over
// long before a load is, and says too little of its speed: its prompts are short.
func TestAResumedMachineSharesWhatWaits(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return 375 * time.Millisecond }
		r := newRig(t, f, Options{})
		if err := r.e.Pause(t.Context(), "n2", 30*time.Second); err != nil {
			t.Fatal(err)
		}
		id := r.submit(p, items(800)) // more than a placement sees; four at once: 75 seconds on one machine
		time.Sleep(29 * time.Second)
		if n := f.node("n2").loads; n != 0 {
			t.Errorf("%d loads on a machine that is paused", n)
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		on := map[string]int{}
		for _, a := range f.sent() {
			on[a.Node]++
		}
		if on["n2"] < 133 {
			t.Errorf("the work went to %v", on)
		}
	})
}

func TestDrainLetsWhatRunsEnd(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		r := newRig(t, f, Options{})
		id := r.submit(p, items(200))
		time.Sleep(10 * time.Second)
		if err := r.e.Drain(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		sent := len(f.sent())
		v := r.wait(id)
		if v.Status != run.Completed || v.Items.Retried != 0 {
			t.Errorf("%s, %d tried again", v.Status, v.Items.Retried)
		}
		for _, a := range f.sent()[sent:] {
			if a.Node == "n1" {
				t.Errorf("%s was sent to a machine that is drained", a.Key)
			}
		}
		if err := r.e.Resume(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		if s, why := r.state("n1"); s != scheduler.NodeUp || why != "" {
			t.Errorf("%s, %s", s, why)
		}
		if got := incidents(r, IncidentUse); len(got) != 2 || got[0] != "box-1 is used again" || got[1] != "box-1 is drained" {
			t.Errorf("%q", got)
		}
		if err := r.e.Drain(t.Context(), "nobody"); apierr.CodeOf(err) != apierr.NotFound {
			t.Errorf("%v", err)
		}
	})
}

// Outside its hours a machine takes nothing and keeps nothing; what ran when they ended may end.
func TestOutsideItsHoursAMachineIsLeftAlone(t *testing.T) {
	p := program(t, fortyItems)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 10 * time.Minute }
		begin := time.Now().Add(time.Hour).Truncate(time.Minute)
		since := func(at time.Time) time.Duration {
			at = at.Local()
			return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
		}
		every := [7]bool{true, true, true, true, true, true, true}
		r := newRig(t, f, Options{Hours: map[string]Hours{"box-1": {{Days: every, From: since(begin), To: since(begin.Add(time.Hour))}}}})
		id := r.submit(p, items(40))
		time.Sleep(time.Until(begin.Add(-time.Second)))
		if n := len(f.sent()); n != 0 {
			t.Errorf("%d calls before", n)
		}
		if s, why := r.state("n1"); s != scheduler.NodePaused || why != "outside its hours of use" {
			t.Errorf("%s, %s", s, why)
		}
		time.Sleep(time.Until(begin.Add(time.Hour + 30*time.Second)))
		within := len(f.sent())
		if within < 20 || within > 28 { // four at a time, for ten minutes each
			t.Errorf("%d calls within", within)
		}
		time.Sleep(20 * time.Minute)
		if got := f.loaded("n1"); len(got) != 0 || len(f.sent()) != within || len(f.running()) != 0 {
			t.Errorf("after: %v in memory, %d calls more, running %v", got, len(f.sent())-within, f.running())
		}
		if v := r.wait(id); v.Status != run.Completed || v.Items.Retried != 0 { // the next day
			t.Errorf("%s, %d tried again", v.Status, v.Items.Retried)
		}
	})
}
