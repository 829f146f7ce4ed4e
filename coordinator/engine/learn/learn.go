// Package learn turns measurements of nodes and models into estimates. It is pure: samples in, numbers out. Every estimate is
// taken from a window of the newest samples, so that it follows a machine that changes and shrugs at a single odd one.
package learn

import (
	"math"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// windowSize is how many samples count. With 20 of them the 95th percentile leaves the largest out.
const windowSize = 20

// What is too short says nothing about a rate, and what is too fast no model has written: stand-ins answer at once.
const (
	mostDecode  = 5000 // tokens per second, of one call
	leastPrompt = 64   // tokens
	leastOutput = 8    // tokens
	leastLoad   = 100 * time.Millisecond
)

// Window holds the newest samples, oldest first.
type Window []float64

// add returns the window with one more sample; w itself is not changed.
func (w Window) add(v float64) Window {
	if !(v > 0) && v != 0 || math.IsInf(v, 0) {
		return w
	}
	if len(w) >= windowSize {
		w = w[len(w)-windowSize+1:]
	}
	return append(slices.Clone(w), round(v))
}

// round keeps four digits, which is more than any sample is worth, so that the ledger stays readable.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	return math.Round(v/unit) * unit
}

// quantile is the sample at share q of the window, from 0 to 1, by nearest rank; 0 for an empty one.
func (w Window) quantile(q float64) float64 {
	if len(w) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// mean is the mean without the largest and the smallest sample, once there are enough to spare them.
func (w Window) mean() float64 {
	sorted := slices.Sorted(slices.Values(w))
	if len(sorted) >= 5 {
		sorted = sorted[1 : len(sorted)-1]
	}
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	return sum / float64(max(1, len(sorted)))
}

// Speed is what was measured of one model on one node.
type Speed struct {
	Load    Window `json:"load,omitempty"`    // seconds
	Prompt  Window `json:"prompt,omitempty"`  // tokens per second
	Decode  Window `json:"decode,omitempty"`  // tokens per second, of one call
	Service Window `json:"service,omitempty"` // seconds
}

// Call is how one call went.
type Call struct {
	PromptTokens, OutputTokens int64
	Prompt, Output             time.Duration // that the tokens took
	Service                    time.Duration // of the whole call, without a load
}

// Decode is the call's output rate in tokens per second; 0 when it does not tell.
func (c Call) Decode() float64 {
	if c.OutputTokens < leastOutput || c.Output <= 0 {
		return 0
	}
	rate := float64(c.OutputTokens) / c.Output.Seconds()
	if rate > mostDecode {
		return 0
	}
	return rate
}

// Loaded takes in a load.
func (s Speed) Loaded(took time.Duration) Speed {
	if took >= leastLoad {
		s.Load = s.Load.add(took.Seconds())
	}
	return s
}

// Called takes in a call that succeeded.
func (s Speed) Called(c Call) Speed {
	if c.PromptTokens >= leastPrompt && c.Prompt > 0 {
		s.Prompt = s.Prompt.add(float64(c.PromptTokens) / c.Prompt.Seconds())
	}
	if rate := c.Decode(); rate > 0 {
		s.Decode = s.Decode.add(rate)
	}
	if c.Service > 0 {
		s.Service = s.Service.add(c.Service.Seconds())
	}
	return s
}

// Estimate is what to expect of the next load and call. A prompt that Ollama found in its cache counts in full and takes no time,
// so the rate for prompts is one of the lower ones.
func (s Speed) Estimate() scheduler.Speed {
	return scheduler.Speed{Load: seconds(s.Load.quantile(0.5)), Prompt: s.Prompt.quantile(0.25), Decode: s.Decode.quantile(0.5),
		Service: seconds(s.Service.mean())}
}

// leastKnown is how many calls make a rate something to hold a call to.
const leastKnown = 3

// Slow reports whether a call wrote at less than half of the rate that is known, although busy calls shared the model. Nothing
// is slow while no rate is known.
func (s Speed) Slow(c Call, busy int) bool {
	rate := c.Decode()
	return rate > 0 && len(s.Decode) >= leastKnown && rate*float64(max(1, busy)) < s.Decode.quantile(0.5)/2
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Rate is how many bytes of model file a second a node loads.
type Rate struct {
	Bytes Window `json:"bytes_per_second,omitempty"`
}

// Loaded takes in a load of a file of that size.
func (r Rate) Loaded(bytes uint64, took time.Duration) Rate {
	if took >= leastLoad && bytes > 0 {
		r.Bytes = r.Bytes.add(float64(bytes) / took.Seconds())
	}
	return r
}

// Estimate is in bytes per second, 0 while unknown.
func (r Rate) Estimate() float64 { return r.Bytes.quantile(0.5) }
