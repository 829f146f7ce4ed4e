package run

import (
	"fmt"
	"time"
)

// The limits that end a run, by the names that they have in requests, settings and messages.
const (
	LimitActive = "active_seconds"
	LimitTokens = "tokens"
	LimitCalls  = "calls"
)

// The limits that bound a single result, and how deep runs start runs.
const (
	LimitArtifact = "artifact_bytes"
	LimitDepth    = "spawn_depth"
)

// Set yields the names of the limits that are set.
func (l Limits) Set(yield func(string) bool) {
	for _, is := range []struct {
		name string
		set  bool
	}{
		{LimitActive, l.ActiveSeconds > 0 || l.Scale.CallSeconds > 0}, {LimitTokens, l.Tokens > 0}, {LimitCalls, l.Calls > 0},
		{LimitArtifact, l.ArtifactBytes > 0}, {LimitDepth, l.SpawnDepth > 0},
	} {
		if is.set && !yield(is.name) {
			return
		}
	}
}

// exhausted says which budget is used up while something still wants to start; nil for none. A run that needs nothing more is
// not ended by having needed exactly what it was given.
func (s *State) exhausted() *LimitReached {
	if s.Limit != nil || s.Status != Running && s.Status != Waiting {
		return nil
	}
	reached := s.Reached(s.Spent())
	if reached == nil || !s.Wants() {
		return nil
	}
	return reached
}

// Reached says which budget has been used up by what a run and those below it spent; nil for none.
func (s *State) Reached(tokens, calls int64) *LimitReached {
	switch l := s.Pinned.Limits; {
	case l.Tokens > 0 && tokens >= l.Tokens:
		return &LimitReached{Limit: LimitTokens, Value: l.Tokens, Spent: tokens, Worst: s.worstTokens(tokens)}
	case l.Calls > 0 && calls >= l.Calls:
		return &LimitReached{Limit: LimitCalls, Value: l.Calls, Spent: calls, Worst: calls}
	default:
		return nil
	}
}

// Wants says whether something of a run is yet to start: a call, or a child.
func (s *State) Wants() bool {
	if s.Counts.Waiting > 0 {
		return true
	}
	for range s.Spawns {
		return true
	}
	return false
}

// Spent is what a run has used, with what those of its children used that have ended and were its own.
func (s *State) Spent() (tokens, calls int64) {
	return s.PromptTokens + s.OutputTokens + s.below.tokens, s.Calls + s.below.calls
}

// worstTokens is what can have been spent in the end, beside what was: a call takes no more tokens than its context has. 0 is unknown.
func (s *State) worstTokens(spent int64) int64 {
	worst := spent
	for f := range s.Flights {
		if f.Context == 0 && steps[s.Requests[f.Pos].Kind].work == model {
			return 0
		}
		worst += int64(f.Context)
	}
	return worst
}

// status is the end that a limit leads to.
func (l *LimitReached) status() Status {
	if l.Limit == LimitActive {
		return TimedOut
	}
	return Exhausted
}

// limitEnd says in the end what became of the limit that ended a run: what was in flight has ended and is counted.
func (s *State) limitEnd(now time.Time) *LimitEnd {
	if s.Limit == nil {
		return nil
	}
	e := &LimitEnd{Name: s.Limit.Limit, Limit: s.Limit.Value, Spent: s.Limit.Spent, Worst: s.Limit.Worst, Of: s.Limit.Of}
	tokens, calls := s.Spent()
	switch {
	case e.Of != "": // what its tree had spent then
	case e.Name == LimitActive:
		e.Spent = int64(s.Active(now).Seconds())
	case e.Name == LimitTokens:
		e.Spent = tokens
	case e.Name == LimitCalls:
		e.Spent = calls
	}
	e.Overshoot = max(0, e.Spent-e.Limit)
	return e
}

func (e *LimitEnd) String() string {
	if e.Name == LimitActive {
		return fmt.Sprintf("the time limit of %d s was reached after %d s; %s is set for the run, for its workflow or as the default", e.Limit, e.Spent, LimitActive)
	}
	if e.Of != "" {
		return fmt.Sprintf("the limit of %d %s of run %s, which is above it, was reached by all that it has spawned", e.Limit, e.Name, e.Of)
	}
	text := fmt.Sprintf("the limit of %d %s was reached: %d were spent", e.Limit, e.Name, e.Spent)
	if e.Worst > 0 {
		text += fmt.Sprintf(", %d were possible", e.Worst)
	}
	return text + fmt.Sprintf("; the limit %s is set for the run, for its workflow or as the default", e.Name)
}

// within refuses a result beyond the limit of one artifact. Another try may give a shorter one, as often as tries are left; what was
// written outside has been written, and is not written again for that.
func (s *State) within(c Content, written bool) (Content, *Failure) {
	limit := s.Pinned.Limits.ArtifactBytes
	size := max(c.Bytes, int64(len(c.Value)))
	if limit == 0 || size <= limit {
		return c, nil
	}
	f := &Failure{Kind: KindTooLarge, Advice: Changed,
		Message: fmt.Sprintf("the result has %d bytes; the limit artifact_bytes is %d (of the run, its workflow or the default)", size, limit)}
	if written {
		f.Advice, f.Message = Never, "it happened, but "+f.Message
	}
	return Content{}, f
}
