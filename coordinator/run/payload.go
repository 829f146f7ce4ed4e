package run

import (
	"encoding/json"
	"time"
)

// Content is a result: a value inline when it is small, else a stored body by hash.
type Content struct {
	Value json.RawMessage `json:"value,omitempty"`
	Ref   string          `json:"ref,omitempty"`   // SHA-256 of the body
	Bytes int64           `json:"bytes,omitempty"` // size of the body
	Text  bool            `json:"text,omitempty"`  // the body is free text, not JSON
}

// Empty says whether there is no result.
func (c Content) Empty() bool { return c.Value == nil && c.Ref == "" }

// Created is the first event of every run. It pins all that a replay depends on, and never the binary's version.
type Created struct {
	ID        string          `json:"id"`
	Workflow  string          `json:"workflow"`
	Program   string          `json:"program"`    // the script's file name, for its error messages
	Script    string          `json:"script"`     // SHA-256 of the bundled code
	SourceMap string          `json:"source_map"` // SHA-256, "" for none
	Interface string          `json:"interface"`  // version of the script interface
	Input     json.RawMessage `json:"input"`
	Seed      int64           `json:"seed"`
	Clock     time.Time       `json:"clock"` // what the script sees as now until the first delivery
	Key       string          `json:"key,omitempty"`
	Limits    Limits          `json:"limits"`
	Priority  Priority        `json:"priority,omitempty"`
	Weight    float64         `json:"weight,omitempty"` // share of the machines beside other runs; 0 counts as 1
}

// Priority says which runs' calls go first.
type Priority string

// The priorities. An empty one is normal.
const (
	Interactive Priority = "interactive" // somebody waits for it
	Normal      Priority = "normal"
	Batch       Priority = "batch" // whenever there is room
)

// Limits are a run's budgets; zero means none.
type Limits struct {
	ActiveSeconds int64 `json:"active_seconds,omitempty"`
}

// Started says that a script host took the run.
type Started struct{}

// Requested is one call of a primitive that expects an answer, and becomes a step.
type Requested struct {
	Pos  int             `json:"pos"`
	Op   string          `json:"op"`             // kind of request
	Note bool            `json:"note,omitempty"` // of a kind that only a newer library knows
	Body json.RawMessage `json:"body"`
	// Refused says what is wrong with the request; then the step fails without an attempt.
	Refused string `json:"refused,omitempty"`
}

// AttemptID names one attempt within its run.
type AttemptID struct {
	Pos    int   `json:"pos"`
	Item   int   `json:"item"`
	Phase  Phase `json:"phase"`
	Number int   `json:"number"` // from 1, per item and phase
}

// Phase is what an attempt does for its item.
type Phase string

// The phases of an item.
const (
	Work  Phase = "work"  // make the result
	Judge Phase = "judge" // accept it or send it back
)

// Placed says that an attempt has a node; it is sent after this is durable.
type Placed struct {
	AttemptID
	Node    string `json:"node"`
	Model   string `json:"model"`
	Digest  string `json:"digest,omitempty"`
	Context int    `json:"context,omitempty"` // tokens per slot
	Seed    int64  `json:"seed"`
	Why     string `json:"why,omitempty"` // the scheduler's reason, one sentence
}

// Begun says that the worker has begun.
type Begun struct{ AttemptID }

// Evidence is what an attempt leaves behind, whatever its outcome.
type Evidence struct {
	Node     string `json:"node"`
	Prompt   string `json:"prompt,omitempty"`   // SHA-256 of the prompt as sent
	Raw      string `json:"raw,omitempty"`      // SHA-256 of the reply as received
	Thinking string `json:"thinking,omitempty"` // SHA-256
	Report   Report `json:"report"`
}

// Consequence is what an attempt's end means for its item.
type Consequence struct {
	Then     Then       `json:"then"`
	RetryAt  *time.Time `json:"retry_at,omitempty"` // with Then retry
	Avoid    string     `json:"avoid,omitempty"`    // a node to avoid from now on
	Feedback []string   `json:"feedback,omitempty"` // reasons of a send-back, for the next attempt
	Failure  *Failure   `json:"failure,omitempty"`  // with Then failed after a judge's verdict
}

// Then is what happens to an item next.
type Then string

// What can happen next.
const (
	ThenSucceeded Then = "succeeded"
	ThenJudge     Then = "judge"
	ThenRetry     Then = "retry"
	ThenFailed    Then = "failed"
)

