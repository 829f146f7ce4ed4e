package simulation

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// The rules that the simulated machines follow, each with figures that can be worked out by hand.

// card is a machine of 10 GB on which models a and b, of 6 GB each, do not fit together, and c, of 2 GB, fits beside either. A call of
// 100 tokens takes 10 s, a load 2 s.
func card(change func(m *Machine), faults ...Fault) *Workload {
	m := Machine{Name: "card", Kind: scheduler.PoolDevice, Usable: 10 * gb, LoadRate: 4 * gb, Fixed: time.Second, Slots: 1,
		Rates: map[string]Rate{"a": {10, 10}, "b": {10, 10}, "c": {10, 10}}}
	change(&m)
	return &Workload{Name: "card", Faults: faults, Fleet: Fleet{Machines: []Machine{m}, Models: []Model{
		{Name: "a", Need: 6 * gb, File: 4 * gb}, {Name: "b", Need: 6 * gb, File: 4 * gb}, {Name: "c", Need: 2 * gb, File: 4 * gb}}}}
}

func call100(model string, at time.Duration) Call {
	return Call{Run: "run", Model: model, At: at, Prompt: 50, Output: 50}
}

// turn is one of which 40 tokens of the prompt are shared.
func turn(affinity string, at time.Duration) Call {
	c := call100("a", at)
	c.Affinity, c.Shared = affinity, 40
	return c
}

// ends are the seconds at which the calls end under round-robin, which sends everything at once to the only machine.
func ends(t *testing.T, wl *Workload, list ...Call) ([]float64, *Result) {
	t.Helper()
	r, err := run(wl, binding("all", "", false, roundRobin), list, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	for i, f := range r.Flows {
		out = append(out, (list[i].At + f).Seconds())
	}
	return out, r
}

func near(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.001 {
			t.Errorf("%s: ends at %.3f, want %.3f", what, got, want)
			return
		}
	}
}

func same(*Machine) {}

func TestMachine(t *testing.T) {
	tests := []struct {
		name   string
		change func(m *Machine)
		faults []Fault
		list   []Call
		want   []float64
		swaps  int
		spills int
	}{
		{"a load comes before the first call", same, nil, []Call{call100("a", 0), call100("a", 0)}, []float64{12, 22}, 1, 0},
		{"a busy model is not evicted, and who waits for its memory holds up those behind", same, nil,
			[]Call{call100("a", 0), call100("b", 1*time.Second), call100("a", 2*time.Second)}, []float64{12, 24, 36}, 3, 0},
		{"what fits is loaded beside a running call, and both then share the machine", same, nil,
			[]Call{call100("a", 0), call100("c", 2*time.Second)}, []float64{20, 22}, 2, 0}, // a is alone until 4, c from 20 on
		{"on a Solo machine a load waits for the call", func(m *Machine) { m.Solo = true }, nil,
			[]Call{call100("a", 0), call100("c", 2*time.Second)}, []float64{12, 24}, 2, 0},
		{"two calls of one model slow each other", func(m *Machine) { m.Slots = 2 }, nil,
			[]Call{call100("a", 0), call100("a", 0)}, []float64{15.5, 15.5}, 1, 0},
		{"a cap on calls holds over models", func(m *Machine) { m.MaxCalls = 1 }, nil,
			[]Call{call100("a", 0), call100("c", 2*time.Second), call100("a", 2*time.Second)}, []float64{12, 22, 32}, 2, 0},
		{"a warm prompt needs no work, until another call had the slot", same, nil,
			[]Call{turn("x", 0), turn("x", 1*time.Second), turn("y", 2*time.Second), turn("x", 3*time.Second)}, []float64{12, 18, 28, 38}, 1, 0},
		{"an unload takes its time", func(m *Machine) { m.Unload = time.Second }, nil,
			[]Call{call100("a", 0), call100("b", 0)}, []float64{12, 25}, 2, 0},
		{"what does not fit even alone spills, and is eight times slower", func(m *Machine) { m.Usable = 5 * gb }, nil,
			[]Call{call100("a", 0)}, []float64{82}, 1, 1},
		{"memory of another program makes a load spill", same, []Fault{{Machine: "card", Kind: Foreign, Bytes: 5 * gb}},
			[]Call{call100("a", time.Second)}, []float64{83}, 1, 1},
		{"a machine that is lost gives its calls back after a while, and those wait until it is there again", same,
			[]Fault{{At: 5 * time.Second, Machine: "card", Kind: Lose}, {At: 30 * time.Second, Machine: "card", Kind: Back}},
			[]Call{call100("a", 0)}, []float64{42}, 2, 0},
		{"one that breaks in a load comes back empty", same,
			[]Fault{{Machine: "card", Kind: LoseLoad}, {At: 30 * time.Second, Machine: "card", Kind: Back}},
			[]Call{call100("a", time.Second)}, []float64{42}, 2, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, r := ends(t, card(test.change, test.faults...), test.list...)
			near(t, test.name, got, test.want...)
			if r.Swaps != test.swaps || r.Spills != test.spills {
				t.Errorf("%d loads and %d spilled calls, want %d and %d", r.Swaps, r.Spills, test.swaps, test.spills)
			}
		})
	}
}

