package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// The tests here are about what users of other engines ran into: rows of research/durability.md §2.

// TestAQueueOfOneIsNotBlockedByARestart is row 3: a recovered run that stays pending and blocks a queue of one.
func TestAQueueOfOneIsNotBlockedByARestart(t *testing.T) {
	p := flow(t, `const a = await generate({ model: "small:8b", prompt: "one " + input.n, schema: Answer }); const b = await generate({ model: "small:8b", prompt: "two " + input.n, schema: Answer }); return [a, b];`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.takes = func(Attempt) time.Duration { return 10 * time.Second }
		r := newRig(t, f, Options{MaxScripts: 1})
		var ids []string
		for n := range 6 {
			ids = append(ids, r.submit(p, map[string]any{"n": n}))
		}
		for range 8 {
			time.Sleep(7 * time.Second)
			r.e.Stop()
			r.start()
		}
		for i, id := range ids {
			if v := r.wait(id); v.Status != run.Completed || v.Calls != 2 {
				t.Errorf("run %d is %s after %d calls", i, v.Status, v.Calls)
			}
		}
	})
}

// TestALongCallIsNoFailure is rows 7, 8 and 22: recovery by age, jobs that may not last, and time-outs that are shorter than a model takes. A
// call of 20 hours over three restarts and hourly looks is one call.
func TestALongCallIsNoFailure(t *testing.T) {
	p := flow(t, `return (await generate({ model: "small:8b", prompt: "a book", schema: Answer })).of;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return 20 * time.Hour }
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		for range 3 {
			time.Sleep(4 * time.Hour)
			r.e.Stop()
			time.Sleep(time.Hour)
			r.start()
		}
		v := r.wait(id)
		if v.Status != run.Completed || v.Calls != 1 || v.Items.Retried != 0 || len(f.calls) != 1 {
			t.Errorf("%s after %d calls, %+v", v.Status, v.Calls, v.Items)
		}
	})
}

// TestANodeThatGoesUnsaid is row 7, too: nobody says that a node is lost; that it is not there any more is seen, and its calls go elsewhere.
func TestANodeThatGoesUnsaid(t *testing.T) {
	p := flow(t, `const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer }); return r.succeeded;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.takes = func(Attempt) time.Duration { return time.Hour }
		r := newRig(t, f, Options{})
		id := r.submit(p, items(8))
		time.Sleep(time.Minute)
		f.mu.Lock()
		n := f.node("n2")
		n.State, n.Loaded = scheduler.NodeLost, nil
		f.mu.Unlock()
		f.change()
		time.Sleep(15 * time.Second)
		if v := r.view(id); len(v.InFlight) != 8 {
			t.Errorf("%d calls after 15 s, within the grace", len(v.InFlight))
		}
		time.Sleep(time.Minute)
		for _, in := range r.view(id).InFlight {
			if in.Node != "box-1" {
				t.Errorf("%s is on %s", in.Label, in.Node)
			}
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Errorf("%+v", v)
		}
		r.once(id)
	})
}

// TestAResultThatIsTooLargeEnds is row 17: a result beyond a limit that is tried again for ever.
func TestAResultThatIsTooLargeEnds(t *testing.T) {
	p := flow(t, `return await generate({ model: "small:8b", prompt: "all of it" }).catch((e: any) => e.kind + ": " + e.message);`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(Attempt) Result { return Result{Text: strings.Repeat("word ", 100_000)} }
		r := newRig(t, f, Options{DefaultLimits: run.Limits{ArtifactBytes: 100_000}})
		id := r.submit(p, nil)
		v := r.wait(id)
		if got := r.output(id, "result"); v.Status != run.Incomplete || v.Calls > 3 || !strings.Contains(got, "result_too_large") || !strings.Contains(got, "artifact_bytes") {
			t.Errorf("%s after %d calls: %s", v.Status, v.Calls, got)
		}
	})
}

// TestOneTransitionIsOneWrite is row 24: a step that has succeeded beside a history that says running. A child's end and what its parent is
// told are one commit, whichever commit the process dies in.
func TestOneTransitionIsOneWrite(t *testing.T) {
	child := flow(t, `await generate({ model: "small:8b", prompt: "p", schema: Answer });`)
	p := flow(t, `return (await spawn({ workflow: "child", input: {} })).state;`)
	for at := int64(1); ; at++ {
		crashed := false
		t.Run(fmt.Sprint("commit ", at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find})
				id := r.submit(p, nil)
				r.store.before = at%2 == 0
				r.store.left.Store((at + 1) / 2)
				select {
				case <-r.e.Done():
					crashed = true
					r.store.left.Store(0)
					parent, err := load(t.Context(), r.store, id)
					if err != nil {
						t.Fatal(err)
					}
					for st := range parent.Children {
						c, err := load(t.Context(), r.store, st.Child.Run)
						if err != nil || c.Seq == 0 || c.Status.Ended() && !st.Status.Ended() {
							t.Errorf("the child is %q, the step that waits for it %s, %v", c.Status, st.Status, err)
						}
					}
					r.start()
				case <-time.After(time.Hour):
					r.store.left.Store(0)
				}
				if v := r.wait(id); v.Status != run.Completed || r.output(id, "result") != `"completed"` || len(v.Children) != 1 {
					t.Errorf("%s with %d children: %s", v.Status, len(v.Children), r.output(id, "result"))
				}
			})
		})
		if !crashed {
			if at < 8 {
				t.Errorf("only %d commits: the test tests little", at)
			}
			return
		}
	}
}

// TestARowDoesNotGrowWithItsItems is rows 15 and 18: what a list shows of a run costs the same, however much the run does.
func TestARowDoesNotGrowWithItsItems(t *testing.T) {
	p := flow(t, `const r = await batch({ items: input.items, model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: 1 } }); return r.failed;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		f.answer = func(a Attempt) Result {
			if a.Item%2 == 0 {
				return Result{Failure: &Failure{Kind: "schema_violation", Message: "no", Advice: run.Never}}
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		var size [2]int
		for i, n := range []int{10, 1050} {
			id := r.submit(p, items(n))
			if v := r.wait(id); v.Items.Failed != n/2 {
				t.Fatalf("%+v", v.Items)
			}
			rows, err := r.store.Runs(t.Context(), ledger.RunFilter{Prefix: id})
			if err != nil || len(rows) != 1 {
				t.Fatal(err)
			}
			size[i] = len(rows[0].Summary)
			page, err := r.e.Items(t.Context(), id, 0, n-1, 10)
			if err != nil || len(page.Items) != 1 || !strings.Contains(string(page.Items[0].Value), fmt.Sprintf("%03d", n-1)) {
				t.Errorf("the last of %d items is %+v, %v", n, page.Items, err)
			}
		}
		if size[1] > size[0]+100 {
			t.Errorf("a row of 10 items has %d bytes, one of 1,050 has %d", size[0], size[1])
		}
	})
}
