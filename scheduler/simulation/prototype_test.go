package simulation

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// What the research prototype prints is the outside world that this simulator is held against. testdata/prototype.json has
// its calls for three seeds of both workloads, and what each of its policies made of them; prototype_means.json its means
// over 200 seeds. Both were written by its own code.

type recorded struct {
	Kind    string
	Seed    int
	Calls   [][]json.RawMessage // submitted at (seconds), model, prompt, output, waits for
	Results []struct {
		Machines, Policy                string
		Bound, Makespan, Mean, P95, Max float64
		Swaps, Spilled                  int
		Load                            float64
	}
}

func (r *recorded) list(t *testing.T) []Call {
	t.Helper()
	var list []Call
	for _, fields := range r.Calls {
		var c Call
		var at float64
		for i, into := range []any{&at, &c.Model, &c.Prompt, &c.Output, &c.After} {
			if err := json.Unmarshal(fields[i], into); err != nil {
				t.Fatal(err)
			}
		}
		c.At = seconds(at)
		list = append(list, c)
	}
	return list
}

func policies() []Policy {
	return append(slices.Clone(Baselines), Aware("aware", 1, time.Minute), Aware("aware, no regret", 0, time.Minute), Aware("aware, no aging", 1, longest))
}

func policy(t testing.TB, name string) Policy {
	t.Helper()
	all := append(policies(), Loopkeeper)
	i := slices.IndexFunc(all, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no policy %q", name)
	}
	return all[i]
}

func prototypeOn(machines string) Fleet {
	if machines == "AB" {
		return Prototype().only("A", "B")
	}
	return Prototype()
}

// The same calls give the same schedule, call by call, under every policy of the prototype.
func TestPrototypeSchedules(t *testing.T) {
	var all []recorded
	read(t, "testdata/prototype.json", &all)
	for _, r := range all {
		calls := r.list(t)
		for _, want := range r.Results {
			wl := &Workload{Name: r.Kind, Fleet: prototypeOn(want.Machines)}
			got, err := run(wl, policy(t, want.Policy), calls, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []struct {
				name      string
				got, want float64
			}{
				{"lower bound", got.Bound.Seconds(), want.Bound}, {"makespan", got.Makespan.Seconds(), want.Makespan},
				{"mean", got.Mean().Seconds(), want.Mean}, {"p95", got.Quantile(0.95).Seconds(), want.P95}, {"max", got.Quantile(1).Seconds(), want.Max},
				{"swaps", float64(got.Swaps), float64(want.Swaps)}, {"seconds loading", got.Loading.Seconds(), want.Load}, {"spills", float64(got.Spills), float64(want.Spilled)},
			} {
				// A tie within a nanosecond, or 55 MiB of driver constant, may swap two calls.
				if math.Abs(f.got-f.want) > 0.001*f.want {
					t.Errorf("%s seed %d on %s, %s: %s %.4f, want %.4f", r.Kind, r.Seed, want.Machines, want.Policy, f.name, f.got, f.want)
				}
			}
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// With calls of our own generators the means come out as the prototype's over as many seeds, within the noise of both.
func TestPrototypeMeans(t *testing.T) {
	var all []struct {
		Kind, Machines, Policy string
		Ratio, Mean, Swaps     float64
	}
	read(t, "testdata/prototype_means.json", &all)
	for _, want := range all {
		wl := &Workload{Name: want.Kind, Fleet: prototypeOn(want.Machines), Make: Orchestrated}
		if want.Kind == "mixed" {
			wl.Make = Mixed
		}
		var ratio, mean, swaps []float64
		for seed := range uint64(60) {
			r, err := Run(wl, policy(t, want.Policy), seed)
			if err != nil {
				t.Fatal(err)
			}
			ratio, mean, swaps = append(ratio, r.Ratio()), append(mean, r.Mean().Seconds()), append(swaps, float64(r.Swaps))
		}
		for _, f := range []struct {
			name   string
			sample []float64
			want   float64
		}{{"makespan over bound", ratio, want.Ratio}, {"mean", mean, want.Mean}, {"swaps", swaps, want.Swaps}} {
			got := IntervalOf(f.sample)
			// Twice the half-width of a 95 % interval: 132 comparisons are made.
			if math.Abs(got.Mean-f.want) > 2*got.Half+0.02*f.want {
				t.Errorf("%s on %s, %s: %s %.3f ± %.3f, the prototype %.3f", want.Kind, want.Machines, want.Policy, f.name, got.Mean, got.Half, f.want)
			}
		}
	}
}
