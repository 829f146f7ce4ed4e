package script

// random returns the source of Math.random: SplitMix64 (Steele, Lea, Flood 2014), the upper 53 bits of each output as a
// number in [0, 1). It is our own because a replay years from now must draw the same numbers; never change it.
func random(seed int64) func() float64 {
	next := splitMix64(uint64(seed))
	return func() float64 { return float64(next()>>11) / (1 << 53) }
}

func splitMix64(state uint64) func() uint64 {
	return func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		return z ^ (z >> 31)
	}
}
