package simulation

import "testing"

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
