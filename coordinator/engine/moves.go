package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// The numbers of the bookkeeping of loads.
const (
	// reportGrace is how long a node's reports may take to show a load or unload that has ended.
	reportGrace = 10 * time.Second
	// failedAvoid and spilledAvoid say how long a model is not tried again on a node that failed to load it or ran out of
	// memory, or did not hold it whole.
	failedAvoid  = 30 * time.Second
	spilledAvoid = 10 * time.Minute
	// unloadPause is the pause after an unload that left its model in memory; it doubles up to unloadPauseMax, at which the
	// scheduler counts without that room.
	unloadPause    = 2 * time.Second
	unloadPauseMax = 10 * time.Minute
	unloadPauses   = 2 // short ones
)

// moves is what the engine knows of loads that no report shows: those in flight, those that ended a moment ago, and when a
// model was last used.
type moves struct {
	nodes map[string]*nodeMoves
}

type nodeMoves struct {
	loading *move // until the reports show the model, or it failed
	leaving map[string]*move
	stuck   map[string]stuck // models that an unload left in memory, until the reports do not show them
	avoid   map[string]time.Time
	broken  map[string]bool // digests of avoid whose load call broke off: the node may have loaded them all the same
	given   map[string]int  // calls of loads that were given up with their node and still have to end
	use     map[string]time.Time
	since   map[string]time.Time // when a model was loaded, or first seen loaded
	roomFor string               // key of the task that the latest unload was for
}

// stuck says how often in a row a model was still in memory after its unload.
type stuck struct {
	times int
	retry time.Time // when to try again
}

type move struct {
	scheduler.Decision
	since time.Time
	ended time.Time // zero while in flight
}

func newMoves() moves { return moves{nodes: map[string]*nodeMoves{}} }

func (m moves) of(node string) *nodeMoves {
	n := m.nodes[node]
	if n == nil {
		n = &nodeMoves{leaving: map[string]*move{}, stuck: map[string]stuck{}, avoid: map[string]time.Time{}, broken: map[string]bool{},
			given: map[string]int{}, use: map[string]time.Time{}, since: map[string]time.Time{}}
		m.nodes[node] = n
	}
	return n
}

// begin notes a load or unload, and says whether it is one that is not under way yet.
func (m moves) begin(d scheduler.Decision, now time.Time) bool {
	n := m.of(d.Node)
	switch {
	case d.Action == scheduler.Load && n.loading == nil:
		n.loading = &move{Decision: d, since: now}
	case d.Action == scheduler.Unload && n.leaving[d.Digest] == nil:
		n.leaving[d.Digest] = &move{Decision: d, since: now}
		n.roomFor = d.Task
	default:
		return false
	}
	return true
}

// ended notes how a load or unload ended.
func (m moves) ended(node string, d scheduler.Decision, spilled bool, err error, now time.Time) {
	n := m.of(node)
	if d.Action == scheduler.Load && n.given[d.Digest] > 0 { // one from before the node was lost says nothing of a later one
		n.given[d.Digest]--
		return
	}
	switch mv := n.leaving[d.Digest]; {
	case d.Action == scheduler.Unload && mv != nil && err == nil:
		mv.ended = now
	case d.Action == scheduler.Unload && mv != nil:
		n.stayed(d.Digest, now)
	case d.Action == scheduler.Unload: // from before the node was lost
	case n.loading == nil || n.loading.Digest != d.Digest:
	case err != nil:
		n.loading = nil
		n.avoid[d.Digest], n.broken[d.Digest] = now.Add(failedAvoid), true
	default:
		n.loading.ended = now
		n.since[d.Digest] = now
		if spilled {
			m.avoid(node, d.Digest, now.Add(spilledAvoid))
		}
	}
}

// stayed notes that an unload did not remove its model.
func (n *nodeMoves) stayed(digest string, now time.Time) {
	delete(n.leaving, digest)
	s := n.stuck[digest]
	s.times++
	pause := unloadPauseMax
	if s.times <= unloadPauses {
		pause = unloadPause << (s.times - 1)
	}
	s.retry = now.Add(pause)
	n.stuck[digest] = s
}

// lost forgets what was in flight on a node.
func (m moves) lost(node string) {
	n := m.of(node)
	if n.loading != nil && n.loading.ended.IsZero() {
		n.given[n.loading.Digest]++
	}
	n.loading = nil
	clear(n.leaving)
}

