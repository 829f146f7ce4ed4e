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
	// failedAvoid is how long a model is not tried again on a node that failed to load it or ran out of memory.
	failedAvoid = 30 * time.Second
	// unloadPause is the pause after an unload that left its model in memory; it doubles up to unloadPauseMax. An unload is tried
	// again only when its room is needed, costs the machine nothing, and is all that helps who waits for that room.
	unloadPause    = 2 * time.Second
	unloadPauseMax = 30 * time.Second
	unloadPauses   = 2 // after so many the model counts as one that stays, and people are told
)

// moves is what the engine knows of loads that no report shows: those in flight, those that ended a moment ago, and when a
// model was last used.
type moves struct {
	nodes map[string]*nodeMoves
	gone  []vanished    // since it was last looked at
	dirty map[fact]bool // what the ledger has to be told
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
	held    map[string]*held     // models that we loaded
	warm    map[string][]string  // affinities of what ran on a model last, newest first
	unfit   map[string]unfit     // models that did not fit although they should have
}

// stuck says how often in a row a model was still in memory after its unload.
type stuck struct {
	times int
	retry time.Time // when to try again
	told  bool      // an incident was made of it
}

type move struct {
	scheduler.Decision
	since time.Time
	ended time.Time // zero while in flight
}

func newMoves() moves { return moves{nodes: map[string]*nodeMoves{}, dirty: map[fact]bool{}} }

func (m *moves) of(node string) *nodeMoves {
	n := m.nodes[node]
	if n == nil {
		n = &nodeMoves{leaving: map[string]*move{}, stuck: map[string]stuck{}, avoid: map[string]time.Time{}, broken: map[string]bool{},
			given: map[string]int{}, use: map[string]time.Time{}, since: map[string]time.Time{}, held: map[string]*held{},
			warm: map[string][]string{}, unfit: map[string]unfit{}}
		m.nodes[node] = n
	}
	return n
}

// begin notes a load or unload, and says whether it is one that is not under way yet.
func (m *moves) begin(d scheduler.Decision, now time.Time) bool {
	n := m.of(d.Node)
	switch {
	case d.Action == scheduler.Load && n.loading == nil:
		n.loading = &move{Decision: d, since: now}
		n.held[d.Digest] = &held{Model: d.Model, Context: d.Context, Since: now, kept: now}
		m.dirty[fact{kindHeld, d.Node, d.Digest}] = true
	case d.Action == scheduler.Unload && n.loading != nil && n.loading.ended.IsZero():
		return false // its worker moves one model at a time: the wait would look like an unload that hangs
	case d.Action == scheduler.Unload && n.leaving[d.Digest] == nil:
		n.leaving[d.Digest] = &move{Decision: d, since: now}
		if d.Task != "" {
			n.roomFor = d.Task
		}
	default:
		return false
	}
	return true
}

// ended notes how a load or unload ended, and says whether it was one that is under way.
func (m *moves) ended(node string, d Move, now time.Time) bool {
	n := m.of(node)
	if d.Action == scheduler.Load && n.given[d.Digest] > 0 { // one from before the node was lost says nothing of a later one
		n.given[d.Digest]--
		return false
	}
	switch mv := n.leaving[d.Digest]; {
	case d.Action == scheduler.Unload && mv != nil && d.Err == nil:
		mv.ended = now
	case d.Action == scheduler.Unload && mv != nil:
		n.stayed(d.Digest, now)
	case d.Action == scheduler.Unload: // from before the node was lost
		return false
	case n.loading == nil || n.loading.Digest != d.Digest:
		return false
	case d.Err != nil:
		n.loading = nil
		n.avoid[d.Digest], n.broken[d.Digest] = now.Add(failedAvoid), true
	default:
		n.loading.ended = now
		n.since[d.Digest] = now
		n.warm[d.Digest] = nil
		if h := n.held[d.Digest]; h != nil {
			h.kept, h.Observed = now, d.Observed.N
			m.dirty[fact{kindHeld, node, d.Digest}] = true
		}
	}
	return true
}

// stayed notes that an unload did not remove its model.
func (n *nodeMoves) stayed(digest string, now time.Time) {
	delete(n.leaving, digest)
	s := n.stuck[digest]
	s.times++
	pause := unloadPauseMax
	if s.times <= 4 {
		pause = min(unloadPause<<(s.times-1), unloadPauseMax)
	}
	s.retry = now.Add(pause)
	n.stuck[digest] = s
}

