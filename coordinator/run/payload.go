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
	Submitted []Submitted     `json:"submitted,omitempty"`
	Base      *Base           `json:"base,omitempty"`
	Parent    *Parent         `json:"parent,omitempty"` // the run that spawned it
}

// Submitted is work that was handed in and must be covered: one file of a list, or all lines of an artifact. What a workflow
// only reads, such as a file of rules, is not among them.
type Submitted struct {
	Key   string `json:"key"`             // of the file, else the name of the artifact of lines
	Ref   string `json:"ref,omitempty"`   // SHA-256 of the artifact of lines
	Lines int    `json:"lines,omitempty"` // how many it has; line i has the key "name:i+1"
}

// Base is the run that a fork or a retry takes results from: a step that asks for the same at the same position adopts what
// succeeded there. Seed and clock of such a run are the base's.
type Base struct {
	Run    string `json:"run"`
	Before int    `json:"before,omitempty"` // the first position that is not adopted; 0 adopts at all
	Failed bool   `json:"failed,omitempty"` // made to try again what failed
}

// Parent is where a child run was spawned.
type Parent struct {
	Run      string `json:"run"`
	Pos      int    `json:"pos"`
	Depth    int    `json:"depth"` // of the child, from 1
	Detached bool   `json:"detached,omitempty"`
}

// Priority says which runs' calls go first.
type Priority string

// The priorities. An empty one is normal.
const (
	Interactive Priority = "interactive" // somebody waits for it
	Normal      Priority = "normal"
	Batch       Priority = "batch" // whenever there is room
)

// Limits are a run's budgets; zero means none. They are resolved (run > workflow > default) before a run is created.
type Limits struct {
	ActiveSeconds int64 `json:"active_seconds,omitempty"` // a fixed budget of active time; else it follows from Scale
	Scale         Scale `json:"scale,omitzero"`
	Tokens        int64 `json:"tokens,omitempty"`         // prompt and output together
	Calls         int64 `json:"calls,omitempty"`          // attempts, those of tools included
	ArtifactBytes int64 `json:"artifact_bytes,omitempty"` // of one result
	SpawnDepth    int   `json:"spawn_depth,omitempty"`    // of children below the first run
}

// Scale is the budget of active time that grows with the fan-out: waves of Width calls, each with CallSeconds, within bounds.
type Scale struct {
	CallSeconds int64 `json:"call_seconds,omitempty"` // 0: there is no such budget
	Width       int   `json:"width,omitempty"`        // calls at once; 0 counts as 1
	Least       int64 `json:"least,omitempty"`        // seconds
	Most        int64 `json:"most,omitempty"`         // seconds, 0 for no bound
}

// Started says that a script host took the run.
type Started struct{}

// Requested is one call of a primitive that expects an answer, and becomes a step.
type Requested struct {
	Pos  int             `json:"pos"`
	Op   string          `json:"op"`             // kind of request
	Note bool            `json:"note,omitempty"` // of a kind that only a newer library knows
	Body json.RawMessage `json:"body"`
	// Refused says what is wrong with the request; then the step fails without an attempt, with RefusedKind or bad_request.
	Refused     string `json:"refused,omitempty"`
	RefusedKind string `json:"refused_kind,omitempty"`
	Lines       *Lines `json:"lines,omitempty"` // of a batch over lines, added by who records the request
}

// Lines say what an artifact of JSON lines holds without opening it.
type Lines struct {
	Count int    `json:"count"`
	Index string `json:"index"` // SHA-256 of Count+1 big-endian 8-byte offsets: of each line's first byte, and of the end
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
	Check Phase = "check" // the script's own code looks at it; there is no attempt
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
	// External says that the attempt of a tool writes something outside: interrupted, its outcome is unknown.
	External bool `json:"external,omitempty"`
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
	ThenCheck     Then = "check"
	ThenJudge     Then = "judge"
	ThenRetry     Then = "retry"
	ThenFailed    Then = "failed"
	ThenUnknown   Then = "unknown" // of an external write
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
	Result  Content    `json:"result,omitzero"` // of a step without attempts; other results are with their attempts
	Child   *ChildEnd  `json:"child,omitempty"` // of a spawn whose child was waited for
	From    *From      `json:"from,omitempty"`  // the step of another run whose result it took over
}