// used notes a start or end of an attempt.
func (m moves) used(node, digest string, now time.Time) { m.of(node).use[digest] = now }

// avoid keeps a model from a node until a time.
func (m moves) avoid(node, digest string, until time.Time) {
	n := m.of(node)
	n.avoid[digest] = until
	delete(n.broken, digest)
}

// fill adds to a node's report what only the engine knows. The report itself is not changed: it may be shared.
func (m moves) fill(n scheduler.Node, flights []*flight, now time.Time) scheduler.Node {
	mine := m.of(n.ID)
	mine.settle(n, now)
	n.RoomFor = mine.roomFor
	n.Loaded = slices.Clone(n.Loaded)
	for i := range n.Loaded {
		l := &n.Loaded[i]
		l.Busy = 0
		for _, f := range flights {
			if f.node == n.ID && (f.digest == l.Digest || f.digest == "" && f.model == l.Name) {
				l.Busy++
			}
		}
		if at := mine.use[l.Digest]; at.After(l.LastUsed) {
			l.LastUsed = at
		}
		if l.Since.IsZero() {
			l.Since = mine.since[l.Digest]
		}
		l.Stuck, l.Retry = mine.stuck[l.Digest].times, mine.stuck[l.Digest].retry
		l.Leaving = l.Leaving || mine.leaving[l.Digest] != nil
	}
	if mv := mine.loading; mv != nil {
		n.Loading = &scheduler.Claim{Digest: mv.Digest, Name: mv.Model, Context: mv.Context, Need: mv.Need, Since: mv.since}
	}
	if len(mine.avoid) > 0 {
		avoid := maps.Clone(mine.avoid)
		for digest, until := range n.Avoid {
			if until.After(avoid[digest]) {
				avoid[digest] = until
			}
		}
		n.Avoid = avoid
	}
	return n
}

// settleAbsent settles nodes that the fleet does not list.
func (m moves) settleAbsent(listed []scheduler.Node, now time.Time) {
	for id, n := range m.nodes {
		if !slices.ContainsFunc(listed, func(l scheduler.Node) bool { return l.ID == id }) {
			n.settle(scheduler.Node{}, now)
		}
	}
}

// settle forgets what the report shows by now, and what it should have shown long ago.
func (n *nodeMoves) settle(report scheduler.Node, now time.Time) {
	shown := func(digest string) bool {
		return slices.ContainsFunc(report.Loaded, func(l scheduler.Loaded) bool { return l.Digest == digest })
	}
	for _, l := range report.Loaded {
		if n.since[l.Digest].IsZero() {
			n.since[l.Digest] = now
		}
	}
	maps.DeleteFunc(n.since, func(digest string, _ time.Time) bool {
		return !shown(digest) && (n.loading == nil || n.loading.Digest != digest)
	})
	over := func(mv *move) bool { return !mv.ended.IsZero() && now.Sub(mv.ended) >= reportGrace }
	if mv := n.loading; mv != nil && !mv.ended.IsZero() && (shown(mv.Digest) || over(mv)) {
		n.loading = nil
	}
	for digest, mv := range n.leaving {
		switch {
		case mv.ended.IsZero():
		case !shown(digest):
			delete(n.leaving, digest)
		case over(mv): // Ollama said that it was gone, and it is not
			n.stayed(digest, now)
		}
	}
	maps.DeleteFunc(n.stuck, func(digest string, _ stuck) bool { return !shown(digest) })
	maps.DeleteFunc(n.avoid, func(digest string, until time.Time) bool {
		return !until.After(now) || n.broken[digest] && shown(digest)
	})
	maps.DeleteFunc(n.broken, func(digest string, _ bool) bool { return n.avoid[digest].IsZero() })
}

// next is when something of a node changes by the passing of time alone, zero for never.
func (n *nodeMoves) next(now time.Time) time.Time {
	var at time.Time
	if n.loading != nil && !n.loading.ended.IsZero() {
		at = earliest(at, n.loading.ended.Add(reportGrace))
	}
	for _, mv := range n.leaving {
		if !mv.ended.IsZero() {
			at = earliest(at, mv.ended.Add(reportGrace))
		}
	}
	for _, s := range n.stuck {
		if s.retry.After(now) {
			at = earliest(at, s.retry)
		}
	}
	for _, until := range n.avoid {
		at = earliest(at, until)
	}
	return at
}

// earliest is the earlier of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
