package simulation

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

var table = flag.String("table", "", "file to write the report to; also makes the seeds 30")

// testSeeds keep go test short. make bench-placement asserts the same over 30.
const (
	testSeeds  = 6
	benchSeeds = 30
)

// TestPinned holds Place to what the research prototype reached, on its machines and calls, with the planner pinned. A mean over
// few seeds would say little, so it is always over all of them.
func TestPinned(t *testing.T) {
	i := slices.IndexFunc(Suite, func(wl Workload) bool { return wl.Name == "orchestrated, A+B, pinned" })
	c, err := Compare(&Suite[i], []Policy{Loopkeeper}, benchSeeds)
	if err != nil {
		t.Fatal(err)
	}
	ratio, mean := c.Mean(0, Ratio), c.Mean(0, MeanFlow)
	t.Logf("makespan %.3f of the bound, mean flow %.1f s", ratio, mean)
	if ratio > 1.35 || mean > 60 {
		t.Errorf("makespan %.3f of the bound, want 1.35; mean flow %.1f s, want 60", ratio, mean)
	}
}

// TestThresholds holds Place to what it promises against every baseline.
func TestThresholds(t *testing.T) {
	n := testSeeds
	if *table != "" {
		n = benchSeeds
	}
	var all []*Comparison
	for i := range Suite {
		c, err := Compare(&Suite[i], append([]Policy{Loopkeeper}, Baselines...), n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		t.Run(c.Workload.Name, func(t *testing.T) { c.hold(t) })
	}
	tiny := tinyTable(t)
	if *table == "" {
		return
	}
	var b bytes.Buffer
	if err := Document(&b, all, tiny, waveTable(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*table, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *Comparison) hold(t *testing.T) {
	wl := c.Workload
	for seed, r := range c.Results[0] {
		if r.Spills > 0 || r.SpilledLoads > 0 && wl.Error == 0 {
			t.Errorf("seed %d: %d calls and %d loads spilled", seed, r.Spills, r.SpilledLoads)
		}
		if r.BusyEvictions+r.Impossible > 0 {
			t.Errorf("seed %d: %d unloads of busy models, %d calls called impossible", seed, r.BusyEvictions, r.Impossible)
		}
	}
	if spilled := c.Mean(0, func(r *Result) float64 { return float64(r.SpilledLoads) }); spilled > 1 {
		t.Errorf("%.1f loads spilled", spilled) // what is learned from one keeps the next from it
	}
	flow := MeanFlow
	if wl.Small {
		flow = RunFlow
		c.holdSmall(t)
	}
	for i := range c.Policies[1:] {
		if wl.Rare == "" {
			c.holdFlow(t, i+1, flow)
		}
		c.holdLoads(t, i+1, flow)
	}
	if wl.Rare != "" {
		c.holdWait(t)
	}
}

// holdFlow: nobody is significantly faster.
func (c *Comparison) holdFlow(t *testing.T, i int, flow func(*Result) float64) {
	if d := Paired(c.Sample(0, flow), c.Sample(i, flow)); d.Mean-d.Half > 0 {
		t.Errorf("mean flow %.1f s, %s %.1f s: %.1f ± %.1f s slower", c.Mean(0, flow), c.Policies[i].Name, c.Mean(i, flow), d.Mean, d.Half)
	}
}

// holdLoads: whoever comes near needs more loads. Who makes the fewest that there can be makes no fewer than ours, or is slower.
func (c *Comparison) holdLoads(t *testing.T, i int, flow func(*Result) float64) {
	ours, theirs := c.Mean(0, Swaps), c.Mean(i, Swaps)
	if theirs > ours || c.Mean(i, flow) > 1.5*c.Mean(0, flow) {
		return
	}
	d := Paired(c.Sample(i, flow), c.Sample(0, flow))
	if least := float64(c.Workload.Fewest); theirs <= least && (ours <= theirs || d.Mean-d.Half > 0) {
		return
	}
	t.Errorf("%.1f loads, %s %.1f with a mean flow of %.1f s against %.1f s", ours, c.Policies[i].Name, theirs, c.Mean(i, flow), c.Mean(0, flow))
}

// holdSmall: the calls of the small run come one after the other, and each waits for a call of the batch to end; two models are loaded.
// That costs the batch little.
func (c *Comparison) holdSmall(t *testing.T) {
	if slow := c.Mean(0, WorstRun); slow > 5 {
		t.Errorf("the slower run took %.1f times what it would take alone, want 5", slow)
	}
	for i, p := range c.Policies {
		if ours, theirs := c.Mean(0, MeanFlow), c.Mean(i, MeanFlow); ours > 1.05*theirs {
			t.Errorf("mean flow by call %.1f s, %s %.1f s", ours, p.Name, theirs)
		}
	}
}

// holdWait: a rare model waits for its bound at most, then for the longest call that runs, a report, an unload and its load.
func (c *Comparison) holdWait(t *testing.T) {
	wl := c.Workload
	for seed, r := range c.Results[0] {
		w := newWorld(wl, wl.calls(uint64(seed)), uint64(seed))
		model := wl.Fleet.model(wl.Rare)
		var call time.Duration
		for _, c := range w.calls {
			for i := range w.servers {
				if w.fits(model, i) && w.fits(c.model, i) {
					call = max(call, w.service(c, i, c.Output))
				}
			}
		}
		load := w.cheapestLoad(model)
		if most := max(time.Minute, 4*load) + call + reportEvery + load; r.RareWait > most {
			t.Errorf("seed %d: a call of %s waited %s, want %s at most", seed, wl.Rare, r.RareWait, most)
		}
	}
}

// tinyTable holds Place to the optimum of the tiny instances, and is a table of how far every policy is from it.
func tinyTable(t *testing.T) string {
	text := "Mean flow time over that of the best schedule, found by search, for four to eight calls that come at once.\n\n| policy |"
	line := "\n|---|"
	for i := range Tiny {
		text += " " + Tiny[i].Name + " |"
		line += "--:|"
	}
	text += line + "\n"
	for _, p := range append([]Policy{Loopkeeper}, Baselines...) {
		text += "| " + p.Name + " |"
		sum := 0.0
		for i := range Tiny {
			over, err := OverOptimum(&Tiny[i], p, benchSeeds)
			if err != nil {
				t.Fatal(err)
			}
			sum += over.Mean
			text += fmt.Sprintf(" %.2f ± %.2f |", over.Mean, over.Half)
		}
		text += "\n"
		if mean := sum / float64(len(Tiny)); p.Name == Loopkeeper.Name && mean > 1.05 {
			t.Errorf("tiny instances: mean flow %.3f of the optimum, want 1.05", mean)
		}
	}
	return text
}

// waveTable is what other bounds on waiting would make of the batch in waves.
func waveTable(t *testing.T) string {
	i := slices.IndexFunc(Suite, func(wl Workload) bool { return wl.Name == "batch in waves" })
	text := "| bound on waiting | mean flow, s | loads | makespan / bound |\n|---|--:|--:|--:|\n"
	for _, bound := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 10 * time.Minute} {
		wl := Suite[i]
		wl.MaxWait = bound
		c, err := Compare(&wl, []Policy{Loopkeeper}, benchSeeds)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("| %.0f s | %.1f | %.1f | %.2f |\n", bound.Seconds(), c.Mean(0, MeanFlow), c.Mean(0, Swaps), c.Mean(0, Ratio))
	}
	return text
}
