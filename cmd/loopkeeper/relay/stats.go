package relay

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a rate with its 95 % interval.
type Interval struct {
	Rate float64 `json:"rate"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Holds says whether a rate lies in the interval.
func (i Interval) Holds(rate float64) bool { return i.Low <= rate && rate <= i.High }

// Wilson is the score interval of hits among n (Wilson 1927): it stays within 0 and 1, and says something about 0 of 20, too.
func Wilson(hits, n int) Interval {
	if n == 0 {
		return Interval{High: 1}
	}
	const z = 1.959964
	p, m := float64(hits)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	i := Interval{p, max(0, mid-half), min(1, mid+half)}
	if hits == 0 {
		i.Low = 0 // but for rounding
	}
	if hits == n {
		i.High = 1
	}
	return i
}

// Bootstrap is the percentile interval of the rate of hits among chances, of each of which every run has some. Runs are what is drawn
// again, because what happens within one goes together.
func Bootstrap(hits, chances []float64, seed uint64) Interval {
	rate := func(pick func(i int) int) float64 {
		h, c := 0.0, 0.0
		for i := range hits {
			h, c = h+hits[pick(i)], c+chances[pick(i)]
		}
		return h / max(c, 1)
	}
	if len(hits) == 0 {
		return Interval{High: 1}
	}
	const rounds = 2000
	r := rand.New(rand.NewPCG(seed, 1))
	drawn := make([]int, len(hits))
	rates := make([]float64, rounds)
	for i := range rates {
		for k := range drawn {
			drawn[k] = r.IntN(len(hits))
		}
		rates[i] = rate(func(k int) int { return drawn[k] })
	}
	slices.Sort(rates)
	return Interval{rate(func(k int) int { return k }), rates[rounds*25/1000], rates[rounds*975/1000]}
}

// McNemar is the exact two-sided p of pairs of runs of the same task: better are those that only the first arm ended well, worse those
// that only the second did. Pairs that agree say nothing.
func McNemar(better, worse int) float64 {
	n, k := better+worse, min(better, worse)
	if n == 0 {
		return 1
	}
	p := 0.0
	for i := 0; i <= k; i++ {
		p += math.Exp(lchoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// PassAll is the share of tasks that end well in all of k tries, estimated without bias from successes of tries each (τ-bench, Yao et al.
// 2024). Tasks with fewer tries than k are left out.
func PassAll(successes, tries []int, k int) float64 {
	sum, n := 0.0, 0
	for i, t := range tries {
		if t < k {
			continue
		}
		n++
		if successes[i] >= k {
			sum += math.Exp(lchoose(successes[i], k) - lchoose(t, k))
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
