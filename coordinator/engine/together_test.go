package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// What children spend counts against the limit of the run above them, two levels deep and over a restart: when it is reached nothing new
// starts anywhere in the tree, what is in flight ends, and every run of it says whose limit it was.
func TestATreeSpendsOneLimit(t *testing.T) {
	leaf := flow(t, `for (let i = 0; i < 50; i++) await generate({ model: "small:8b", prompt: input.name + i, schema: Answer }); return 1;`)
	middle := flow(t, `return (await spawn({ workflow: "leaf", input: { name: input.name } })).state;`)
	root := flow(t, `return await all(Object.fromEntries(["a", "b", "c"].map((name) => [name, spawn({ workflow: "middle", input: { name } })])));`)
	for name, limits := range map[string]run.Limits{"calls": {Calls: 20}, "tokens": {Tokens: 20 * 15}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(2)
				f.takes = func(Attempt) time.Duration { return 2 * time.Second }
				r := newRig(t, f, Options{Workflows: library{"leaf": leaf, "middle": middle}.find, DefaultLimits: limits})
				id := r.submit(root, nil)
				r.until("some calls were made", func() bool { return len(f.sent()) > 7 })
				if l := r.view(id).Limits[0]; l.Spent < 6 {
					t.Errorf("while children work it has spent %+v", l)
				}
				r.e.Stop()
				r.start()
				v := r.wait(id)
				if v.Status != run.Exhausted || len(v.Children) != 3 || len(v.Limits) != 1 {
					t.Fatalf("%s (%s), children %v, limits %+v", v.Status, v.Error, v.Children, v.Limits)
				}
				l := v.Limits[0]
				var calls, tokens int64
				for _, c := range v.Children {
					mv := r.wait(c)
					lv := r.wait(mv.Children[0])
					calls, tokens = calls+lv.Calls, tokens+lv.PromptTokens+lv.OutputTokens
					if mv.Status != run.Exhausted || lv.Status != run.Exhausted {
						t.Errorf("below it are %s and %s", mv.Status, lv.Status)
					}
					if !strings.Contains(lv.Error, "of run "+id) {
						t.Errorf("the lowest one says %q", lv.Error)
					}
				}
				most := map[string]int64{"calls": 3, "tokens": 3 * tokens / calls}[name] // of the three that were in flight
				if l.Spent < l.Limit || l.Spent > l.Limit+most {
					t.Errorf("spent %d of %d, %d were in flight", l.Spent, l.Limit, most)
				}
				if got := map[string]int64{"calls": calls, "tokens": tokens}[name]; got != l.Spent {
					t.Errorf("the children have spent %d, the books say %d", got, l.Spent)
				}
			})
		})
	}
}

// A run that needed exactly what it was given, in its children, is not ended by that; the next child would be one too many.
func TestChildrenOneAfterTheOther(t *testing.T) {
	child := flow(t, `await generate({ model: "small:8b", prompt: "a", schema: Answer }); return 1;`)
	for n, want := range map[int]run.Status{2: run.Completed, 3: run.Exhausted} {
		p := flow(t, fmt.Sprintf(`for (let i = 0; i < %d; i++) await spawn({ workflow: "child", input: {} }); return 1;`, n))
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newFarm(1), Options{Workflows: library{"child": child}.find, DefaultLimits: run.Limits{Calls: 2}})
			id := r.submit(p, nil)
			if v := r.wait(id); v.Status != want || v.Limits[0].Spent != 2 || len(v.Children) != 2 {
				t.Errorf("%d children: %s (%s), spent %+v, started %v", n, v.Status, v.Error, v.Limits, v.Children)
			}
		})
	}
}
