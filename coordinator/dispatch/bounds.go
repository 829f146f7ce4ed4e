package dispatch

import (
	"math"
	"strings"
	"time"
)

// What a worker says of a call or load is added up, averaged and kept in the books, so it is bounded first, far beyond what can be.
const (
	mostTokens  = 1 << 32
	mostTime    = 30 * 24 * time.Hour
	mostBytes   = 1 << 50
	mostRate    = 1e9     // tokens per second
	mostMessage = 8 << 10 // bytes
	mostBrief   = 1 << 10 // bytes of a name or a word
	mostNext    = 8
)

func tokens(n int64) int64 { return min(max(n, 0), mostTokens) }
func nanos(n int64) int64  { return min(max(n, 0), int64(mostTime)) }
func size(n uint64) uint64 { return min(n, mostBytes) }

func rate(r float64) float64 {
	if math.IsNaN(r) {
		return 0
	}
	return min(max(r, 0), mostRate)
}

func brief(s string) string { return cut(s, mostBrief) }

// cut is at most so many bytes of a text.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
