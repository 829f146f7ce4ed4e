package script

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Program is a workflow made ready to run: one JavaScript file that holds the user's code, its local imports and the
// loopkeeper library of the version it was bundled with. It is stored as an artifact and pinned to its run, so that
// neither editing the source nor upgrading the binary changes a run under way.
type Program struct {
	Name      string // file name or built-in name, for people
	Code      []byte // JavaScript
	SourceMap []byte // maps positions in Code to the user's own files
}

// Interface is what a program says of itself without being run.
type Interface struct {
	Description  string          `json:"description"`      // the exported `description`, else the first line of the file's doc comment
	ParamsSchema json.RawMessage `json:"params,omitempty"` // JSON Schema of the exported `params`; nil when it exports none
}

// Start is what a session begins from; the same Start and the same deliveries give the same yields.
type Start struct {
	Program Program
	Input   json.RawMessage // canonical JSON, valid against the params schema
	Seed    int64           // of Math.random and uuid
	Clock   time.Time       // what Date sees until the first delivery
}

// Host starts sessions. There are two: one child process per session for production, and one in this process for tests
// under fake time.
type Host interface {
	// Describe loads the program and returns its interface. A syntax error or a throw at load time is a *Failure.
	Describe(ctx context.Context, p Program) (Interface, error)
	// Start runs the program until it yields for the first time.
	Start(ctx context.Context, s Start) (Session, Yield, error)
}

// Session is one script in flight. It is used by one goroutine; Close may be called from any, once or more.
type Session interface {
	// Deliver settles the request at d.Pos, or has its check judge a value, and runs the script until it yields again.
	Deliver(ctx context.Context, d Delivery) (Yield, error)
	// DeliverAll is Deliver for each in turn, for replays: it spares a child a round trip for each. There are fewer yields than
	// deliveries when the script ended before the last one.
	DeliverAll(ctx context.Context, ds []Delivery) ([]Yield, error)
	// Close ends the script and frees what it holds.
	Close() error
}

// Request is one call of a primitive. Positions count from 0 without gaps, notes included.
type Request struct {
	Pos  int             `json:"pos"`
	Kind string          `json:"kind"`           // "generate", "batch", "output", … see docs/requests.md
	Body json.RawMessage `json:"body"`           // canonical JSON: sorted keys, no white space
	Note bool            `json:"note,omitempty"` // expects no delivery
}

// Delivery settles one request, with exactly one of Value and Err set, or asks its check about one value of it.
type Delivery struct {
	Pos   int             `json:"pos"`
	Time  time.Time       `json:"time"` // ledger time; what Date sees from now on
	Value json.RawMessage `json:"value,omitempty"`
	Err   *CallError      `json:"err,omitempty"`
	Check bool            `json:"check,omitempty"` // the script is to judge Value; the request stays open
	Item  int             `json:"item,omitempty"`  // which item's value that is
	About json.RawMessage `json:"about,omitempty"` // of a check: what the item is, where the script does not have it
}

// CallError is a step's failure as the script sees it: the promise rejects with an Error that has these fields.
type CallError struct {
	Kind    string `json:"kind"` // outcome kind, "schema_violation", …
	Message string `json:"message"`
	Step    int    `json:"step"` // position
}

// Yield is what the script did until it had nothing left to do but wait, or ended.
type Yield struct {
	Requests []Request `json:"requests,omitempty"` // in order of position
	Checks   []Checked `json:"checks,omitempty"`   // answers to checks, of this delivery or of earlier ones, in the order they were asked
	Heard    int       `json:"heard,omitempty"`    // deliveries that the script has had so far, checks among them
	End      *End      `json:"end,omitempty"`      // set once, last
}

// Checked is what a script's own check said about one value.
type Checked struct {
	Pos     int      `json:"pos"`
	Item    int      `json:"item,omitempty"`
	Passed  bool     `json:"passed"`
	Reasons []string `json:"reasons,omitempty"` // why it was sent back
	Failure *Failure `json:"failure,omitempty"` // the check itself failed, which says nothing about the value
}

// Request returns the answer in the form of a request, so that a replay can Compare it with the recorded one.
func (c Checked) Request() Request {
	body, _ := marshal(c) // texts, numbers and truths always marshal
	return Request{Pos: c.Pos, Kind: fmt.Sprintf("check of item %d", c.Item), Body: body}
}

// End is how a script ended. Exactly one of Value and Failure is set.
type End struct {
	Value   json.RawMessage `json:"value,omitempty"` // what the default function returned; null for undefined
	Failure *Failure        `json:"failure,omitempty"`
}

// FailureKind says in which way a script failed.
type FailureKind string

// The ways a script can fail.
const (
	Threw    FailureKind = "threw"    // an exception left the default function, or a promise was rejected unhandled
	Syntax   FailureKind = "syntax"   // the source does not parse or bundle
	Deadlock FailureKind = "deadlock" // it awaits something that nothing can settle
	CPULimit FailureKind = "cpu"      // it computed for too long without yielding
	Memory   FailureKind = "memory"   // it used more memory than allowed
	Crashed  FailureKind = "crashed"  // its process died for another reason

	// Incompatible is a program made by a later loopkeeper. Nothing is wrong with it, and its run can go on there.
	Incompatible FailureKind = "incompatible"
)

// Failure is why a script ended without a value. It names the place in the user's own source.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"`
	File    string      `json:"file,omitempty"`
	Line    int         `json:"line,omitempty"`   // from 1
	Column  int         `json:"column,omitempty"` // from 1
	Stack   string      `json:"stack,omitempty"`  // source-mapped
}

// Error returns "file:line:column: message", as far as the place is known.
func (f *Failure) Error() string { return f.place() + f.Message }

func (f *Failure) place() string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return f.File + ": "
	default:
		return fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
	}
}
