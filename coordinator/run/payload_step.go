package run

import (
	"encoding/json"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
)

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
	// Handle: a large batch, whose result is delivered without its items.
	Handle bool `json:"handle,omitempty"`
	Judge  int  `json:"judge,omitempty"` // of an evaluate: which of its models judges first
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
	Failure  *Failure   `json:"failure,omitempty"`  // with Then failed after a judge's verdict, or where only a person can help
	// Step is how the next attempt differs from one that failed, "" for not at all; or why there is none.
	Step ladder.Step `json:"step,omitempty"`
	// Model is which of the step's models makes the next attempt after the step "model", or which of its judges with Then judge.
	Model int `json:"model,omitempty"`
}

// Then is what happens to an item next.
type Then string

// What can happen next.
const (
	ThenSucceeded Then = "succeeded"
	ThenCheck     Then = "check"
	ThenJudge     Then = "judge" // or another judge
	ThenRetry     Then = "retry"
	ThenFailed    Then = "failed"
	ThenUnknown   Then = "unknown" // of an external write
)

// AttemptSucceeded says that a call gave what was asked for. A judge's call succeeds when it answered, whatever.
type AttemptSucceeded struct {
	AttemptID
	Evidence
	Result Content `json:"result"` // of a judge: its judgement
	Consequence
	// Verdict is what the judgements of all judges come to; it is with the last one. See panel.Verdict.
	Verdict json.RawMessage `json:"verdict,omitempty"`
}

// AttemptFailed says that a call gave nothing usable, and why.
type AttemptFailed struct {
	AttemptID
	Evidence
	Cause   Failure `json:"cause"`
	Counted bool    `json:"counted"` // false: the node's fault, it does not use up an attempt
	Consequence
	Rejected *RejectedPlan `json:"rejected,omitempty"` // the plan that does not hold
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

// ItemTurned gives an item to the next of its models, or judges, without an attempt: no machine can take the one before.
type ItemTurned struct {
	Pos   int     `json:"pos"`
	Item  int     `json:"item"`
	Model int     `json:"model"` // as in Consequence
	Cause Failure `json:"cause"`
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
	Run       string `json:"run"`
	Status    Status `json:"status"`
	Simulated bool   `json:"simulated,omitempty"` // something in it came from a stand-in
	// What it and those below it spent, which counts against the limits of the run that spawned it. Zero for another's.
	Tokens int64 `json:"tokens,omitempty"`
	Calls  int64 `json:"calls,omitempty"`
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

// ItemReused gives an item a result that was accepted before: of a base, or of an earlier run with the same request. The script's
// check, which is code and may have changed, sees it again; the judge, who is part of the request, does not.
type ItemReused struct {
	Pos    int     `json:"pos"`
	Item   int     `json:"item"`
	From   From    `json:"from"`
	Result Content `json:"result"`
	Node   string  `json:"node,omitempty"`
	Report Report  `json:"report"` // of the call that made it then; it costs this run nothing
	Consequence
}

// ItemDoubted says that another run may have written what this item is to write.
type ItemDoubted struct {
	Pos  int  `json:"pos"`
	Item int  `json:"item"`
	From From `json:"from"`
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
