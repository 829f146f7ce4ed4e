package simulation

import (
	"math"
	"math/rand/v2"
	"testing"
)

// No policy beats the search, and on the tiny instances Place comes close to it.
func TestOptimum(t *testing.T) {
	for i := range Tiny {
		wl := &Tiny[i]
		var ours []float64
		for seed := range uint64(30) {
			least := Optimum(wl, seed)
			for _, p := range append(policies(), Loopkeeper) {
				r, err := Run(wl, p, seed)
				if err != nil {
					t.Fatal(err)
				}
				if r.Mean().Seconds() < least-0.001 {
					t.Errorf("%s seed %d: %s has a mean flow of %.3f s, the optimum is %.3f s", wl.Name, seed, p.Name, r.Mean().Seconds(), least)
				}
				if p.Name == Loopkeeper.Name {
					ours = append(ours, r.Mean().Seconds()/least)
				}
			}
		}
		t.Logf("%s: mean flow over the optimum %.3f ± %.3f", wl.Name, IntervalOf(ours).Mean, IntervalOf(ours).Half)
	}
}

// a and b do not fit together: a a b ends after 12, 22 and 34 s, and any other order later.
func TestOptimumByHand(t *testing.T) {
	wl := card(func(m *Machine) { m.Solo, m.MaxCalls = true, 1 })
	wl.Make = func(*rand.Rand) []Call { return []Call{call100("a", 0), call100("b", 0), call100("a", 0)} }
	if got, want := Optimum(wl, 0), 68.0/3; math.Abs(got-want) > 1e-6 {
		t.Errorf("mean flow %.3f s, want %.3f s", got, want)
	}
}
