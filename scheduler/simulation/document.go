package simulation

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// intro is the start of docs/placement.md.
const intro = `# Placement: measured in simulation

Written by ` + "`make bench-placement`" + `; do not edit. **All of this is simulated.** The real scheduler (` + "`scheduler.Place`" + `) and the policies of
other routers place the same calls on the same simulated machines: %d seeds, every figure a mean over them. The last column is the paired
difference, seed by seed, to loopkeeper with its 95 %% confidence interval; above zero is slower than loopkeeper. *Makespan / bound*
divides by a time that no schedule can be below, and that is loose: at most one load per model is in it. *Slowest run* divides the
time that a run took by the bound of the run alone. *By run* lets each run weigh the same. The machines, the policies and what the simulation leaves out are described in
[scheduler/simulation](../scheduler/simulation/README.md). Other routers' policies are models of what their documentation says, not their code.

## Mean flow time in seconds, and model loads

From the moment a call could run until its end, and the number of loads. The least is bold, with those that the paired interval cannot tell
from it. Beside a huge batch, by call, whoever forgets the small run is the fastest: there the tables below say more.

`

// Document writes the whole report: a table of all workloads, what is not held, the tiny instances, what the bound on waiting does to
// waves, and a table per workload.
func Document(w io.Writer, all []*Comparison, tiny, waves string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, intro, len(all[0].Results[0]))
	summary(&b, all)
	apart(&b, all)
	fmt.Fprintf(&b, "\n## Waves and the bound on waiting\n\n%s%s", aboutWaves, waves)
	fmt.Fprintf(&b, "\n## Against the optimum\n\n%s\n## By workload\n\n", tiny)
	for _, c := range all {
		if err := c.Table(&b); err != nil {
			return err
		}
	}
	p50, p99, most := DecisionTimes(all...)
	fmt.Fprintf(&b, "## Decision time\n\nWhat `scheduler.Place` took on the computer that wrote this, over all simulations: median %s, 99th percentile %s, longest %s.\n",
		p50.Round(time.Microsecond), p99.Round(time.Microsecond), most.Round(time.Microsecond))
	_, err := w.Write(b.Bytes())
	return err
}

// summary is one line per workload, one column per policy. The least mean flow time is bold, and those that the paired
// interval cannot tell from it.
func summary(b *bytes.Buffer, all []*Comparison) {
	b.WriteString("| workload |")
	for _, p := range all[0].Policies {
		fmt.Fprintf(b, " %s |", p.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(all[0].Policies)) + "\n")
	for _, c := range all {
		fmt.Fprintf(b, "| %s |", c.Workload.Name)
		best := 0
		for i := range c.Policies {
			if c.Mean(i, MeanFlow) < c.Mean(best, MeanFlow) {
				best = i
			}
		}
		for i := range c.Policies {
			d := Paired(c.Sample(i, MeanFlow), c.Sample(best, MeanFlow))
			mark := ""
			if i == best || d.Mean-d.Half <= 0 {
				mark = "**"
			}
			fmt.Fprintf(b, " %s%.1f%s · %.0f |", mark, c.Mean(i, MeanFlow), mark, c.Mean(i, Swaps))
		}
		b.WriteString("\n")
	}
}

// aboutWaves introduces what other bounds on waiting would make of the batch in waves.
const aboutWaves = `In *batch in waves* a model writes until the other one's first call has waited for the bound: 60 s, or four times its load time. A longer bound
makes longer waves and fewer loads; without one, all is written before anything is judged.

`

// apart says where a promise does not hold, and why.
func apart(b *bytes.Buffer, all []*Comparison) {
	b.WriteString("\n## Where a promise does not hold in full\n\n`TestThresholds` holds loopkeeper to this: no other policy is significantly faster (but in the adversaries' workloads, where " +
		"only the bound on waiting counts), and one whose mean flow time is within 1.5 × ours makes more loads. Except:\n\n")
	for _, c := range all {
		if c.Workload.Because == "" {
			continue
		}
		fmt.Fprintf(b, "- **%s**: %s. Ours: %.1f loads", c.Workload.Name, c.Workload.Because, c.Mean(0, Swaps))
		best := 0
		for i := 1; i < len(c.Policies); i++ {
			if c.Mean(i, Swaps) <= c.Mean(0, Swaps) && (best == 0 || c.Mean(i, MeanFlow) < c.Mean(best, MeanFlow)) {
				best = i
			}
		}
		if best > 0 {
			d := Paired(c.Sample(best, MeanFlow), c.Sample(0, MeanFlow))
			fmt.Fprintf(b, "; the fastest with no more, %s: %.1f loads, mean flow %+.1f ± %.1f s", c.Policies[best].Name, c.Mean(best, Swaps), d.Mean, d.Half)
		}
		b.WriteString(".\n")
	}
}

// OverOptimum is the mean flow time of a policy over that of the best schedule, on the instances of a tiny workload.
func OverOptimum(wl *Workload, p Policy, n int) (Interval, error) {
	var ratios []float64
	for seed := range uint64(n) {
		r, err := Run(wl, p, seed)
		if err != nil {
			return Interval{}, err
		}
		ratios = append(ratios, r.Mean().Seconds()/Optimum(wl, seed))
	}
	return IntervalOf(ratios), nil
}
