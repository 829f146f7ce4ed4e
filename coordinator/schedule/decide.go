package schedule

import (
	"fmt"
	"slices"
	"time"
)

// Facts are what a decision is given beside the state.
type Facts struct {
	Scan   *Scan           // what is in the watched folder now; nil: it was not looked at
	Hashes map[string]Hash // of files that an earlier decision asked for, by path
	Ended  []End           // runs of State.Running that have ended
}

// Decision is what is to be done. The state is to be stored before any of it.
type Decision struct {
	State   State
	Firings []Firing  // new in State.Outbox
	Hash    []string  // files whose hash decides more: decide again with them
	Next    time.Time // decide again then, or when a run ends; zero: only then
	Reasons []string  // why nothing is fired now, for people; of times that have passed see State.Notes
}

const (
	// onTime is how late a firing may be without having been missed.
	onTime = time.Minute
	// farBack is from which on a clock that went back was wrong before, and times count from now on.
	farBack = 24 * time.Hour
	// endsEvery is how often the ends of runs are asked for where nobody tells.
	endsEvery = 30 * time.Second
	// remembered is how many fired times are kept; of older ones only the key says that they were fired.
	remembered = 100
	// notes is how many notes are kept.
	notes = 10
)

// deciding is one decision under way.
type deciding struct {
	Spec
	Decision
	facts Facts
	now   time.Time // with its monotonic reading, for what must not follow a clock that is set
	most  int       // how many times that were missed are made up for
	wall  time.Time
}

// Decide says what a schedule does at now. It has no effects and no memory: the state is all of it. spec is a completed one.
func Decide(spec Spec, state State, now time.Time, facts Facts) Decision {
	d := &deciding{Spec: spec, Decision: Decision{State: state.clone()}, facts: facts, now: now, wall: now.Round(0).UTC()}
	sent := len(state.Outbox)
	d.ended()
	if d.State.Paused != nil {
		d.say("paused since %s by %s", d.State.Paused.At.Format(time.RFC3339), d.State.Paused.By)
		return d.Decision
	}
	ts, err := spec.times(d.State.Created)
	switch {
	case err != nil:
		d.say("it cannot be decided: %v", err)
		d.Next = d.wall.Add(time.Hour)
		return d.Decision
	case ts != nil:
		d.due(ts)
	default:
		d.look()
	}
	d.release()
	d.Firings = slices.Clone(d.State.Outbox[sent:])
	d.next(ts)
	return d.Decision
}

func (d *deciding) say(format string, args ...any) {
	d.Reasons = append(d.Reasons, fmt.Sprintf(format, args...))
}

// note keeps why a time was not fired, for those who ask later.
func (d *deciding) note(format string, args ...any) {
	d.State.Notes = append(d.State.Notes, Note{At: d.wall, Text: fmt.Sprintf(format, args...)})
	if n := len(d.State.Notes) - notes; n > 0 {
		d.State.Notes = slices.Delete(d.State.Notes, 0, n)
	}
}

// ended takes note of runs that have ended.
func (d *deciding) ended() {
	for _, end := range d.facts.Ended {
		i := slices.IndexFunc(d.State.Running, func(s Started) bool { return s.Run == end.Run })
		if i < 0 {
			continue
		}
		d.State.Running = slices.Delete(d.State.Running, i, i+1)
		d.State.Cancel = slices.DeleteFunc(d.State.Cancel, func(run string) bool { return run == end.Run })
		if d.State.Last == nil || !end.At.Before(d.State.Last.At) {
			d.State.Last = &end
		}
	}
}

