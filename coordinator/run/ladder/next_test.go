package ladder

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// climb lets every try fail in the same way, with another answer each time, and returns the steps up to the end or limit.
func climb(kind string, models, limit int, shape func(n int, t *Try)) (steps []string) {
	tries := []Try{{Kind: kind}}
	for len(steps) < limit {
		if shape != nil {
			shape(len(tries), &tries[len(tries)-1])
		}
		n := After(tries, models)
		steps = append(steps, fmt.Sprintf("%s %d", n.Step, n.Model))
		if n.Step == Person || n.Step == End {
			break
		}
		tries = append(tries, Try{Kind: kind, Model: n.Model, Step: n.Step})
	}
	return steps
}

// The rows of the research (judgement.md §6.3) that a call's own tries are about.
func TestTheTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   string
		models int
		shape  func(n int, t *Try)
		want   string
	}{
		{"rules of a plan: two repairs, one fresh, another model, a person", PlanInvalid, 2, nil, "repair 0, repair 0, fresh 0, model 1, person 1"},
		{"without another model", PlanInvalid, 1, nil, "repair 0, repair 0, fresh 0, person 0"},
		{"the same plan again: no more repairs", PlanInvalid, 1, func(_ int, t *Try) { t.Answer = "same" }, "repair 0, fresh 0, person 0"},
		{"the same faults again: no more repairs", PlanInvalid, 1, func(_ int, t *Try) { t.Faults = "cycle" }, "repair 0, fresh 0, person 0"},
		{"thinking ate it: more room once", Truncated, 2, nil, "room 0, model 1, reseed 1, reseed 1"},
		{"an abort: another seed, then another model", Broken, 3, nil, "reseed 0, model 1, reseed 1, reseed 1"},
		{"an abort, and no other model", Broken, 1, nil, "reseed 0, reseed 0, reseed 0, reseed 0"},
		{"no structure: the mode is looked for anew", NoStructure, 2, nil, "mode 0, model 1, reseed 1, reseed 1"},
		{"a violation, the same answer each time: another model at once", Violation, 2, func(n int, t *Try) {
			t.Answer = fmt.Sprint(t.Model)
		}, "mode 0, model 1, reseed 1, reseed 1"},
		{"a server's error: the scheduler sees to where", "server_error", 2, nil, "reseed 0, reseed 0, reseed 0, reseed 0"},
	} {
		if got := strings.Join(climb(c.kind, c.models, max(4, strings.Count(c.want, ",")+1), c.shape), ", "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestMost(t *testing.T) {
	for kind, want := range map[string]int{PlanInvalid: 5, Truncated: 0, "server_error": 0} {
		if got := Most(kind); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}

// Whatever fails in whatever order: no bound is exceeded, no model beyond the last is asked, and nobody goes back to an earlier one.
func TestNoBoundIsExceeded(t *testing.T) {
	kinds := []string{Truncated, Broken, Empty, NoStructure, Violation, PlanInvalid, "server_error", "deadline"}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		models := 1 + r.IntN(3)
		taken := map[string]int{}
		tries := []Try{{Kind: kinds[r.IntN(len(kinds))]}}
		for range 40 {
			last := tries[len(tries)-1]
			n := After(tries, models)
			if n.Model < last.Model || n.Model >= models || n.Model > last.Model+1 || (n.Model != last.Model) != (n.Step == Model) {
				t.Fatalf("seed %d: from model %d to %+v of %d", seed, last.Model, n, models)
			}
			if n.Step == Person || n.Step == End {
				break
			}
			name := last.Kind + " " + string(n.Step)
			taken[name]++
			for _, rung := range ladders[last.Kind] {
				if rung.bound == 0 { // the rest is unbounded
					break
				}
				if rung.step == n.Step && rung.step != Reseed && taken[name] > rung.bound {
					t.Fatalf("seed %d: %s is taken %d times", seed, name, taken[name])
				}
			}
			next := Try{Kind: kinds[r.IntN(len(kinds))], Model: n.Model, Step: n.Step}
			if r.IntN(3) == 0 {
				next.Answer = fmt.Sprint(r.IntN(3))
			}
			if r.IntN(3) == 0 {
				next.Faults = fmt.Sprint(r.IntN(2))
			}
			tries = append(tries, next)
		}
	}
}

// A plan is tried five times at most, whatever comes between.
func TestAPlanIsTriedFiveTimesAtMost(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		tries := []Try{{Kind: PlanInvalid}}
		for {
			if r.IntN(2) == 0 {
				tries[len(tries)-1].Faults = fmt.Sprint(r.IntN(3))
			}
			n := After(tries, 2)
			if n.Step == Person {
				break
			}
			tries = append(tries, Try{Kind: PlanInvalid, Model: n.Model, Step: n.Step})
			if len(tries) > 5 {
				t.Fatalf("seed %d: %d tries", seed, len(tries))
			}
		}
	}
}
