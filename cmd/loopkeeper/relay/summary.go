package relay

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Summary is what a benchmark found.
type Summary struct {
	Model     string   `json:"model"`
	Simulated bool     `json:"simulated"` // a player played, and no model
	Tasks     int      `json:"tasks"`     // per family and size
	Tries     int      `json:"tries"`
	Families  []Family `json:"families"`
	Sizes     []int    `json:"sizes"`
	Arms      []Arm    `json:"arms"`
	Context   int      `json:"context"` // tokens
	BySize    []Cell   `json:"by_size"`
	ByFamily  []Cell   `json:"by_family"`
	Pairs     []Pair   `json:"pairs"`
}

// Cell is what an arm did at a size, in all families or in one. Rates of the metrics that an arm with the loop in code cannot have are nil.
type Cell struct {
	Arm          Arm            `json:"arm"`
	Size         int            `json:"size"`
	Family       Family         `json:"family,omitempty"`
	Runs         int            `json:"runs"`
	Broken       int            `json:"broken"` // runs without an outcome; they count as no success
	Succeeded    int            `json:"succeeded"`
	Success      Interval       `json:"success"`
	Dropped      Interval       `json:"dropped"`      // these three and the next: of the required calls
	Duplicated   Interval       `json:"duplicated"`   //
	Hallucinated Interval       `json:"hallucinated"` //
	Fabricated   Interval       `json:"fabricated"`
	Printed      *Interval      `json:"printed,omitempty"` // these two: of the turns
	Empty        *Interval      `json:"empty,omitempty"`
	Premature    Interval       `json:"premature"` // these: of the runs
	NoEnd        Interval       `json:"no_end"`
	Early        Interval       `json:"early"` // runs with a call before its argument existed
	Poisoned     Interval       `json:"poisoned"`
	Cost         Cost           `json:"cost"`               // of a run, the mean
	Nudged       float64        `json:"nudged"`             // nudges of a run, the mean
	Failures     map[string]int `json:"failures,omitempty"` // of an arm with the loop in code
	Independent  float64        `json:"independent"`        // what success would be if each call failed for itself, as often as at the smallest size
	PassAll      *float64       `json:"pass_5,omitempty"`   // tasks that end well in all of five tries
}

// Pair compares arms over the same tasks and tries.
type Pair struct {
	First  Arm     `json:"first"`
	Second Arm     `json:"second"`
	Size   int     `json:"size"` // 0: all
	Both   int     `json:"both"`
	Won    int     `json:"won"`  // only the first arm ended these well
	Lost   int     `json:"lost"` // only the second did
	None   int     `json:"none"`
	P      float64 `json:"p"` // McNemar, exact, two-sided
}

// pairs are the comparisons: the product's effect, bookkeeping alone, and the planning loss.
var pairs = [][2]Arm{{InCode, InModel}, {InCodeGold, InModelGold}, {InCodeGold, InCode}}

const passTries = 5

// Sum sums records up.
func Sum(o Options, r Result) Summary {
	o = o.withDefaults()
	records := r.Records
	s := Summary{Model: o.Model, Simulated: r.Simulated, Tasks: o.Tasks, Tries: o.Tries, Families: o.Families, Sizes: slices.Sorted(slices.Values(o.Sizes)), Arms: o.Arms, Context: r.Context}
	for _, arm := range o.Arms {
		base := math.NaN()
		for _, size := range s.Sizes {
			of := filter(records, func(r Record) bool { return r.Arm == arm && r.Size == size })
			c := cell(of)
			c.Arm, c.Size = arm, size
			if math.IsNaN(base) && c.Runs > 0 {
				base = math.Pow(c.Success.Rate, 1/float64(size))
			}
			c.Independent = math.Pow(base, float64(size))
			if c.Runs > 0 {
				s.BySize = append(s.BySize, c)
			}
			for _, f := range o.Families {
				c := cell(filter(of, func(r Record) bool { return r.Family == f }))
				if c.Arm, c.Size, c.Family = arm, size, f; c.Runs > 0 {
					s.ByFamily = append(s.ByFamily, c)
				}
			}
		}
	}
	for _, p := range pairs {
		for _, size := range append(slices.Clone(s.Sizes), 0) {
			if pair := compare(records, p[0], p[1], size); pair.Both+pair.Won+pair.Lost+pair.None > 0 {
				s.Pairs = append(s.Pairs, pair)
			}
		}
	}
	return s
}

