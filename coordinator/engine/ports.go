package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Attempt is one call on one worker, ready to be sent. It is self-contained but for the bodies that it names by hash.
type Attempt struct {
	Key     string // "run/step/item/phase/attempt", the idempotency key on the worker
	RunID   string
	Step    int // position
	Item    int // index within a batch, else 0
	Number  int // from 1; every attempt of an item and phase has its own, for its key
	Try     int // from 1: as Number, but not counting what a node lost. Seed and temperature vary by it
	Node    string
	Kind    CallKind
	Model   string
	Digest  string
	Context int   // tokens per slot
	Seed    int64 // of this try
	// Request is the step's canonical request, see docs/requests.md, without what travels beside it: items, keys, feedback.
	// When a result is to be judged it is an evaluate request of its own: criteria, goal and sources (context, item).
	Request json.RawMessage
	Body    json.RawMessage // the item that the attempt is about, or the subject: string, ref or value; nil when there is none
	Line    *run.Line       // where the item is when it is a line of an artifact; of a judge's attempt one more source
	// Feedback holds the request's own feedback and the reasons of earlier send-backs.
	Feedback []string
	// Variation is how the attempt differs from the first one of its kind.
	run.Variation
	// Prompts are the texts that the run has pinned, SHA-256 by name; what is not named is the worker's own.
	Prompts  map[string]string
	Deadline time.Duration // 0: none
}

// CallKind is the worker call an attempt makes.
type CallKind string

// The call kinds.
const (
	CallGenerate CallKind = "generate"
	CallPlan     CallKind = "plan"
	CallEvaluate CallKind = "evaluate"
	CallEmbed    CallKind = "embed"
)

// Advice says whether another attempt can help; it comes with every failure.
type Advice = run.Advice

// The advices.
const (
	Never     = run.Never
	Again     = run.Again
	OtherNode = run.OtherNode
	Changed   = run.Changed
)

// Failure is why an attempt did not succeed: Kind is an outcome kind of worker/calls, node_lost or cannot_send.
type Failure = run.Failure

// Result is how an attempt ended, as dispatch hands it in. Failure is nil on success.
type Result struct {
	Key      string
	Failure  *Failure
	Kind     CallKind        // of the attempt
	Value    json.RawMessage // validated value, plan, judgement or vectors; nil for free text. Of a plan that failed: {rejected, reasons}
	Text     string          // free text
	Prompt   string          // as sent
	Raw      string          // reply as received
	Thinking string
	Report   Report
}

// Report says what ran, see the worker contract.
type Report = run.Report

// Progress is how far a running attempt is; it is shown, never stored.
type Progress struct {
	Key             string
	Tokens          int64
	TokensPerSecond float64
	Phase           string // queued, loading, prompt, writing
}

// Move is how a load or unload ended, as dispatch hands it in. What a load says of memory is zero or unknown for an unload.
type Move struct {
	scheduler.Decision               // the one that was carried out
	Err                error         // nil on success
	Took               time.Duration // of the load, as the worker measured it
	Spilled            bool          // Ollama says that a part lies outside the accelerator
	Size, VRAM         uint64        // bytes, as Ollama says
	Observed           scheduler.Bytes
}

// Dispatcher sends attempts to workers. Its methods return at once; results come through Sink.
type Dispatcher interface {
	// Send starts an attempt. Sending a key that the node runs or has finished joins it or fetches the kept result.
	Send(a Attempt)
	// Cancel ends an attempt; its result still comes through Sink, as a failure of kind "cancelled".
	Cancel(node, key string)
	// Load and Unload carry out the scheduler's decisions; the end comes through Sink.Moved.
	Load(node string, d scheduler.Decision)
	Unload(node string, d scheduler.Decision)
	// Renew keeps a loaded model in memory for another while; it loads nothing. Nobody waits for its end.
	Renew(node string, d scheduler.Decision)
}

// Fleet says what the nodes look like.
type Fleet interface {
	// Nodes returns every node ever seen, sorted by id, as last reported. The engine fills in what only it knows
	// (Busy, Loading, LastUsed, Avoid).
	Nodes() []scheduler.Node
	// Answering returns since when a node's Ollama has answered every question; zero when that is not known.
	Answering(node string) time.Time
	// Changed receives a value after something changed that placement may depend on. Its capacity is one.
	Changed() <-chan struct{}
}

// Sink is where dispatch and fleet hand in what happened; the engine implements it. The methods never block for long.
type Sink interface {
	// Finished hands in an attempt's end; the engine takes each key once and ignores it after that.
	Finished(r Result)
	// Progressed hands in how far an attempt is.
	Progressed(p Progress)
	// Moved says that a load or unload on a node ended.
	Moved(node string, m Move)
	// Lost says that a node is gone: its attempts in flight go elsewhere.
	Lost(node string)
}

// Tools is what steps can do on this machine, beside calls of models. Its methods may be called from several goroutines.
type Tools interface {
	// Effect says whom a tool affects. known is false when there is no such tool.
	Effect(tool string) (effect ToolEffect, known bool)
	// Run does a call, or returns what the same key did before. How it ended is in the outcome, a failure too; an error says that
	// its end is not known.
	Run(ctx context.Context, c ToolCall) (ToolOutcome, error)
	// Check says by a look at the world whether a call whose end nobody heard of had its effect. It changes nothing.
	Check(ctx context.Context, c ToolCall) (ToolChecked, error)
}

// ToolEffect is whom a tool affects.
type ToolEffect string

// The effects of tools. What has one is recorded before it acts; after a crash its outcome is unknown until somebody looks.
const (
	EffectNone     ToolEffect = "none"
	EffectLocal    ToolEffect = "local"    // it changes this machine
	EffectExternal ToolEffect = "external" // others see it
)

// ToolCall is one use of a tool.
type ToolCall struct {
	Key   string // "run/step/item/work/attempt": two calls with one key are one call
	Tool  string
	Input json.RawMessage // canonical
}

// Ruling says whether a call may act: with neither field it may.
type Ruling struct {
	Ask    *run.Question // a person has to allow it first
	Refuse *Failure      // it may not
}

// ToolOutcome is how a call ended. A failure of kind run.KindUnknown says that it may have had its effect.
type ToolOutcome struct {
	Value   json.RawMessage
	Before  json.RawMessage // what was seen before, a JSON array of facts; nil for nothing
	After   json.RawMessage // and afterwards
	Failure *Failure
}

// ToolState says whether a call had its effect.
type ToolState string

// The answers of Check.
const (
	ToolDone    ToolState = "done"
	ToolNotDone ToolState = "not_done" // it is safe to do it again
	ToolUnknown ToolState = "unknown"  // only a person can say
)

// ToolChecked is what a look at the world says.
type ToolChecked struct {
	State   ToolState
	Outcome *ToolOutcome // when done, as far as can be seen
	Why     string
}