// ChildEnd is how a child run ended.
type ChildEnd struct {
	Run    string `json:"run"`
	Status Status `json:"status"`
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
	Limit string `json:"limit"` // active_seconds, tokens or calls
	Value int64  `json:"value"`
	Spent int64  `json:"spent"`
	Worst int64  `json:"worst,omitempty"` // what could be spent at most with what is in flight; 0 is unknown
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
	Limit      *LimitEnd   `json:"limit,omitempty"`
	Acceptance *Acceptance `json:"acceptance,omitempty"`
}

// LimitEnd is what became of the limit that ended a run.
type LimitEnd struct {
	Name      string `json:"name"`
	Limit     int64  `json:"limit"`
	Spent     int64  `json:"spent"`           // in the end
	Overshoot int64  `json:"overshoot"`       // beyond the limit
	Worst     int64  `json:"worst,omitempty"` // the most that was possible; 0 is unknown
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

// Noted is a note of the script that acceptance rests on: expect, cover, waive, fallback or until.
type Noted struct {
	Pos     int             `json:"pos"`
	Op      string          `json:"op"`
	Body    json.RawMessage `json:"body"`
	Refused string          `json:"refused,omitempty"` // what is wrong with it; then it counts for nothing and is a shortfall
}

// ItemChecked is what the script's check says of an item's result.
type ItemChecked struct {
	Pos  int `json:"pos"`
	Item int `json:"item"`
	Checked
	Consequence
}

// Checked is the conclusion of a check.
type Checked struct {
	Passed  bool     `json:"passed"`
	Reasons []string `json:"reasons,omitempty"`
}

// From is where a result was taken from.
type From struct {
	Run  string `json:"run"`
	Pos  int    `json:"pos"`
	Item int    `json:"item"`
}

// ItemReused ends an item with a result that was accepted before: of a base, or of an earlier run with the same request.
type ItemReused struct {
	Pos    int     `json:"pos"`
	Item   int     `json:"item"`
	From   From    `json:"from"`
	Result Content `json:"result"`
	Node   string  `json:"node,omitempty"`
	Report Report  `json:"report"` // of the call that made it then; it costs this run nothing
}

// ItemResolved says what became of an external write whose outcome was unknown.
type ItemResolved struct {
	Pos     int     `json:"pos"`
	Item    int     `json:"item"`
	Result  Content `json:"result,omitzero"`
	By      string  `json:"by,omitempty"` // a person, or the tool
	Comment string  `json:"comment,omitempty"`
	Consequence
}

// ChildStarted names the run that a spawn started; it is created in the same commit.
type ChildStarted struct {
	Pos int    `json:"pos"`
	Run string `json:"run"`
}

// PhaseMoved moves a pipeline's pointer. It is the only write that begins, ends or opens a phase again.
type PhaseMoved struct {
	Pipeline     string   `json:"pipeline"`
	Pos          int      `json:"pos"`                     // the next position: what was asked before belongs to the phase that ended
	Phases       []string `json:"phases,omitempty"`        // of the pipeline, when it begins
	MaxRollbacks int      `json:"max_rollbacks,omitempty"` // when it begins
	From         string   `json:"from,omitempty"`          // the phase that was in progress, "" at the beginning
	Outcome      string   `json:"outcome,omitempty"`       // of it: passed, sent_back or needs_human
	To           string   `json:"to,omitempty"`            // the phase in progress from now on, "" after the last
	Reason       string   `json:"reason,omitempty"`
	By           string   `json:"by,omitempty"` // the person who rolled back, "" for the script
}

// Parked says that a person suspended the run.
type Parked struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Resumed says that a person lets it go on.
type Resumed struct {
	By string `json:"by,omitempty"`
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
func (*Noted) Kind() string            { return "run.noted" }
func (*ItemChecked) Kind() string      { return "item.checked" }
func (*ItemReused) Kind() string       { return "item.reused" }
func (*ItemResolved) Kind() string     { return "item.resolved" }
func (*ChildStarted) Kind() string     { return "child.started" }
func (*PhaseMoved) Kind() string       { return "phase.moved" }
func (*Parked) Kind() string           { return "run.suspended" }
func (*Resumed) Kind() string          { return "run.resumed" }
