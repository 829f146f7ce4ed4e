package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// TestTimersSurviveRestarts is row 14 of research/durability.md §2 (armed reminders that a restart loses) and row 4 (timers that are polled).
func TestTimersSurviveRestarts(t *testing.T) {
	p := flow(t, `const from = Date.now(); await sleep(3600); const mid = Date.now(); await sleep({ until: input.until }); return [mid - from, Date.now() - from];`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		began := time.Now()
		id := r.submit(p, map[string]any{"until": began.Add(10 * time.Hour).UTC().Format(time.RFC3339)})
		time.Sleep(time.Minute)
		if v := r.view(id); v.Status != run.Waiting || v.Steps[0].WaitingFor != "timer" || !v.Steps[0].Until.Equal(began.Add(time.Hour)) || v.Waiting[0].WaitingFor != "timer" {
			t.Errorf("it waits as %+v", v)
		}
		commits := r.store.commits.Load()
		time.Sleep(50 * time.Minute)
		if n := r.store.commits.Load() - commits; n > 0 {
			t.Errorf("%d commits while nothing happened", n)
		}
		r.e.Stop()
		time.Sleep(3 * time.Hour) // its time comes while nobody is there
		restart := time.Now()
		r.start()
		v := r.wait(id)
		if v.Status != run.Completed {
			t.Fatalf("%+v", v)
		}
		var took []float64
		if err := json.Unmarshal([]byte(r.output(id, "result")), &took); err != nil || len(took) != 2 {
			t.Fatal(err, took)
		}
		if late := restart.Sub(began).Seconds() - took[0]/1000; late > 1 || late < -1 || took[1] < 35999e3 || took[1] > 36001e3 {
			t.Errorf("it slept %v ms; the restart was after %s", took, restart.Sub(began))
		}
	})
}

// TestApprovalsInsideAFanOut is row 23 (approvals in parallel branches that were bypassed) and row 1 (approvals that a restart orphans).
func TestApprovalsInsideAFanOut(t *testing.T) {
	p := flow(t, `
  const branches: any = {};
  for (const name of ["a", "b", "c", "d"]) branches[name] = (async () => {
    const made = await generate({ model: "small:8b", prompt: name, schema: Answer });
    const said = await approve({ title: "go on with " + name + "?", will: "it is sent", show: [made.of], label: name });
    return said.outcome === "approved" ? await generate({ model: "small:8b", prompt: "send " + name, schema: Answer }) : said;
  })();
  return await all(branches);`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		r.until("four wait", func() bool { return len(r.waits("")) == 4 })
		v := r.view(id)
		if v.Status != run.Waiting || v.Waits != 4 {
			t.Errorf("%s with %d waits", v.Status, v.Waits)
		}
		r.e.Stop()
		time.Sleep(72 * time.Hour)
		r.start()
		w := r.waits(id)
		if len(w) != 4 || w[0].Kind != WaitApprove || w[0].Will != "it is sent" || len(w[0].Show) != 1 || !w[0].Until.IsZero() {
			t.Fatalf("after the restart there wait %+v", w)
		}
		sent := len(f.sent())
		time.Sleep(time.Hour)
		if n := len(f.sent()) - sent; n > 0 {
			t.Fatalf("%d calls were made without an answer", n)
		}
		for i := len(w) - 1; i >= 0; i-- { // in another order than asked
			outcome := run.Approved
			if w[i].Label == "c" {
				outcome = run.Rejected
			}
			if _, err := r.e.Settle(t.Context(), id, w[i].Step, 0, Answer{Outcome: outcome, By: "ada", Comment: "because"}); err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				r.e.Stop() // an answer that was acknowledged survives
				r.start()
			}
		}
		if v := r.wait(id); v.Status != run.Completed || v.Calls != 7 {
			t.Fatalf("%+v", v)
		}
		if got := r.output(id, "result"); !strings.Contains(got, `"c":{"by":"ada","comment":"because","outcome":"rejected","timed_out":false}`) || !strings.Contains(got, `"a":{"of":`) {
			t.Errorf("the result is %s", got)
		}
		if _, err := r.e.Settle(t.Context(), id, w[0].Step, 0, Answer{Outcome: run.Approved}); apierr.CodeOf(err) != apierr.Conflict {
			t.Errorf("an answer after the end: %v", err)
		}
	})
}

