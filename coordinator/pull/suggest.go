package pull

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// DefaultRate is how fast a download is taken to be until one was measured, bytes per second: a line of 100 Mbit/s.
const DefaultRate = 12.5e6

// loadRate is how fast a model is taken to be loaded after its download, bytes per second: a slow NVMe disk.
const loadRate = 1 << 30

// Suggestion is a download that would pay.
type Suggestion struct {
	Model      string
	Node, Name string        // id and name of the machine that should have it
	Saves      time.Duration // of the time that the waiting calls take; 0: they would wait for a machine that is away
	Why        string        // for people
}

// Suggest says which downloads would pay, at most one of each model, by model. waiting counts the items that wait, by model; rate is how fast
// a node downloads, bytes per second. A download pays when it saves more time than it takes, or when no machine that is up has the model.
// Nothing is suggested where the time of a call is not known yet.
func Suggest(s scheduler.Snapshot, limits scheduler.Limits, waiting map[string]int, rate func(node string) float64) []Suggestion {
	var out []Suggestion
	for _, model := range slices.Sorted(maps.Keys(waiting)) {
		q := queueOf(s, model, waiting[model])
		if q.items == 0 || q.file == 0 {
			continue
		}
		report := scheduler.Fit(s, scheduler.FitQuestion{Model: model, Context: limits.Contexts[model]}, limits)
		var best Suggestion
		for i, n := range report.Nodes {
			if !couldTake(n, s.Nodes[i], model) {
				continue
			}
			took := time.Duration((float64(q.file)/rate(n.Node) + float64(q.file)/loadRate) * float64(time.Second))
			if one, pays := q.with(n, max(1, n.Slots), took); pays && (best.Model == "" || one.Saves > best.Saves) {
				best = one
			}
		}
		if best.Model != "" {
			out = append(out, best)
		}
	}
	return out
}

// queue is what waits for a model and what serves it.
type queue struct {
	model   string
	items   int
	file    uint64        // bytes
	slots   int           // on machines that are up and have it
	service time.Duration // of a call, the slowest known; 0: unknown
	away    []string      // machines that have it and are not up
}

func queueOf(s scheduler.Snapshot, model string, items int) queue {
	q := queue{model: model, items: items}
	for _, n := range s.Nodes {
		for _, m := range n.Models {
			if tagged(m.Name) != tagged(model) || m.Embedding {
				continue
			}
			q.file = max(q.file, m.FileBytes)
			if n.State != scheduler.NodeUp {
				q.away = append(q.away, n.Name)
				continue
			}
			q.slots += max(1, n.Slots)
			q.service = max(q.service, n.Speeds[m.Digest].Service)
		}
	}
	return q
}

// couldTake reports whether a machine lacks a model and would have room for it without ending a call.
func couldTake(f scheduler.NodeFit, n scheduler.Node, model string) bool {
	if n.State != scheduler.NodeUp || f.Pulled || slices.ContainsFunc(n.Models, func(m scheduler.Model) bool { return tagged(m.Name) == tagged(model) }) {
		return false
	}
	busy := slices.ContainsFunc(f.Evict, func(e scheduler.Eviction) bool { return e.Busy > 0 })
	return f.Verdict == scheduler.FitYes || f.Verdict == scheduler.FitEvict && !busy
}

// with is the queue with a machine more, which has the model after so long.
func (q queue) with(n scheduler.NodeFit, slots int, took time.Duration) (Suggestion, bool) {
	s := Suggestion{Model: q.model, Node: n.Node, Name: n.Name}
	if q.slots == 0 {
		s.Why = fmt.Sprintf("%d items wait, and no machine that is up has it (%s is away); on %s it is about %s away", q.items, strings.Join(q.away, ", "), n.Name, span(took))
		return s, len(q.away) > 0
	}
	if q.service == 0 {
		return s, false
	}
	left := time.Duration(q.items) * q.service / time.Duration(q.slots)
	s.Saves = (left - took) * time.Duration(slots) / time.Duration(q.slots+slots)
	s.Why = fmt.Sprintf("%d items wait, about %s; with %s too, which has it in about %s, they end %s sooner", q.items, span(left), n.Name, span(took), span(s.Saves))
	return s, s.Saves > took
}

// span is a duration for people.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
}

// tagged is a model's name as Ollama lists it: without a tag it is the latest.
func tagged(name string) string {
	if strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/') {
		return name
	}
	return name + ":latest"
}
