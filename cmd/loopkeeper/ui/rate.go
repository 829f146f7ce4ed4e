package ui

import (
	"fmt"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// rateWindow is how far back the recent rate looks.
const rateWindow = 10 * time.Minute

// Rate learns from the views of a run how fast its items end.
type Rate struct {
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// Restart forgets what was learnt: what ended while nobody watched says nothing of how fast.
func (r *Rate) Restart() { r.samples = nil }

// Add notes how many items had ended at a moment.
func (r *Rate) Add(at time.Time, done int64) {
	if n := len(r.samples); n > 0 && r.samples[n-1].done == done {
		return
	}
	r.samples = append(r.samples, sample{at, done})
	for len(r.samples) > 2 && at.Sub(r.samples[0].at) > rateWindow {
		r.samples = r.samples[1:]
	}
}

// PerMinute is the recent rate; known only once it rests on a few items.
func (r *Rate) PerMinute(now time.Time) (items float64, known bool) {
	if len(r.samples) < 2 {
		return 0, false
	}
	first, last := r.samples[0], r.samples[len(r.samples)-1]
	span := now.Sub(first.at)
	if last.done-first.done < 3 || span < time.Second {
		return 0, false
	}
	return float64(last.done-first.done) / span.Minutes(), true
}

// Text says rate and, with items left, the expected end: "7.6 items/min, ETA 11-14 min", or that it is still measuring.
func (r *Rate) Text(now time.Time, left int64) string {
	rate, known := r.PerMinute(now)
	if !known {
		return "measuring"
	}
	text := fmt.Sprintf("%.1f items/min", rate)
	if left > 0 {
		text += ", ETA " + eta(float64(left)/rate)
	}
	return text
}

// eta is a range: a fifth to either side, which the last items of a batch need.
func eta(minutes float64) string {
	low, high := minutes*0.85, minutes*1.2
	switch {
	case high < 1.5:
		return fmt.Sprintf("%.0f-%.0f s", low*60, high*60+1)
	case high < 120:
		return fmt.Sprintf("%.0f-%.0f min", low, high+0.5)
	case high < 24*60:
		return fmt.Sprintf("%.0f-%.0f h", low/60, high/60+0.5)
	default:
		return ">1 d"
	}
}

// worked is how many items have ended by work. One that was cancelled has ended, but nobody has worked it to its end.
func worked(c *coordinatorv1.Counts) int64 { return c.GetSucceeded() + c.GetFailed() }

// workedHere is how many items ended by work of this run. What it took over from the run before ended at once and says nothing of how
// fast; of such a run that is what its machines made, and what failed, which is never taken over.
func workedHere(r *coordinatorv1.Run) int64 {
	if r.GetBase() == "" {
		return worked(r.GetItems())
	}
	made := r.GetItems().GetFailed()
	for _, n := range r.GetNodes() {
		made += n.GetItems()
	}
	return made
}

// left is how many items are still to be worked on.
func left(c *coordinatorv1.Counts) int64 { return c.GetRunning() + c.GetWaiting() }

// growing says that nobody knows how many items a run will have: its script goes step by step, and asks for more as it learns.
// A run of one batch is known from its beginning.
func growing(r *coordinatorv1.Run) bool {
	calls := Calls(r)
	return r.GetEnded() == nil && len(calls) > 0 && (len(calls) > 1 || calls[0].GetKind() != "batch")
}

// soFar is how far a growing run is: steps where each is one item, else items.
func soFar(r *coordinatorv1.Run) string {
	c, one, many := r.GetItems(), "step", "steps"
	if int64(len(Calls(r))) != c.GetTotal() {
		one, many = "item", "items"
	}
	return fmt.Sprintf("%s of %s so far", Count(c.GetSucceeded()), Plural(c.GetTotal(), one, many))
}