func TestQuestionsAndTimeouts(t *testing.T) {
	p := flow(t, `
  const size = await question({ text: "how many?", schema: t.integer({ minimum: 1 }) });
  const colour = await question({ text: "which?", choices: ["red", "blue"], timeout_seconds: 60, on_timeout: "blue" });
  const go = await approve({ title: "go?", timeout_seconds: 60, on_timeout: "rejected" });
  return { size, colour, go };`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, nil)
		time.Sleep(time.Second)
		for _, bad := range []string{`"many"`, `0`, `{`} {
			if _, err := r.e.Settle(t.Context(), id, 0, 0, Answer{Value: json.RawMessage(bad)}); apierr.CodeOf(err) != apierr.InvalidArgument {
				t.Errorf("the answer %s: %v", bad, err)
			}
		}
		if _, err := r.e.Settle(t.Context(), id, 9, 0, Answer{}); apierr.CodeOf(err) != apierr.NotFound {
			t.Errorf("an answer to no step: %v", err)
		}
		if v, err := r.e.Settle(t.Context(), id[:3], 0, 0, Answer{Value: json.RawMessage(`3`), By: "ada"}); err != nil || v.Status.Ended() {
			t.Fatal(v.Status, err)
		}
		v := r.wait(id)
		want := `{"colour":{"answer":"blue","by":"time-out","timed_out":true},"go":{"by":"time-out","comment":"","outcome":"rejected","timed_out":true},"size":{"answer":3,"by":"ada","timed_out":false}}`
		if got := r.output(id, "result"); got != want || v.Status != run.Completed {
			t.Errorf("%s: %s", v.Status, got)
		}
		if took := v.Ended.Sub(v.Created); took < 120*time.Second || took > 123*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestParkedTimeInAFanOut is row 26: a budget that ticks while a script is parked on 32 branches of 10 minutes each.
func TestParkedTimeInAFanOut(t *testing.T) {
	child := flow(t, `await sleep(600); return input.n;`)
	p := flow(t, `
  const branches: any = {};
  for (let i = 0; i < 32; i++) branches["b" + i] = (async () => { await sleep(600 * i + 1); return (await spawn({ workflow: "child", input: { n: i } })).outputs.result; })();
  return Object.values(await all(branches));`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find, DefaultLimits: run.Limits{ActiveSeconds: 60}})
		id := r.submit(p, nil)
		v := r.wait(id)
		if v.Status != run.Completed || v.Ended.Sub(v.Started) < 32*10*time.Minute || v.Active > 20*time.Second {
			t.Fatalf("%s after %s, active %s: %s", v.Status, v.Ended.Sub(v.Started), v.Active, v.Error)
		}
		if len(v.Children) != 32 || v.Limits[0].Limit != 60 {
			t.Errorf("%d children, limits %+v", len(v.Children), v.Limits)
		}
	})
}

// TestWorkIsTimedOut is the other side: time at work counts, and the message names the knob.
func TestWorkIsTimedOut(t *testing.T) {
	p := flow(t, `for (let i = 0; i < 9; i++) { await sleep(3600); await generate({ model: "small:8b", prompt: "p" + i, schema: Answer }); }`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 30 * time.Second }
		r := newRig(t, f, Options{DefaultLimits: run.Limits{ActiveSeconds: 100}})
		v := r.wait(r.submit(p, nil))
		if v.Status != run.TimedOut || v.Calls < 3 || v.Calls > 4 || !strings.Contains(v.Error, "active_seconds") {
			t.Errorf("%s after %d calls: %s", v.Status, v.Calls, v.Error)
		}
		if l := v.Limits[0]; l.Spent < 100 || l.Spent > 130 || l.Overshoot != l.Spent-100 {
			t.Errorf("%+v", l)
		}
	})
}

func TestLimitsOfTokensAndCalls(t *testing.T) {
	p := flow(t, `const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer }); return r.total;`)
	for _, l := range []run.Limits{{Calls: 5}, {Tokens: 100}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFarm(1), Options{})
			id, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: p, Input: inputOf(40), Limits: l})
			if err != nil {
				t.Fatal(err)
			}
			v := r.wait(id)
			if v.Status != run.Exhausted || len(v.Limits) != 1 || !strings.Contains(v.Error, v.Limits[0].Name) || len(v.InFlight) != 0 {
				t.Errorf("%s: %s; %+v", v.Status, v.Error, v.Limits)
			}
			if l.Calls > 0 && v.Calls != 5 {
				t.Errorf("%d calls", v.Calls)
			}
			if v.Limits[0].Worst < v.Limits[0].Spent {
				t.Errorf("spent more than was possible: %+v", v.Limits[0])
			}
		})
	}
}

