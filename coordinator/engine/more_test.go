package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// A run that used up what it was given goes on as another one that is given more: what is there costs nothing again, the new limits hold
// over a restart, and what is not named stays as it was.
func TestAnExhaustedRunGoesOnWithMore(t *testing.T) {
	p := flow(t, `const r = []; for (let i = 0; i < 9; i++) r.push(await generate({ model: "small:8b", prompt: "text " + i, schema: Answer })); return r.length;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{DefaultLimits: run.Limits{Calls: 3, SpawnDepth: 4, Scale: run.Scale{CallSeconds: 60, Least: 600}}})
		id := r.submit(p, nil)
		if v := r.wait(id); v.Status != run.Exhausted || v.Calls != 3 {
			t.Fatalf("%s after %d calls", v.Status, v.Calls)
		}
		more, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Failed: true, Limits: run.Limits{Calls: 5, SpawnDepth: -1}, SetBy: map[string]string{run.LimitCalls: "run"}})
		if err != nil {
			t.Fatal(err)
		}
		r.until("a call of it is under way", func() bool { return len(f.sent()) > 4 })
		r.e.Stop()
		r.start()
		v := r.wait(more)
		if v.Status != run.Exhausted || v.Calls != 5 || v.Items.Reused != 3 {
			t.Fatalf("with 5 calls more it is %s after %d, took over %d", v.Status, v.Calls, v.Items.Reused)
		}
		set := map[string]string{}
		for _, l := range v.Limits {
			set[l.Name] = l.SetBy
		}
		if set[run.LimitCalls] != "run" || set[run.LimitActive] != "base" || len(set) != 2 {
			t.Errorf("limits are set by %v", set)
		}
		any, _, err := r.e.Fork(t.Context(), ForkRequest{Run: more, Failed: true, Limits: run.Limits{Calls: -1}})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.wait(any); v.Status != run.Completed || v.Calls != 1 || v.Items.Reused != 8 || r.output(any, "result") != "9" {
			t.Errorf("with any number of calls it is %s after %d: %s", v.Status, v.Calls, v.Error)
		}
		r.once(any)
	})
}

// A run whose time was up goes on with more of it.
func TestATimedOutRunGoesOnWithMore(t *testing.T) {
	p := flow(t, `const r = []; for (let i = 0; i < 3; i++) r.push(await generate({ model: "small:8b", prompt: "text " + i, schema: Answer })); return r.length;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{DefaultLimits: run.Limits{ActiveSeconds: 100}})
		id := r.submit(p, nil)
		if v := r.wait(id); v.Status != run.TimedOut {
			t.Fatalf("it is %s", v.Status)
		}
		for limit, want := range map[int64]run.Status{30: run.TimedOut, 1000: run.Completed} {
			more, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id, Failed: true, Limits: run.Limits{ActiveSeconds: limit}})
			if err != nil {
				t.Fatal(err)
			}
			if v := r.wait(more); v.Status != want || v.Items.Reused == 0 {
				t.Errorf("with %d s it is %s, took over %d", limit, v.Status, v.Items.Reused)
			}
		}
	})
}
