package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// TestChildrenOverARestart is row 13 (parents that hang after a restart): children report to a parent whatever their end, and a restart
// in the middle changes nothing.
func TestChildrenOverARestart(t *testing.T) {
	child := flow(t, `
  const made = await generate({ model: "small:8b", prompt: "do " + input.n, schema: Answer });
  await sleep(60);
  output("made", made.of);
  if (input.n === 2) throw new Error("two is bad");
  return input.n === 3 ? "x".repeat(40000) : input.n;`)
	p := flow(t, `
  const branches: any = {};
  for (let n = 0; n < 4; n++) branches["b" + n] = (async () => await spawn({ workflow: "child", input: { n } }))();
  const all4: any[] = Object.values(await all(branches));
  return all4.map((r: any) => [r.state, r.outputs.made, String(r.outputs.result).length, r.shortfalls.length]);`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find})
		id, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: p, Input: json.RawMessage(`{}`), Priority: run.Batch, Weight: 3,
			Limits: run.Limits{Tokens: 100_000, ArtifactBytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		r.e.Stop()
		time.Sleep(time.Hour)
		r.start()
		v := r.wait(id)
		got := r.output(id, "result")
		for _, want := range []string{`["completed",`, `,1,0],["completed",`, `,1,0],["failed",`, `,9,1],["completed",`, `,40000,0]]`} {
			if !strings.Contains(got, want) {
				t.Errorf("the children reported %s, without %s", got, want)
			}
		}
		if v.Status != run.Incomplete || len(v.Children) != 4 { // one of them failed, and nobody waived it
			t.Fatalf("%s with %d children", v.Status, len(v.Children))
		}
		for _, c := range v.Children {
			cv := r.view(c)
			if cv.Parent != id || cv.Priority != run.Batch || cv.Weight != 3 || len(cv.Limits) != 2 || cv.Limits[0].Limit > 100_000 || !cv.Ended.Before(v.Ended.Add(1)) {
				t.Errorf("the child %+v", cv)
			}
		}
		refs := 0
		for _, ev := range r.events(id) {
			if p, ok := ev.Data.(*run.StepEnded); ok && p.Child != nil && p.Result.Ref != "" {
				refs++
			}
		}
		if refs != 1 {
			t.Errorf("%d large reports are stored beside the event, want 1", refs)
		}
	})
}

// TestNoGrandchildEscapesACancel is row 5: a child that spawns at the very moment of the cancel. The moment is moved over the whole time
// in which the tree grows.
func TestNoGrandchildEscapesACancel(t *testing.T) {
	leaf := flow(t, `await generate({ model: "small:8b", prompt: "leaf", schema: Answer }); await sleep(3600);`)
	mid := flow(t, `for (let i = 0; ; i++) { spawn({ workflow: "leaf", input: {}, detached: i === 1 } as any).catch(() => {}); await sleep(0.05); if (i > 3) await sleep(3600); }`)
	top := flow(t, `const b: any = {}; for (let i = 0; i < 3; i++) b["b" + i] = (async () => { await sleep(i / 10); return spawn({ workflow: "mid", input: {} }); })(); await all(b);`)
	lib := library{"leaf": leaf, "mid": mid}
	for _, after := range []time.Duration{0, 1, 30 * time.Microsecond, time.Millisecond, 20 * time.Millisecond, 51 * time.Millisecond, 100 * time.Millisecond, 101 * time.Millisecond, 155 * time.Millisecond, time.Second, 90 * time.Minute} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFarm(1), Options{Workflows: lib.find, MaxScripts: 100})
				id := r.submit(top, map[string]any{})
				time.Sleep(after)
				if _, err := r.e.Cancel(t.Context(), id, "enough"); err != nil {
					t.Fatal(err)
				}
				commit := r.store.commits.Load()
				rows, err := r.store.Runs(t.Context(), ledger.RunFilter{})
				if err != nil {
					t.Fatal(err)
				}
				open := 0
				for _, row := range rows { // as of the acknowledgement
					s, err := load(t.Context(), r.store, row.ID)
					if err != nil {
						t.Fatal(err)
					}
					detached := s.Pinned.Parent != nil && s.Pinned.Parent.Detached
					if detached && !s.Status.Ended() {
						open++
					}
					if !detached && s.Status != run.Cancelled && s.Status != run.Completed {
						t.Errorf("run %s (%s) is %s after the cancel, commit %d", row.ID, s.Pinned.Workflow, s.Status, commit)
					}
				}
				time.Sleep(10 * time.Minute)
				more, err := r.store.Runs(t.Context(), ledger.RunFilter{})
				if err != nil || len(more) != len(rows) {
					t.Errorf("%d runs appeared after the cancel, %v", len(more)-len(rows), err)
				}
				for _, row := range more {
					if v := r.view(row.ID); v.Status.Ended() && v.Status != run.Cancelled && v.Status != run.Completed {
						t.Errorf("%s ended as %s", row.ID, v.Status)
					}
				}
				if after >= time.Second && after < time.Hour && open != 3 {
					t.Errorf("%d detached runs go on, want 3", open)
				}
			})
		})
	}
}

