package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Resource is the limit of something that calls hold while they run.
type Resource struct {
	Cap   int     // calls that may hold it at once; 0 means any number
	Rate  float64 // calls that may take it per second; 0 means any number
	Burst int     // calls that may take it at once after a pause; 0 counts as 1
}

// bucket counts the starts that a rate allows.
type bucket struct {
	tokens float64
	at     time.Time
}

// resources is what is held, and what rates allow. The engine's loop owns it.
type resources struct {
	limits  map[string]Resource
	buckets map[string]bucket
}

func newResources(limits map[string]Resource) resources {
	return resources{limits: limits, buckets: map[string]bucket{}}
}

// of are the resources that a call holds: those it names, and its model where that is limited.
func (r resources) of(uses []string, model string) []string {
	full := tagged(model)
	for _, name := range []string{"model:" + full, "model:" + strings.TrimSuffix(full, ":latest")} {
		if _, limited := r.limits[name]; limited && !slices.Contains(uses, name) {
			return append(slices.Clone(uses), name)
		}
	}
	return uses
}

// tokens is what the rate of a resource allows at once now.
func (r resources) tokens(name string, now time.Time) float64 {
	l := r.limits[name]
	burst := float64(max(1, l.Burst))
	b, began := r.buckets[name]
	if !began {
		return burst
	}
	return min(burst, b.tokens+l.Rate*now.Sub(b.at).Seconds())
}

// taken notes a start.
func (r resources) taken(names []string, now time.Time) {
	for _, n := range names {
		if r.limits[n].Rate > 0 {
			r.buckets[n] = bucket{tokens: max(0, r.tokens(n, now)-1), at: now}
		}
	}
}

// snapshot is the limits with what is in use. A name without a limit is not in it.
func (r resources) snapshot(held, behind map[string]int, now time.Time) map[string]scheduler.Resource {
	if len(r.limits) == 0 {
		return nil
	}
	out := make(map[string]scheduler.Resource, len(r.limits))
	for name, l := range r.limits {
		out[name] = scheduler.Resource{Cap: l.Cap, InUse: held[name], Rate: l.Rate, Tokens: r.tokens(name, now), Behind: behind[name]}
	}
	return out
}

// behind counts, by resource, what waits to hold it and is not shown to a placement: items beyond the window, those in backoff, calls
// of tools. Of a step that is judged they count as its own model's.
func (e *Engine) behind(shown map[string]candidate) map[string]int {
	if len(e.resources.limits) == 0 {
		return nil
	}
	type step struct {
		of  *active
		pos int
	}
	seen := map[step]int{}
	for _, c := range shown {
		seen[step{c.run, c.ticket.Pos}]++
	}
	out := map[string]int{}
	for _, a := range e.order {
		if a.state.Status != run.Running {
			continue
		}
		for st := range a.state.Open {
			rest := st.Counts.Waiting - seen[step{a, st.Pos}]
			for _, name := range e.resources.of(st.Uses(), a.uses(st.First())) {
				out[name] += rest
			}
		}
	}
	return out
}

// next is when a rate allows another start that it does not allow now, zero for never.
func (r resources) next(now time.Time) (at time.Time) {
	for _, name := range slices.Sorted(maps.Keys(r.buckets)) {
		if missing := 1 - r.tokens(name, now); missing > 0 {
			at = earliest(at, now.Add(time.Duration(missing/r.limits[name].Rate*float64(time.Second))+time.Millisecond))
		}
	}
	return at
}