func TestSuspendAndResume(t *testing.T) {
	child := flow(t, `const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer }); return r.succeeded;`)
	p := flow(t, `return (await spawn({ workflow: "child", input })).outputs.result;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 10 * time.Second }
		r := newRig(t, f, Options{Workflows: library{"child": child}.find})
		id := r.submit(p, items(20))
		time.Sleep(15 * time.Second)
		if _, err := r.e.SuspendRun(t.Context(), id, "ada", "the card is wanted"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		sent := len(f.sent())
		r.e.Stop()
		time.Sleep(time.Hour)
		r.start()
		time.Sleep(time.Hour)
		v := r.view(id)
		if n := len(f.sent()) - sent; n > 0 || v.Status != run.Suspended || v.ParkedBy != "the card is wanted" || v.CancelReason != "" || len(f.running()) > 0 {
			t.Errorf("%s by %q, %d calls were made", v.Status, v.ParkedBy, n)
		}
		if c := r.view(v.Children[0]); c.Status != run.Suspended {
			t.Errorf("the child is %s", c.Status)
		}
		if _, err := r.e.SuspendRun(t.Context(), id, "ada", ""); apierr.CodeOf(err) != apierr.Conflict {
			t.Errorf("suspended twice: %v", err)
		}
		if _, err := r.e.ResumeRun(t.Context(), id, "ada"); err != nil {
			t.Fatal(err)
		}
		if v := r.wait(id); v.Status != run.Completed || r.output(id, "result") != "20" || v.Active > 2*time.Minute {
			t.Errorf("%s, active %s, %s", v.Status, v.Active, r.output(id, "result"))
		}
	})
}

// TestAClockThatJumps lets the machine sleep for a night: what waits for the morning goes on, and a budget of active time has not run out.
func TestAClockThatJumps(t *testing.T) {
	sleeper := flow(t, `await sleep({ until: input.until }); return Date.now();`)
	worker := flow(t, `const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer }); return r.succeeded;`)
	for _, by := range []time.Duration{8 * time.Hour, -8 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ahead atomic.Int64
				f := newFarm(1)
				f.takes = func(Attempt) time.Duration { return 20 * time.Second }
				r := newRig(t, f, Options{wall: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
				morning := time.Now().Add(7 * time.Hour)
				s := r.submit(sleeper, map[string]any{"until": morning.UTC().Format(time.RFC3339)})
				w, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: worker, Input: inputOf(40), TimeLimit: 30 * time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				ahead.Store(int64(by))
				before := time.Now()
				v := r.wait(w)
				if v.Status != run.Completed || v.Active > 10*time.Minute || v.Items.Retried > 0 {
					t.Errorf("%s, active %s, %+v: %s", v.Status, v.Active, v.Items, v.Error)
				}
				v = r.wait(s)
				want := 7*time.Hour - time.Minute // of time that passed: the clock was wrong before or is wrong now
				if by > 0 {
					want = 0
				}
				if took := time.Since(before); v.Status != run.Completed || by > 0 && took > 10*time.Minute || by < 0 && (took < want-time.Minute || took > want+time.Minute) {
					t.Errorf("%s after %s", v.Status, took)
				}
			})
		})
	}
}

func TestAPersonRollsAPipelineBack(t *testing.T) {
	p := flow(t, `
  await pipeline({ name: "work", phases: [
    { name: "make", run: async () => { await generate({ model: "small:8b", prompt: "make", schema: Answer }); } },
    { name: "look", run: async () => { await generate({ model: "small:8b", prompt: "look", schema: Answer }); } },
  ] } as any);
  return 1;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return time.Minute }
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		r.until("the second phase", func() bool {
			v := r.view(id)
			if v.Status.Ended() {
				t.Fatalf("%+v", v)
			}
			return len(v.Phases) == 2 && v.Phases[1].Status == run.PhaseInProgress
		})
		time.Sleep(20 * time.Second)
		if _, err := r.e.Rollback(t.Context(), id, "", "look", "no", "ada"); apierr.CodeOf(err) != apierr.InvalidArgument {
			t.Errorf("back to where it is: %v", err)
		}
		before := f.running()
		v, err := r.e.Rollback(t.Context(), id, "", "make", "it is not what was wanted", "ada")
		if err != nil || v.Phases[0].Status != run.PhaseInProgress || len(v.Phases[0].Reasons) != 1 {
			t.Fatalf("%+v, %v", v.Phases, err)
		}
		synctest.Wait()
		if left := f.running(); len(before) != 1 || slices.Contains(left, before[0]) {
			t.Errorf("of the calls %q of the phase that was left there run %q", before, left)
		}
		v = r.wait(id)
		if v.Status != run.Completed || v.Phases[0].Round != 2 || v.Calls != 4 {
			t.Errorf("%s, %+v, %d calls: %s", v.Status, v.Phases, v.Calls, fmt.Sprint(v.Failures))
		}
	})
}
