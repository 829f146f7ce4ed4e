// Package health keeps calls away from nodes, and from models on nodes, that have just failed several of them. It is a circuit
// breaker: after failures in a row it opens for a while, then lets one call through to see, and closes when that succeeds. It
// is pure but for its own memory: the caller brings the time.
package health

import "time"

// Subject is what a failure speaks against: a node, or with a digest one model on it.
type Subject struct {
	Node   string
	Digest string
}

// limit is how a kind of failure is judged.
type limit struct {
	node bool // it speaks against the whole node, not only against the model there
	row  int  // failures in a row that open the circuit
}

// limits by failure kind, see worker/calls and coordinator/run. What is not here is the model's or the request's own fault and
// shows that the node answers.
var limits = map[string]limit{
	"ollama_unreachable": {node: true, row: 3},
	"cannot_send":        {node: true, row: 3},
	"busy":               {node: true, row: 3}, // its queue is full of other clients' calls
	"server_error":       {row: 3},
	"out_of_memory":      {row: 2},
	"stalled":            {row: 2},
	"load_failed":        {row: 2},
}

// neutral kinds say nothing about the node: somebody ended the call, or the node is known to be gone anyway.
var neutral = map[string]bool{"cancelled": true, "node_lost": true, "node_paused": true, "deadline": true}

// firstPause is how long a circuit stays open the first time; it doubles each time up to lastPause.
const (
	firstPause = 30 * time.Second
	lastPause  = 10 * time.Minute
)

// circuit is what is known of one subject.
type circuit struct {
	row    int    // failures since the last success
	first  string // what failed first of them
	many   bool   // something else failed since
	kind   string // of the last one
	opened int    // times in a row
	until  time.Time
	probe  bool // one call is under way to see
}

// Circuits is the memory of all subjects. The zero value is ready; it is not safe for concurrent use.
type Circuits struct {
	known map[Subject]*circuit
}

// Failed takes in a failed call. what names what was asked for: one request that fails everywhere by itself opens nothing. It
// reports whether a circuit has opened.
func (c *Circuits) Failed(node, digest, kind, what string, now time.Time) (Subject, bool) {
	l, counts := limits[kind]
	switch {
	case neutral[kind]:
		c.released(node, digest)
		return Subject{}, false
	case !counts:
		c.Succeeded(node, digest)
		return Subject{}, false
	}
	s := Subject{Node: node, Digest: digest}
	if l.node {
		c.released(node, digest)
		s.Digest = ""
	}
	k := c.of(s)
	k.row++
	if k.row == 1 {
		k.first, k.many = what, false
	}
	k.many, k.kind = k.many || k.first != what, kind
	if !k.probe && (k.row < l.row || !k.many) {
		return s, false
	}
	if now.Before(k.until) { // a call that had begun before
		return s, false
	}
	pause := lastPause
	if k.opened < 5 {
		pause = min(lastPause, firstPause<<k.opened)
	}
	k.opened++
	k.until, k.probe = now.Add(pause), false
	return s, true
}

// Succeeded takes in a call that shows that node and model are well.
func (c *Circuits) Succeeded(node, digest string) {
	delete(c.known, Subject{Node: node, Digest: digest})
	delete(c.known, Subject{Node: node})
}

// released frees the place of a probe that said nothing.
func (c *Circuits) released(node, digest string) {
	for _, s := range []Subject{{node, digest}, {node, ""}} {
		if k := c.known[s]; k != nil {
			k.probe = false
		}
	}
}

func (c *Circuits) of(s Subject) *circuit {
	if c.known == nil {
		c.known = map[Subject]*circuit{}
	}
	if c.known[s] == nil {
		c.known[s] = &circuit{}
	}
	return c.known[s]
}

// probeWait is when the state of a circuit whose probe is under way is looked at again.
const probeWait = time.Second

// Open reports whether nothing may be started on the subject now, until when at least, and which kind of failure opened it. While
// one call is under way to see, nothing else may.
func (c *Circuits) Open(s Subject, now time.Time) (until time.Time, kind string, open bool) {
	k := c.known[s]
	switch {
	case k == nil || k.opened == 0:
		return time.Time{}, "", false
	case now.Before(k.until):
		return k.until, k.kind, true
	case k.probe:
		return now.Add(probeWait), k.kind, true
	default:
		return time.Time{}, "", false
	}
}

// Avoid is until when which models may not be started on a node, by digest; nil for none.
func (c *Circuits) Avoid(node string, now time.Time) map[string]time.Time {
	var out map[string]time.Time
	for s := range c.known {
		if s.Node != node || s.Digest == "" {
			continue
		}
		if until, _, open := c.Open(s, now); open {
			if out == nil {
				out = map[string]time.Time{}
			}
			out[s.Digest] = until
		}
	}
	return out
}

// Start takes note that a call is begun, and reports whether it may be: the one that is to see closes the way for others until it
// has ended.
func (c *Circuits) Start(node, digest string, now time.Time) bool {
	subjects := []Subject{{node, digest}, {node, ""}}
	for _, s := range subjects {
		if _, _, open := c.Open(s, now); open {
			return false
		}
	}
	for _, s := range subjects {
		if k := c.known[s]; k != nil && k.opened > 0 {
			k.probe = true
		}
	}
	return true
}

// Next is when the first open circuit lets a call through again, zero for never.
func (c *Circuits) Next(now time.Time) (at time.Time) {
	for _, k := range c.known {
		if k.until.After(now) && (at.IsZero() || k.until.Before(at)) {
			at = k.until
		}
	}
	return at
}