// TestChildrenEndWithAParentThatFails: not only a cancel reaches them.
func TestChildrenEndWithAParentThatFails(t *testing.T) {
	child := flow(t, `await sleep(3600);`)
	p := flow(t, `spawn({ workflow: "child", input: {} }); spawn({ workflow: "child", input: {}, detached: true } as any); await sleep(60); throw new Error("no");`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find})
		id := r.submit(p, nil)
		v := r.wait(id)
		if v.Status != run.Failed || len(v.Children) != 2 {
			t.Fatalf("%s, %d children", v.Status, len(v.Children))
		}
		if c := r.wait(v.Children[0]); c.Status != run.Cancelled || !strings.Contains(c.CancelReason, id) || c.Ended.Sub(v.Ended) > time.Second {
			t.Errorf("the attached child is %s: %s", c.Status, c.CancelReason)
		}
		if c := r.wait(v.Children[1]); c.Status != run.Completed {
			t.Errorf("the detached child is %s", c.Status)
		}
	})
}

// TestAParentIsNotDoneBeforeItsChildren although its script has returned.
func TestAParentIsNotDoneBeforeItsChildren(t *testing.T) {
	child := flow(t, `await sleep(3600);`)
	p := flow(t, `spawn({ workflow: "child", input: {} });`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find})
		v := r.wait(r.submit(p, nil))
		if c := r.view(v.Children[0]); v.Status != run.Completed || v.Ended.Before(c.Ended) || c.Ended.Sub(c.Created) < time.Hour {
			t.Errorf("%s at %s, its child %s at %s", v.Status, v.Ended, c.Status, c.Ended)
		}
	})
}

func TestSpawnsThatCannotBe(t *testing.T) {
	self := flow(t, `const r: any = await spawn({ workflow: "self", input: { n: input.n + 1 }, limits: { spawn_depth: 3 } }).catch((e: any) => e.kind); return r.outputs ? r.outputs.result : r;`)
	p := flow(t, `
  const kind = async (r: any) => await spawn(r).then((c: any) => c.state, (e: any) => e.kind + ": " + e.message);
  return [
    await kind({ workflow: "nowhere", input: {} }),
    await kind({ workflow: "self", input: {}, limits: { wishes: 3 } }),
    await kind({ workflow: "self", input: {}, key: "mine" }),
    (await spawn({ workflow: "self", input: { n: 0 } })).outputs.result,
  ];`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"self": self}.find, DefaultLimits: run.Limits{SpawnDepth: 5}, MaxScripts: 50})
		in, _ := json.Marshal(map[string]any{"n": 0})
		id, _, err := r.e.Submit(t.Context(), Submission{Workflow: "flow", Program: p, Input: in, Key: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		r.wait(id)
		got := r.output(id, "result")
		for _, want := range []string{`no workflow is named`, `the limits do not parse`, `which itself waits for this one`, `"spawn_depth"`} {
			if !strings.Contains(got, want) {
				t.Errorf("nothing says %q in %s", want, got)
			}
		}
		depth := 0
		rows, _ := r.store.Runs(t.Context(), ledger.RunFilter{})
		for _, row := range rows {
			s, _ := load(t.Context(), r.store, row.ID)
			if s.Pinned.Parent != nil {
				depth = max(depth, s.Pinned.Parent.Depth)
			}
		}
		if depth != 3 {
			t.Errorf("the deepest child is %d deep, want 3", depth)
		}
	})
}