// lost forgets what was in flight on a node.
func (m *moves) lost(node string) {
	n := m.of(node)
	if n.loading != nil && n.loading.ended.IsZero() {
		n.given[n.loading.Digest]++
	}
	n.loading = nil
	clear(n.leaving)
}

// used notes a start or end of an attempt. Each asks Ollama to keep the model.
func (m *moves) used(node, digest string, now time.Time) {
	n := m.of(node)
	n.use[digest] = now
	if h := n.held[digest]; h != nil {
		h.kept = now
	}
}

// avoid keeps a model from a node until a time.
func (m *moves) avoid(node, digest string, until time.Time) {
	n := m.of(node)
	n.avoid[digest] = until
	delete(n.broken, digest)
}

// fill adds to a node's report what only the engine knows. The report itself is not changed: it may be shared.
func (m *moves) fill(n scheduler.Node, calls []holding, now time.Time) scheduler.Node {
	mine := m.of(n.ID)
	m.settle(mine, n, calls, now)
	n.RoomFor = mine.roomFor
	n.Loaded = slices.DeleteFunc(slices.Clone(n.Loaded), func(l scheduler.Loaded) bool { return mine.unverified(l.Digest, now) })
	for i := range n.Loaded {
		mine.fillLoaded(&n.Loaded[i], calls)
	}
	if mv := mine.loading; mv != nil {
		n.Loading = &scheduler.Claim{Digest: mv.Digest, Name: mv.Model, Context: mv.Context, Need: mv.Need, Since: mv.since}
	}
	n.Avoid, n.Unfit = laterOf(n.Avoid, mine.avoid), mine.unfitNow(now)
	return n
}

// unverified reports whether a model is in memory, but its load has not returned: nothing is to be started on it before it is clear
// that it did not spill. A load that does not return although its model has been there for a while is not waited for.
func (n *nodeMoves) unverified(digest string, now time.Time) bool {
	return n.loading != nil && n.loading.Digest == digest && n.loading.ended.IsZero() && now.Sub(n.since[digest]) < reportGrace
}

func (n *nodeMoves) fillLoaded(l *scheduler.Loaded, calls []holding) {
	l.Busy, l.Calls = 0, nil
	for _, c := range calls {
		if c.on(l.Digest, l.Name) {
			l.Busy++
			l.Calls = append(l.Calls, c.Call)
		}
	}
	if at := n.use[l.Digest]; at.After(l.LastUsed) {
		l.LastUsed = at
	}
	if l.Since.IsZero() {
		l.Since = n.since[l.Digest]
	}
	h := n.held[l.Digest]
	if l.Foreign = h == nil; h != nil {
		l.Observed = scheduler.Bytes{N: h.Observed, Known: h.Observed > 0}
	}
	l.Affinity = n.warm[l.Digest]
	l.Stuck, l.Retry = n.stuck[l.Digest].times, n.stuck[l.Digest].retry
	l.Leaving = l.Leaving || n.leaving[l.Digest] != nil
}

// laterOf merges two sets of times, neither of which is changed.
func laterOf(a, b map[string]time.Time) map[string]time.Time {
	if len(a) == 0 || len(b) == 0 {
		if len(b) == 0 {
			return a
		}
		return maps.Clone(b)
	}
	out := maps.Clone(a)
	for k, t := range b {
		if t.After(out[k]) {
			out[k] = t
		}
	}
	return out
}

// settleAbsent settles nodes that the fleet does not list.
func (m *moves) settleAbsent(listed []scheduler.Node, now time.Time) {
	for id, n := range m.nodes {
		if !slices.ContainsFunc(listed, func(l scheduler.Node) bool { return l.ID == id }) {
			m.settle(n, scheduler.Node{ID: id}, nil, now)
		}
	}
}

// settle forgets what the report shows by now, and what it should have shown long ago.
func (m *moves) settle(n *nodeMoves, report scheduler.Node, calls []holding, now time.Time) {
	m.settleHeld(n, report, calls, now)
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
	if mv := n.loading; mv != nil && !mv.ended.IsZero() {
		at = earliest(at, mv.ended.Add(reportGrace))
	} else if mv != nil && n.unverified(mv.Digest, now) {
		at = earliest(at, n.since[mv.Digest].Add(reportGrace))
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
	for _, u := range n.unfit {
		if u.Until.After(now) {
			at = earliest(at, u.Until)
		}
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