// The executor of Place undoes a load that spilled, and the model goes to the machine that holds it.
func TestSpillIsUndone(t *testing.T) {
	wl := card(same, Fault{Machine: "card", Kind: Foreign, Bytes: 5 * gb})
	slow := wl.Fleet.Machines[0]
	slow.Name, slow.Rates = "slow", map[string]Rate{"a": {5, 5}, "b": {5, 5}, "c": {5, 5}}
	wl.Fleet.Machines = append(wl.Fleet.Machines, slow)
	wl.Faults[0].At = 100 * time.Millisecond // after the report that the decision rests on
	r, err := run(wl, Loopkeeper, []Call{call100("a", 200*time.Millisecond)}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.SpilledLoads != 1 || r.Spills != 0 {
		t.Errorf("%d spilled loads and %d spilled calls, want 1 and 0", r.SpilledLoads, r.Spills)
	}
	if want := 24.2; math.Abs(r.Makespan.Seconds()-want) > 0.001 {
		t.Errorf("ended at %s, want %.1f s: two loads, and the call on the slow machine", r.Makespan, want)
	}
}

func TestSameSeedSameResult(t *testing.T) {
	for i := range Suite {
		if Suite[i].Small {
			continue // the longest, and no different
		}
		for _, p := range []Policy{Loopkeeper, Baselines[6]} {
			var results []*Result
			for range 2 {
				r, err := Run(&Suite[i], p, 3)
				if err != nil {
					t.Fatal(err)
				}
				r.Decisions = nil
				results = append(results, r)
			}
			if !reflect.DeepEqual(results[0], results[1]) {
				t.Errorf("%s, %s: two results of one seed", Suite[i].Name, p.Name)
			}
		}
	}
}

// Speeds that nobody knows are known after the first call.
func TestSpeedsAreLearned(t *testing.T) {
	wl := card(same)
	wl.Unknown = true
	w := newWorld(wl, []Call{call100("a", 0), call100("a", 0)}, 0)
	c := w.calls[0]
	if got := w.speeds.service(c, 0); got != unknownService {
		t.Errorf("expects %s before the first call", got)
	}
	c.prompt = c.Prompt
	w.speeds.learn(c, 0, 10*time.Second)
	if got := w.speeds.service(w.calls[1], 0); got != 10*time.Second {
		t.Errorf("expects %s after a call of 10 s", got)
	}
	w.speeds.learn(c, 0, 20*time.Second)
	v := w.speeds.by[0][0]
	if math.Abs(v.Decode-8.75) > 1e-9 || v.Service != 12500*time.Millisecond {
		t.Errorf("after one call at half the speed: %+v", v)
	}
}

// The percentiles of Student's t, from any table.
func TestStudent(t *testing.T) {
	for degrees, want := range map[int]float64{4: 2.776, 7: 2.365, 9: 2.262, 29: 2.045, 59: 2.001} {
		if got := student(degrees); math.Abs(got-want) > 0.01*want {
			t.Errorf("%d degrees of freedom: %.4f, want %.3f", degrees, got, want)
		}
	}
}

// A 95 % interval holds the true mean in 95 of 100 samples.
func TestInterval(t *testing.T) {
	rnd, held := rand.New(rand.NewPCG(1, 2)), 0
	for range 2000 {
		var sample []float64
		for range 8 {
			sample = append(sample, rnd.NormFloat64())
		}
		if i := IntervalOf(sample); math.Abs(i.Mean) <= i.Half {
			held++
		}
	}
	if held < 1870 || held > 1930 {
		t.Errorf("%d of 2000 intervals hold the mean", held)
	}
}
