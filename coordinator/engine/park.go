package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// How long a host is kept by a script that has nothing to do. To rebuild it costs a replay, so who takes longer to replay keeps it longer:
// replays never cost more than a small share of the time.
const (
	leastSlice = time.Second // before another run may have it, unless this one waits for a person, a timer or children
	sliceShare = 4           // replays
	leastRest  = 15 * time.Second
	restShare  = 20
)

// hosts are the script hosts that live.
type hosts struct {
	live      map[*driver]bool // also those that were given back and have not ended
	replaying chan struct{}    // holds a value while somebody replays a run
}

func newHosts() hosts { return hosts{live: map[*driver]bool{}, replaying: make(chan struct{}, 1)} }

// host gives scripts that have something to do a host, who has waited longest first. A host that has nothing to do is taken from its run
// when another one wants it: that run's script is rebuilt by replay when there is something for it.
func (t *turn) host() {
	e := t.e
	free, going := e.o.MaxScripts-len(e.hosts.live), 0
	for d := range e.hosts.live {
		if d.a.driver != d {
			going++
		}
	}
	for _, a := range e.wanting() {
		switch {
		case free > 0:
			if a.state.Status == run.Queued && t.execute(a, run.Start{}) != nil {
				continue
			}
			free--
			t.then(func() { e.drive(a) })
		case going > 0:
			going-- // the one that comes free is for it
		default:
			idle := e.idlest()
			if idle == nil {
				return
			}
			t.giveBack(idle)
		}
	}
}

// wanting are the runs that want a host, who has waited longest first.
func (e *Engine) wanting() []*active {
	var out []*active
	for _, a := range e.order {
		if a.driver == nil && (a.state.Status == run.Queued || a.wantsHost()) {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b *active) int { return a.wantsSince().Compare(b.wantsSince()) })
	return out
}

// wantsHost says that the script of a run under way has something to do, or may have: after a restart nobody knows whether it has
// reacted to all that it was given, so a run that only waits gets a host once, too.
func (a *active) wantsHost() bool {
	s := a.state
	return s.Script == nil && (s.Status == run.Running || s.Status == run.Waiting) && a.quiet != len(s.Deliveries)
}

// wantsSince is since when a run wants a host: from its birth or, when it gave one back, from the first delivery after that. One that was
// hosted before a restart or a crash of its host was there first.
func (a *active) wantsSince() time.Time {
	s := a.state
	switch {
	case s.Status == run.Queued:
		return s.Born
	case a.quiet >= 0 && a.quiet < len(s.Deliveries):
		return s.Deliveries[a.quiet].Time
	default:
		return time.Time{}
	}
}

// idle says that the script has reacted to all that there is.
func (a *active) idle() bool {
	return a.driver != nil && a.driver.live && a.heard == len(a.state.Deliveries)
}

// idlest is the run that can best do without its host, nil when none can: first who waits for a person, a timer or children.
func (e *Engine) idlest() *active {
	var found []*active
	for _, a := range e.order {
		if a.idle() && (a.parked() || a.driver.held) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *active) int {
		if a.parked() != b.parked() {
			if a.parked() {
				return -1
			}
			return 1
		}
		return cmp.Or(a.lastHeard().Compare(b.lastHeard()), a.state.Born.Compare(b.state.Born))
	})
}

func (a *active) parked() bool {
	return a.state.Status == run.Waiting || a.state.Status == run.Suspended
}

// lastHeard is when the script was given something last.
func (a *active) lastHeard() time.Time {
	if n := len(a.state.Deliveries); n > 0 {
		return a.state.Deliveries[n-1].Time
	}
	return a.state.Started
}

// rest takes a host that has had nothing to do for long.
func (t *turn) rest(d *driver, heard int) {
	if a := d.a; a.driver == d && a.idle() && a.heard == heard {
		t.giveBack(a)
	}
}

// giveBack ends a run's host while its script has nothing to do.
func (t *turn) giveBack(a *active) {
	d := a.driver
	a.driver, a.quiet = nil, len(a.state.Deliveries)
	t.then(d.cancel)
}
