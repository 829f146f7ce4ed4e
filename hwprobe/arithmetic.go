package hwprobe

// Sub is a - b, and 0 where b is the larger: "used" may exceed "total" by pinned buffers. Unknown when either is.
func Sub(a, b Bytes) Bytes { return both(a, b, func(x, y uint64) uint64 { return x - min(x, y) }) }

// Least is the smaller of both, unknown when either is: a limit that nobody knows may be the smaller one.
func Least(a, b Bytes) Bytes { return both(a, b, func(x, y uint64) uint64 { return min(x, y) }) }

// Sum is a + b, unknown when either is or when no 64-bit number holds it.
func Sum(a, b Bytes) Bytes {
	total := both(a, b, func(x, y uint64) uint64 { return x + y })
	if n, known := total.Value(); known && n < a.Or(0) {
		return Bytes{}
	}
	return total
}

// both applies f where both numbers are known; otherwise the result is unknown.
func both(a, b Bytes, f func(a, b uint64) uint64) Bytes {
	x, knowsX := a.Value()
	y, knowsY := b.Value()
	if !knowsX || !knowsY {
		return Bytes{}
	}
	return Known(f(x, y))
}
