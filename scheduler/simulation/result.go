package simulation

import (
	"slices"
	"time"
)

// Result is what came of one simulation.
type Result struct {
	Makespan      time.Duration   // until the last call ended
	Bound         time.Duration   // no schedule is shorter, see lowerBound
	Flows         []time.Duration // per call, from when it could run until its end
	Swaps         int             // loads
	Loading       time.Duration   // their sum
	Spills        int             // calls that ran on a model that was partly in host memory
	SpilledLoads  int
	Unloads       int             // that the scheduler ordered
	Evictions     int             // by Ollama on its own account
	BusyEvictions int             // unloads that were ordered while a call ran on the model
	Impossible    int             // decisions that a call fits nowhere
	ByRun         time.Duration   // mean over the runs of their mean flow times: each run weighs the same
	Fairness      float64         // Jain's index over the runs, of the bound of a run alone / the time that it took
	WorstRun      float64         // the largest of these ratios the other way round
	RareWait      time.Duration   // longest wait for a start of Workload.Rare
	Decisions     []time.Duration // what scheduler.Place took on this computer
}

// Mean is the mean flow time.
func (r *Result) Mean() time.Duration { return mean(r.Flows) }

func mean(flows []time.Duration) time.Duration {
	var sum time.Duration
	for _, f := range flows {
		sum += f
	}
	return sum / time.Duration(len(flows))
}

// Quantile is the flow time that a share q of the calls does not exceed.
func (r *Result) Quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(r.Flows))
	return sorted[int(q*float64(len(sorted)-1))]
}

// Ratio is the makespan over its lower bound.
func (r *Result) Ratio() float64 { return r.Makespan.Seconds() / r.Bound.Seconds() }

func (r *Result) measure(w *world) {
	var runs []string
	flows := map[string][]time.Duration{}
	ends := map[string]time.Duration{}
	begins := map[string]time.Duration{}
	for _, c := range w.calls {
		r.Makespan = max(r.Makespan, c.end)
		r.Flows = append(r.Flows, c.end-c.ready)
		if c.Model == w.Rare {
			r.RareWait = max(r.RareWait, c.started-c.ready)
		}
		if _, seen := ends[c.Run]; !seen {
			runs = append(runs, c.Run)
			begins[c.Run] = c.At
		}
		flows[c.Run] = append(flows[c.Run], c.end-c.ready)
		begins[c.Run] = min(begins[c.Run], c.At)
		ends[c.Run] = max(ends[c.Run], c.end)
	}
	r.Bound = w.lowerBound(func(*call) bool { return true })
	var sum, squares float64
	for _, run := range runs {
		alone := w.lowerBound(func(c *call) bool { return c.Run == run }) - begins[run]
		x := alone.Seconds() / (ends[run] - begins[run]).Seconds()
		sum += x
		squares += x * x
		r.ByRun += mean(flows[run]) / time.Duration(len(runs))
		r.WorstRun = max(r.WorstRun, 1/x)
	}
	r.Fairness = sum * sum / (float64(len(runs)) * squares)
}

func (w *world) cheapestLoad(model int) time.Duration {
	least := longest
	for i, s := range w.servers {
		if w.fits(model, i) {
			least = min(least, s.loadTime(&w.fleet.Models[model]))
		}
	}
	return least
}

// fastest is the service time of a call on the machine that is best for it, where its prompt is warm.
func (w *world) fastest(c *call) time.Duration {
	least := longest
	for i := range w.servers {
		if w.fits(c.model, i) {
			least = min(least, w.serviceOf(c, i, c.Prompt-c.Shared, c.Output))
		}
	}
	return least
}

// lowerBound is the formula of research/scheduling.md section 5.3 for some of the calls: the largest of the critical path at the
// fastest rates without loads, all work at the fastest rates with one load per model over all machines, and the work that only one
// machine can do. A machine that runs several calls at once counts as many times as it gains by that.
func (w *world) lowerBound(counts func(*call) bool) time.Duration {
	begin, path := longest, time.Duration(0)
	finish := make([]time.Duration, len(w.calls))
	alone := make([]float64, len(w.servers))
	var work, gains float64
	seen := make([]bool, len(w.fleet.Models))
	for i, c := range w.calls { // a call comes after those that it waits for
		if !counts(c) {
			continue
		}
		begin = min(begin, c.At)
		start := c.At
		for _, before := range c.After {
			start = max(start, finish[before])
		}
		finish[i] = start + w.fastest(c)
		path = max(path, finish[i])
		work += w.fastest(c).Seconds()
		if !seen[c.model] {
			seen[c.model] = true
			work += w.cheapestLoad(c.model).Seconds()
		}
		if only := w.only(c.model); only >= 0 {
			alone[only] += w.serviceOf(c, only, c.Prompt-c.Shared, c.Output).Seconds() / w.servers[only].gain()
		}
	}
	for _, s := range w.servers {
		gains += s.gain()
	}
	return max(path, begin+seconds(max(work/gains, slices.Max(alone))))
}

// only is the one machine that can hold a model, or -1.
func (w *world) only(model int) int {
	among := -1
	for i := range w.servers {
		if w.fits(model, i) {
			if among >= 0 {
				return -1
			}
			among = i
		}
	}
	return among
}
