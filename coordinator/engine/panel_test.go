package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// panelFarm has two machines with a writer and judges of two families; the first choice of the writers is on neither.
func panelFarm() (*farm, Options) {
	f := newFarm(2)
	for _, m := range f.nodes {
		m.Models = append(m.Models, model("critic:8b"))
	}
	return f, Options{Pins: Pins{Roles: map[string][]run.RoleModel{
		"writer": {{Model: "big:70b"}, {Model: "small:8b"}},
		"judge":  {{Model: "small:8b"}, {Model: "judge:8b"}, {Model: "critic:8b"}},
	}, Prompts: map[string]string{"check_role": "You judge.", "plan_role": "You plan."}}}
}

const panelScript = `
  const r = await batch({ items: input.items, model: "writer", prompt: "{{item}}", schema: Answer, evaluate: { criteria: ["good"], model: "judge" } });
  const v = await evaluate({ criteria: ["good"], model: "judge", subject: "a text" });
  return [r.succeeded, v.verdict];`

// TestRolesAndPanels has what no machine holds passed over, and what was written judged by two who are no relatives of its writer.
func TestRolesAndPanels(t *testing.T) {
	p := program(t, panelScript)
	synctest.Test(t, func(t *testing.T) {
		f, o := panelFarm()
		r := newRig(t, f, o)
		id := r.submit(p, items(3))
		if v := r.wait(id); v.Status != run.Completed || r.output(id, "result") != `[3,"passed"]` {
			t.Fatalf("%s: %s, %+v", v.Status, r.output(id, "result"), v.Failures)
		}
		asked := map[string]int{}
		for _, a := range f.sent() {
			asked[fmt.Sprint(a.Kind, " ", a.Model, " ", a.Reversed)]++
			if a.Prompts["check_role"] == "" {
				t.Errorf("the texts that the run has pinned do not go along: %+v", a.Prompts)
			}
		}
		want := map[string]int{"generate small:8b false": 3, "evaluate judge:8b false": 3, "evaluate critic:8b true": 3, // of the batch
			"evaluate small:8b false": 1, "evaluate judge:8b true": 1}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("asked are %v, want %v", asked, want)
		}
		if has, err := r.store.HasArtifact(t.Context(), f.sent()[0].Prompts["check_role"]); err != nil || !has {
			t.Errorf("the pinned text is not kept: %v", err)
		}
		r.once(id)
	})
}

// A name that is neither a model nor a role says what could be meant.
func TestARoleThatNobodyDefined(t *testing.T) {
	p := program(t, `return await generate({ model: "reviewer", prompt: "x" });`)
	synctest.Test(t, func(t *testing.T) {
		f, o := panelFarm()
		r := newRig(t, f, o)
		v := r.wait(r.submit(p, map[string]any{}))
		if len(v.Failures) != 1 || v.Failures[0].Kind != run.KindModelMissing || !slices.ContainsFunc(v.Failures[0].Next, func(n string) bool { return strings.Contains(n, "roles:") }) {
			t.Errorf("%+v", v.Failures)
		}
	})
}

// TestCrashesBetweenJudges lets the process die at random commits: nobody is asked twice, and the verdicts are those of an undisturbed run.
func TestCrashesBetweenJudges(t *testing.T) {
	p := program(t, panelScript)
	for seed := range seeds(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 5))
				f, o := panelFarm()
				r := newRig(t, f, o)
				id := r.submit(p, items(6))
				crashes := 0
				for ended := false; !ended && crashes < 15; {
					r.store.before = rng.IntN(2) == 0
					r.store.left.Store(1 + rng.Int64N(8))
					select {
					case <-r.e.Done():
						crashes++
						r.store.left.Store(0)
						r.start()
					case <-time.After(time.Hour):
						ended = true
					}
				}
				r.store.left.Store(0)
				v := r.wait(id)
				if v.Status != run.Completed || r.output(id, "result") != `[6,"passed"]` || v.Calls != 6*3+2 || crashes < 3 {
					t.Fatalf("after %d crashes %s, %d calls: %s %+v", crashes, v.Status, v.Calls, r.output(id, "result"), v.Failures)
				}
				r.once(id)
			})
		})
	}
}

// What was accepted is taken over by whichever of the models it is from; another judge, or another text for judges, makes it another request.
func TestReuseGoesByTheModelThatMadeIt(t *testing.T) {
	p := program(t, strings.Replace(strings.Split(panelScript, "\n  const v")[0], "schema: Answer", "schema: Answer, reuse: true", 1)+" return r.succeeded;")
	synctest.Test(t, func(t *testing.T) {
		f, o := panelFarm()
		r := newRig(t, f, o)
		calls := func(change func(*Pins)) int64 {
			r.e.Stop()
			change(&o.Pins)
			r.opts = o
			r.start()
			return r.wait(r.submit(p, items(2))).Calls
		}
		if n := calls(func(*Pins) {}); n != 6 {
			t.Fatalf("the first run has %d calls", n)
		}
		if n := calls(func(*Pins) {}); n != 0 {
			t.Errorf("the same again has %d calls", n)
		}
		if n := calls(func(p *Pins) { p.Prompts = map[string]string{"check_role": "You judge.", "plan_role": "Plan!"} }); n != 0 {
			t.Errorf("with another text for plans it has %d calls", n)
		}
		if n := calls(func(p *Pins) { p.Prompts = map[string]string{"check_role": "You judge strictly."} }); n != 6 {
			t.Errorf("with another text for judges it has %d calls", n)
		}
		if n := calls(func(p *Pins) {
			p.Roles = map[string][]run.RoleModel{"writer": {{Model: "small:8b"}}, "judge": {{Model: "judge:8b"}, {Model: "critic:8b"}}}
		}); n != 6 {
			t.Errorf("with other judges it has %d calls", n)
		}
		if n := calls(func(p *Pins) {
			p.Roles = map[string][]run.RoleModel{"writer": {{Model: "none:1b"}, {Model: "small:8b"}}, "judge": {{Model: "judge:8b"}, {Model: "critic:8b"}}}
		}); n != 0 {
			t.Errorf("with the writer in another place it has %d calls", n)
		}
	})
}
