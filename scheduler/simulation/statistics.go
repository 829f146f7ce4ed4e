package simulation

import "math"

// Interval is a mean with the half-width of its 95 % confidence interval.
type Interval struct{ Mean, Half float64 }

// IntervalOf is the mean of a sample and its interval by Student's t.
func IntervalOf(sample []float64) Interval {
	n := float64(len(sample))
	var sum, squares float64
	for _, x := range sample {
		sum += x
	}
	mean := sum / n
	for _, x := range sample {
		squares += (x - mean) * (x - mean)
	}
	if n < 2 {
		return Interval{mean, math.Inf(1)}
	}
	return Interval{mean, student(len(sample)-1) * math.Sqrt(squares/(n-1)/n)}
}

// Paired is the mean of a − b, seed by seed.
func Paired(a, b []float64) Interval {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return IntervalOf(d)
}

// student is the 97.5th percentile of Student's t, by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5); its error
// is below 1 % from 4 degrees of freedom on.
func student(degrees int) float64 {
	const z = 1.959964
	n := float64(degrees)
	z3, z5 := math.Pow(z, 3), math.Pow(z, 5)
	return z + (z3+z)/(4*n) + (5*z5+16*z3+3*z)/(96*n*n) + (3*math.Pow(z, 7)+19*z5+17*z3-15*z)/(384*n*n*n)
}
