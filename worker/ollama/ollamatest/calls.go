package ollamatest

import (
	"slices"
	"sync"
	"time"
)

// keptCalls bounds the log; the oldest calls are forgotten first, the counters never.
const keptCalls = 10_000

// Call is one request for work that the server received: generate, chat or embed with an input, a load or an unload.
type Call struct {
	N          int            `json:"n"`           // 1, 2, 3 … in order of arrival
	Endpoint   string         `json:"endpoint"`    // generate, chat, embed
	Model      string         `json:"model"`       // with tag
	Key        string         `json:"key"`         // hash of the content, options and format included
	Repetition int            `json:"repetition"`  // how often the same key came before
	Images     int            `json:"images"`      // how many came with it
	Prompt     string         `json:"prompt"`      // all the text of the request, "" for load and unload
	Options    map[string]any `json:"options"`     // as sent
	Format     string         `json:"format"`      // as sent
	Fault      FaultKind      `json:"fault"`       // what struck it, or ""
	Status     int            `json:"status"`      // HTTP status; 499 when the client went away
	DoneReason string         `json:"done_reason"` // stop, length, load, unload; "" without a whole answer
	Started    time.Time      `json:"started"`
	Ended      time.Time      `json:"ended"` // zero while it runs
}

// Counts are totals since the start or the last reset.
type Counts struct {
	Received  int               `json:"received"`
	Succeeded int               `json:"succeeded"` // whole answers, faulty content included
	Faults    map[FaultKind]int `json:"faults"`
	Endpoints map[string]int    `json:"endpoints"`
}

type callLog struct {
	mu     sync.Mutex
	calls  []Call
	first  int // N of calls[0], less one
	counts Counts
}

func newCallLog() *callLog {
	l := &callLog{}
	l.reset()
	return l
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first += len(l.calls) // numbers go on, so that a call begun before the reset cannot end one begun after it
	l.calls = nil
	l.counts = Counts{Faults: map[FaultKind]int{}, Endpoints: map[string]int{}}
}

// begin records an arrival and returns its number.
func (l *callLog) begin(c Call) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) == keptCalls {
		l.calls = slices.Delete(l.calls, 0, keptCalls/10)
		l.first += keptCalls / 10
	}
	c.N, c.Started = l.first+len(l.calls)+1, time.Now()
	l.calls = append(l.calls, c)
	l.counts.Received++
	l.counts.Endpoints[c.Endpoint]++
	if c.Fault != "" {
		l.counts.Faults[c.Fault]++
	}
	return c.N
}

// end records how a call ended; a call that a reset forgot is ignored.
func (l *callLog) end(n, status int, doneReason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := n - l.first - 1
	if i < 0 || i >= len(l.calls) {
		return
	}
	c := &l.calls[i]
	c.Status, c.DoneReason, c.Ended = status, doneReason, time.Now()
	if doneReason != "" {
		l.counts.Succeeded++
	}
}

func (l *callLog) snapshot() ([]Call, Counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := Counts{Received: l.counts.Received, Succeeded: l.counts.Succeeded, Faults: map[FaultKind]int{}, Endpoints: map[string]int{}}
	for k, v := range l.counts.Faults {
		counts.Faults[k] = v
	}
	for k, v := range l.counts.Endpoints {
		counts.Endpoints[k] = v
	}
	return slices.Clone(l.calls), counts
}