// TestTheSameKeyIsTheSameChild: two spawns of one key wait for one run; a cancel of one parent does not end what is another's.
func TestTheSameKeyIsTheSameChild(t *testing.T) {
	child := flow(t, `await sleep(600); return uuid();`)
	p := flow(t, `return (await spawn({ workflow: "child", input: {}, key: "nightly" })).outputs.result;`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find})
		var ids []string
		for range 3 {
			ids = append(ids, r.submit(p, nil))
			time.Sleep(time.Second)
		}
		if _, err := r.e.Cancel(t.Context(), ids[2], "not this one"); err != nil {
			t.Fatal(err)
		}
		r.e.Stop()
		r.start()
		a, b := r.wait(ids[0]), r.wait(ids[1])
		if a.Status != run.Completed || b.Status != run.Completed || a.Children[0] != b.Children[0] || r.output(ids[0], "result") != r.output(ids[1], "result") {
			t.Errorf("%s %s, children %v %v", a.Status, b.Status, a.Children, b.Children)
		}
		late := r.submit(p, nil) // long after its end
		if v := r.wait(late); v.Status != run.Completed || v.Ended.Sub(v.Created) > time.Minute {
			t.Errorf("%s after %s", v.Status, fmt.Sprint(v.Ended.Sub(v.Created)))
		}
	})
}

// TestOneHostIsEnoughForATree: a parent that waits for its child does not keep the host that the child needs.
func TestOneHostIsEnoughForATree(t *testing.T) {
	p := flow(t, `if (input.depth === 0) return (await generate({ model: "small:8b", prompt: "leaf", schema: Answer })).of;
  return (await spawn({ workflow: "self", input: { depth: input.depth - 1 } })).outputs.result;`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"self": p}.find, MaxScripts: 1})
		id := r.submit(p, map[string]any{"depth": 5})
		if v := r.wait(id); v.Status != run.Completed || r.output(id, "result") == "null" {
			t.Errorf("%s: %s", v.Status, r.output(id, "result"))
		}
	})
}

// TestAChildMustCoverWhatItIsGiven: a script that drops a file is not done, spawned or not.
func TestAChildMustCoverWhatItIsGiven(t *testing.T) {
	child, err := script.BundleText("child.ts", `import { t } from "loopkeeper";
export const params = t.object({ files: t.array(t.string()) });
export default async function flow() { return 1; }`)
	if err != nil {
		t.Fatal(err)
	}
	p := flow(t, `return (await spawn({ workflow: "child", input: { files: ["a.md"] } })).state;`)
	covers := func(_ context.Context, params, input json.RawMessage) ([]run.Submitted, error) {
		if !strings.Contains(string(params), `"files"`) || string(input) != `{"files":["a.md"]}` {
			t.Errorf("asked for %s of %s", input, params)
		}
		return []run.Submitted{{Key: "a.md"}}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find, Submitted: covers})
		id := r.submit(p, nil)
		v := r.wait(id)
		if c := r.view(v.Children[0]); v.Status != run.Incomplete || c.Status != run.Incomplete || r.output(id, "result") != `"incomplete"` {
			t.Errorf("the child is %s, its parent %s", c.Status, v.Status)
		}
	})
}

// TestAParentOfSimulatedChildrenIsMarked: what its children got from stand-ins is all that it has; so is what they failed with there.
func TestAParentOfSimulatedChildrenIsMarked(t *testing.T) {
	child := flow(t, `return (await generate({ model: "small:8b", prompt: "p", schema: Answer, retry: { attempts: 1 } })).of;`)
	p := flow(t, `return (await spawn({ workflow: "child", input: {} })).state;`)
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFarm(1)
			if fails {
				f.answer = func(Attempt) Result {
					return Result{Failure: &Failure{Kind: "schema_violation", Message: "no", Advice: run.Again}}
				}
			}
			r := newRig(t, f, Options{Workflows: library{"child": child}.find})
			id := r.submit(p, nil)
			if v := r.wait(id); !v.Simulated {
				t.Errorf("the %s parent of %v is not marked", v.Status, v.Children)
			}
			r.e.Stop()
			r.start()
			if v := r.view(id); !v.Simulated {
				t.Error("the mark is gone after a restart")
			}
		})
	}
}