// due decides about the scheduled times that have passed.
func (d *deciding) due(ts times) {
	if back := d.State.Decided.Sub(d.wall); back > farBack {
		d.note("the clock went back by %s: times count from now on, those that were fired are not fired again", back.Round(time.Second))
		d.State.Decided = d.wall
	}
	d.most = 1
	if d.CatchUp.Policy == All && d.Overlap != Cancel {
		d.most = d.CatchUp.Most
	}
	list, earlier := latest(ts, d.State.Decided, d.wall, d.most)
	if len(list) == 0 {
		return
	}
	missed := func(t time.Time) bool { return d.wall.Sub(t) > onTime }
	if d.CatchUp.Policy == None && missed(list[0]) {
		d.note("%s and before: missed, and not made up for (catch_up none)", d.show(list[0]))
		list = nil
	} else if earlier {
		d.note("times before %s: missed, and not made up for (catch_up %s)", d.show(list[0]), d.CatchUp.Policy)
	}
	for _, t := range list {
		d.fireAt(t, missed(t))
	}
	if n := len(d.State.Recent) - remembered; n > 0 {
		d.State.Recent = slices.Delete(d.State.Recent, 0, n)
	}
	if len(list) > 0 {
		d.State.Decided = list[len(list)-1].UTC()
	} else {
		d.State.Decided = d.wall
	}
}

// fireAt decides about one scheduled time.
func (d *deciding) fireAt(t time.Time, late bool) {
	t = t.UTC()
	busy := d.State.busy()
	switch why := d.unmet(0, 0); {
	case slices.ContainsFunc(d.State.Recent, t.Equal):
		d.note("%s: it was fired before the clock went back", d.show(t))
	case d.full():
		d.note("%s: left out, the limit of %d firings is reached", d.show(t), d.MaxFirings)
	case why != "":
		d.note("%s: %s", d.show(t), why)
	case busy && !late && d.Overlap == Skip:
		d.note("%s: left out, a run is under way (overlap skip)", d.show(t))
	case busy && !late && d.Overlap == Queue && len(d.State.Waiting) > 0:
		d.note("%s: left out, one waits already (overlap queue)", d.show(t))
	case busy && late && len(d.State.Waiting) >= d.most, len(d.State.Outbox) >= mostCatchUp:
		d.note("%s: left out, as many wait as are made up for", d.show(t))
	default:
		if d.Overlap == Cancel {
			d.State.Waiting = nil // the newest counts
		}
		d.State.Recent = append(d.State.Recent, t)
		d.queue(Firing{Key: d.State.key(d.Name, t.Format(time.RFC3339)), Due: t, Late: late})
	}
}

func (d *deciding) queue(f Firing) {
	d.State.Fired++
	d.State.Waiting = append(d.State.Waiting, f)
}

// full says that the limit of firings is reached.
func (d *deciding) full() bool {
	return d.MaxFirings > 0 && d.State.Fired >= d.MaxFirings
}

// release sends off what waits, as far as the overlap policy lets it.
func (d *deciding) release() {
	s := &d.State
	switch {
	case len(s.Waiting) == 0:
	case d.Overlap == Allow:
		s.Outbox, s.Waiting = append(s.Outbox, s.Waiting...), nil
	case len(s.Outbox) > 0: // whether it runs is not known yet
	case d.Overlap == Cancel:
		for _, r := range s.Running {
			if !slices.Contains(s.Cancel, r.Run) {
				s.Cancel = append(s.Cancel, r.Run)
			}
		}
		s.Outbox, s.Waiting = append(s.Outbox, s.Waiting...), nil
	case len(s.Running) == 0:
		s.Outbox, s.Waiting = append(s.Outbox, s.Waiting[0]), slices.Clone(s.Waiting[1:])
	}
}

// next says when to decide again.
func (d *deciding) next(ts times) {
	soonest := func(t time.Time) {
		if !t.IsZero() && (d.Next.IsZero() || t.Before(d.Next)) {
			d.Next = t
		}
	}
	switch {
	case d.full():
		d.say("it has fired %d times, which is its limit", d.State.Fired)
	case ts == nil:
		soonest(d.wall.Add(time.Duration(d.Watch.PollSeconds) * time.Second))
	case d.State.Decided.After(d.wall):
		soonest(ts.next(d.State.Decided))
	default:
		soonest(ts.next(d.wall))
	}
	if len(d.State.Running) > 0 {
		soonest(d.wall.Add(endsEvery))
	}
}

// show is a scheduled time as people read it.
func (d *deciding) show(t time.Time) string {
	if zone, err := loadZone(d.Zone); err == nil {
		t = t.In(zone)
	}
	return t.Format(time.RFC3339)
}
