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
	// Lines describe the artifact of a batch over lines; who records the request adds them. Without them it is refused.
	Lines *Lines
	// Refused is why who records the request refuses it, "" to leave that to its form. The step fails with it.
	Refused string
}

// Yield is what a script did between two deliveries. Requests continue the recorded positions without a gap.
type Yield struct {
	Checks   []CheckAnswer
	Requests []Request
	End      *ScriptEnd
}

// CheckAnswer is the script's answer to a check delivery.
type CheckAnswer struct {
	Pos, Item int
	Checked
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
	// External: a tool that writes outside, see Placed.
	External bool
}

// Begin says that the worker has begun with an attempt.
type Begin struct{ AttemptID }

// Finish is the end of an attempt in flight. Failure is nil on success.
type Finish struct {
	AttemptID
	Evidence
	Result  Content
	Failure *Failure
	// Rejected is the plan that a failed plan's call gave, nil for none.
	Rejected *RejectedPlan
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

// Expire says that the deadline has passed: the budget of active time ran out.
type Expire struct{}

// Exhaust says that a run and those below it have together used up a limit: its own, or with Of that of a run above it.
type Exhaust struct{ LimitReached }

// Diverge ends a run whose replay asked for something else than was recorded.
type Diverge struct{ Divergence }

// Suspend parks a run at a person's wish.
type Suspend struct{ By, Reason string }

// Resume lets a suspended run go on.
type Resume struct{ By string }

// Settle is a person's answer to an approve (Outcome) or a question (Answer).
type Settle struct {
	Pos     int
	Outcome string          // approved or rejected
	Answer  json.RawMessage // checked against the question's schema by who passes it on
	By      string
	Comment string
}

// Fire ends every wait whose time has come, with its outcome for that case.
type Fire struct{}

// Spawned says which run a spawn has started. It is decided in the commit that creates that run.
type Spawned struct {
	Pos int
	Run string
}

// ChildEnded gives a spawn its child's report, or why there is no child.
type ChildEnded struct {
	Pos     int
	End     ChildEnd
	Report  Content
	Failure *Failure
}

// Reuse ends an item, or a step without items, with a result that was accepted before.
type Reuse struct {
	Pos, Item int
	From      From
	Result    Content
	Node      string
	Report    Report
	Child     *ChildEnd // of a spawn
}

// Doubt says that the base's tool may have written what this item is to write: it is unknown until somebody says.
type Doubt struct {
	Pos, Item int
	From      From
}

// Resolve says what became of an external write whose outcome a crash hid.
type Resolve struct {
	Pos, Item int
	Happened  bool    // else it is tried again
	Result    Content // when it happened; null when nothing is known of it
	By        string
	Comment   string
}

// Rollback is a person's: the pipeline goes back to an earlier phase that has completed.
type Rollback struct{ Pipeline, Phase, Reason, By string }
