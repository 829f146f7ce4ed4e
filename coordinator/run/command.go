package run

import (
	"encoding/json"
	"time"
)

// Command is a wish to change a run. Each carries the time at which it is decided.
type Command interface {
	decide(s *State, now time.Time) ([]Payload, error)
}

// Create makes a run; it is the only command for an empty state.
type Create struct{ Created }

// Start gives a queued run a script host.
type Start struct{}

// Request is what the script asked for, as it left it.
type Request struct {
	Pos  int
	Kind string
	Body json.RawMessage // canonical
	Note bool
}

// Yield is what a script did between two deliveries. Requests continue the recorded positions without a gap.
type Yield struct {
	Requests []Request
	End      *ScriptEnd
}

// ScriptEnd is how the script ended; Error is nil when it returned.
type ScriptEnd struct{ Error *Error }

// Place gives the next attempt of an item a node.
type Place struct {
	AttemptID
	Node    string
	Model   string
	Digest  string
	Context int
	Why     string
}

// Begin says that the worker has begun with an attempt.
type Begin struct{ AttemptID }

// Finish is the end of an attempt in flight. Failure is nil on success.
type Finish struct {
	AttemptID
	Evidence
	Result  Content
	Failure *Failure
}

// Late is a result that nobody waits for any more.
type Late struct{ Finish }

// Reject ends an item that no machine can run.
type Reject struct {
	Pos, Item int
	Failure   Failure
}

// Answer settles a read.
type Answer struct {
	Pos     int
	Result  Content
	Failure *Failure
}

// Cancel ends a run at a user's wish.
type Cancel struct{ Reason string }

// Expire says that the budget of active time ran out.
type Expire struct{ Spent time.Duration }

// Diverge ends a run whose replay asked for something else than was recorded.
type Diverge struct{ Divergence }