func filter(records []Record, keep func(Record) bool) (out []Record) {
	for _, r := range records {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

func cell(records []Record) Cell {
	c := Cell{Runs: len(records), Failures: map[string]int{}}
	sort(records)
	required := func(r Record) float64 { return float64(r.Size) }
	turns := func(r Record) float64 { return float64(r.Turns) }
	c.Success, c.Succeeded = share(records, func(r Record) bool { return r.Success })
	c.Dropped = rate(records, func(r Record) float64 { return r.Dropped * float64(r.Size) }, required)
	c.Duplicated = rate(records, func(r Record) float64 { return r.Duplicated * float64(r.Size) }, required)
	c.Hallucinated = rate(records, func(r Record) float64 { return r.Hallucinated * float64(r.Size) }, required)
	c.Fabricated = rate(records, func(r Record) float64 { return float64(r.Fabricated) }, required)
	c.Premature, _ = share(records, func(r Record) bool { return r.Premature })
	c.NoEnd, _ = share(records, func(r Record) bool { return r.NoEnd })
	c.Early, _ = share(records, func(r Record) bool { return r.Early > 0 })
	c.Poisoned, _ = share(records, func(r Record) bool { return r.Poisoned })
	if len(records) > 0 && !records[0].Arm.ByCode() {
		printed := rate(records, func(r Record) float64 { return float64(r.Printed) }, turns)
		empty := rate(records, func(r Record) float64 { return float64(r.Empty) }, turns)
		c.Printed, c.Empty = &printed, &empty
	}
	for _, r := range records {
		c.add(r)
	}
	c.PassAll = passAll(records)
	return c
}

// add adds a run to the means and counts.
func (c *Cell) add(r Record) {
	n := float64(c.Runs)
	c.Cost.PromptTokens += r.Cost.PromptTokens
	c.Cost.OutputTokens += r.Cost.OutputTokens
	c.Cost.Calls += r.Cost.Calls
	c.Cost.Nudges += r.Cost.Nudges
	c.Cost.PrefillMS += r.Cost.PrefillMS / n
	c.Cost.Seconds += r.Cost.Seconds / n
	c.Nudged += float64(r.Cost.Nudges) / n
	for kind, n := range r.Failures {
		c.Failures[kind] += n
	}
	if r.Error != "" {
		c.Broken++
	}
}

// sort puts records into one order, however they ended, so that the same records give the same intervals.
func sort(records []Record) {
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Try, b.Try))
	})
}

func share(records []Record, is func(Record) bool) (Interval, int) {
	hits := len(filter(records, is))
	return Wilson(hits, len(records)), hits
}

func rate(records []Record, hits, chances func(Record) float64) Interval {
	var h, c []float64
	for _, r := range records {
		h, c = append(h, hits(r)), append(c, chances(r))
	}
	return Bootstrap(h, c, 1)
}

// passAll is nil where no task was tried often enough.
func passAll(records []Record) *float64 {
	type task struct {
		family Family
		seed   uint64
	}
	tries, good := map[task]int{}, map[task]int{}
	for _, r := range records {
		t := task{r.Family, r.Task}
		if tries[t]++; r.Success {
			good[t]++
		}
	}
	var g, n []int
	for _, t := range slices.Collect(maps.Keys(tries)) {
		g, n = append(g, good[t]), append(n, tries[t])
	}
	if p := PassAll(g, n, passTries); !math.IsNaN(p) {
		return &p
	}
	return nil
}

func compare(records []Record, first, second Arm, size int) Pair {
	type key struct {
		family Family
		size   int
		task   uint64
		try    int
	}
	p := Pair{First: first, Second: second, Size: size}
	other := map[key]bool{}
	of := func(r Record) key { return key{r.Family, r.Size, r.Task, r.Try} }
	for _, r := range records {
		if r.Arm == second {
			other[of(r)] = r.Success
		}
	}
	for _, r := range records {
		lost, paired := other[of(r)]
		if r.Arm != first || !paired || size != 0 && r.Size != size {
			continue
		}
		switch {
		case r.Success && lost:
			p.Both++
		case r.Success:
			p.Won++
		case lost:
			p.Lost++
		default:
			p.None++
		}
	}
	p.P = McNemar(p.Won, p.Lost)
	return p
}