// AttemptSucceeded says that a call gave what was asked for. A judge's call succeeds when it gave a verdict, whichever.
type AttemptSucceeded struct {
	AttemptID
	Evidence
	Result Content `json:"result"`
	Consequence
}

// AttemptFailed says that a call gave nothing usable, and why.
type AttemptFailed struct {
	AttemptID
	Evidence
	Cause   Failure `json:"cause"`
	Counted bool    `json:"counted"` // false: the node's fault, it does not use up an attempt
	Consequence
}

// AttemptLate keeps what came back after nobody waited for it any more. It changes nothing.
type AttemptLate struct {
	AttemptID
	Evidence
	Result Content  `json:"result"`
	Cause  *Failure `json:"cause,omitempty"`
}

// ItemFailed ends an item without an attempt: no machine can hold its model, or a budget ran out.
type ItemFailed struct {
	Pos     int     `json:"pos"`
	Item    int     `json:"item"`
	Failure Failure `json:"failure"`
}

// StepEnded settles a request. The order of these events is the order in which the script sees results.
type StepEnded struct {
	Pos     int        `json:"pos"`
	Status  StepStatus `json:"status"`
	Failure *Failure   `json:"failure,omitempty"`
	Result  Content    `json:"result,omitzero"` // of a read; other results are with their attempts
}

// Logged records a line for people. Like the other notes it keeps its canonical request whole, for replays to compare.
type Logged struct {
	Pos  int             `json:"pos"`
	Body json.RawMessage `json:"body"`
}

// OutputNoted records a key result and the steps it rests on.
type OutputNoted struct {
	Pos  int             `json:"pos"`
	Body json.RawMessage `json:"body"`
}

// CollectedNoted records failures that the script gathered and did not throw.
type CollectedNoted struct {
	Pos  int             `json:"pos"`
	Body json.RawMessage `json:"body"`
}

// ScriptEnded says that the script's default function returned or threw. After a return the run ends when its open steps have.
type ScriptEnded struct {
	Error *Error `json:"error,omitempty"`
}

// LimitReached says that a budget ran out: nothing new starts, what is in flight ends.
type LimitReached struct {
	Limit string `json:"limit"` // active_seconds
	Value int64  `json:"value"`
	Spent int64  `json:"spent"`
}

// CancelRequested marks the run and moves its epoch, so that what comes later is not applied.
type CancelRequested struct {
	Epoch  int    `json:"epoch"`
	Reason string `json:"reason,omitempty"`
}

// Ended is the last event that changes a run.
type Ended struct {
	Status     Status      `json:"status"`
	Error      *Error      `json:"error,omitempty"`
	Divergence *Divergence `json:"divergence,omitempty"`
	Coverage   float64     `json:"coverage"`
	Counts     Counts      `json:"counts"`
	Shortfalls []string    `json:"shortfalls,omitempty"` // why it is not completed, one sentence each
}

// Error is how a script failed, at its place in the user's own source.
type Error struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Stack   string `json:"stack,omitempty"`
}

// Divergence is where a replay asked for something else than was recorded.
type Divergence struct {
	Pos      int    `json:"pos"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Kind implements Payload, as do the methods below.
func (*Created) Kind() string          { return "run.created" }
func (*Started) Kind() string          { return "run.started" }
func (*Requested) Kind() string        { return "step.requested" }
func (*Placed) Kind() string           { return "attempt.placed" }
func (*Begun) Kind() string            { return "attempt.running" }
func (*AttemptSucceeded) Kind() string { return "attempt.succeeded" }
func (*AttemptFailed) Kind() string    { return "attempt.failed" }
func (*AttemptLate) Kind() string      { return "attempt.late" }
func (*ItemFailed) Kind() string       { return "item.failed" }
func (*StepEnded) Kind() string        { return "step.ended" }
func (*Logged) Kind() string           { return "run.logged" }
func (*OutputNoted) Kind() string      { return "run.output" }
func (*CollectedNoted) Kind() string   { return "run.collected" }
func (*ScriptEnded) Kind() string      { return "script.ended" }
func (*LimitReached) Kind() string     { return "run.limit_reached" }
func (*CancelRequested) Kind() string  { return "run.cancel_requested" }
func (*Ended) Kind() string            { return "run.ended" }
