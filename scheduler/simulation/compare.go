package simulation

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Comparison is what every policy made of the same seeds of one workload.
type Comparison struct {
	Workload *Workload
	Policies []Policy
	Results  [][]*Result // by policy and seed
}

// Compare runs every policy over seeds 0 to n−1 of a workload.
func Compare(wl *Workload, policies []Policy, n int) (*Comparison, error) {
	c := &Comparison{Workload: wl, Policies: policies}
	for _, p := range policies {
		var results []*Result
		for seed := range n {
			r, err := Run(wl, p, uint64(seed))
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}
		c.Results = append(c.Results, results)
	}
	return c, nil
}

// Sample is a figure of every result of a policy, by seed.
func (c *Comparison) Sample(policy int, figure func(*Result) float64) []float64 {
	var out []float64
	for _, r := range c.Results[policy] {
		out = append(out, figure(r))
	}
	return out
}

// Mean is the mean of a figure over the seeds.
func (c *Comparison) Mean(policy int, figure func(*Result) float64) float64 {
	return IntervalOf(c.Sample(policy, figure)).Mean
}

// The figures of the table.
var (
	MeanFlow = func(r *Result) float64 { return r.Mean().Seconds() }
	RunFlow  = func(r *Result) float64 { return r.ByRun.Seconds() }
	Swaps    = func(r *Result) float64 { return float64(r.Swaps) }
	Ratio    = (*Result).Ratio
	WorstRun = func(r *Result) float64 { return r.WorstRun }
)

// columns of the table, after the policy's name.
var columns = []struct {
	title, format string
	figure        func(*Result) float64
}{
	{"makespan / bound", "%.2f", Ratio},
	{"mean flow, s", "%.1f", MeanFlow},
	{"by run, s", "%.1f", RunFlow},
	{"p95, s", "%.0f", func(r *Result) float64 { return r.Quantile(0.95).Seconds() }},
	{"max, s", "%.0f", func(r *Result) float64 { return r.Quantile(1).Seconds() }},
	{"loads", "%.1f", Swaps},
	{"loading, s", "%.0f", func(r *Result) float64 { return r.Loading.Seconds() }},
	{"spilled calls", "%.1f", func(r *Result) float64 { return float64(r.Spills) }},
	{"busy evictions", "%.1f", func(r *Result) float64 { return float64(r.BusyEvictions) }},
	{"fairness", "%.2f", func(r *Result) float64 { return r.Fairness }},
	{"slowest run, × alone", "%.1f", WorstRun},
}

// Table writes the comparison as Markdown: means over the seeds, and the paired difference of the mean flow time to the
// first policy with its 95 % interval.
func (c *Comparison) Table(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "### %s\n\n%s.\n\n| policy |", c.Workload.Name, c.Workload.About); err != nil {
		return err
	}
	line := ""
	for _, col := range columns {
		line += " " + col.title + " |"
	}
	line += " mean flow against " + c.Policies[0].Name + ", s |\n|---|"
	for range len(columns) + 1 {
		line += "--:|"
	}
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		return err
	}
	for i, p := range c.Policies {
		line := "| " + p.Name + " |"
		for _, col := range columns {
			line += fmt.Sprintf(" "+col.format+" |", c.Mean(i, col.figure))
		}
		if i > 0 {
			d := Paired(c.Sample(i, MeanFlow), c.Sample(0, MeanFlow))
			line += fmt.Sprintf(" %+.1f ± %.1f |", d.Mean, d.Half)
		} else {
			line += " |"
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// DecisionTimes are the 50th and 99th percentile and the longest of what scheduler.Place took in the comparisons.
func DecisionTimes(comparisons ...*Comparison) (p50, p99, most time.Duration) {
	var all []time.Duration
	for _, c := range comparisons {
		for _, r := range slices.Concat(c.Results...) {
			all = append(all, r.Decisions...)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
}
