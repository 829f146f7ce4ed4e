package tools

import (
	"context"
	"encoding/json"
	"io"

	"github.com/loopkeeper/loopkeeper/coordinator/tools/policy"
)

// Effect is whom a tool affects.
type Effect string

// The effects.
const (
	None     Effect = "none"     // it only looks
	Local    Effect = "local"    // it changes this machine, within a workspace
	External Effect = "external" // others see it
)

// Description is what is known of a tool before it is called.
type Description struct {
	Name       string          `json:"name"`    // such as file.write
	Summary    string          `json:"summary"` // one sentence
	Input      json.RawMessage `json:"input"`   // JSON Schema of the input
	Output     json.RawMessage `json:"output"`  // JSON Schema of the value
	Effect     Effect          `json:"effect"`
	Undoable   bool            `json:"undoable"`   // the evidence holds what is needed to undo it
	Verifiable bool            `json:"verifiable"` // Check can tell whether it was done
	Verify     string          `json:"verify"`     // how a person sees whether it was done, "" when there is nothing to see
}

// Call is one use of a tool.
type Call struct {
	Key   string          `json:"key"` // run/position/item/attempt: two calls with one key are one call
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"` // canonical JSON; bodies in it are texts, refs or values
}

// Outcome is how a call ended. Failure is nil on success.
type Outcome struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Before  []Evidence      `json:"before,omitempty"`
	After   []Evidence      `json:"after,omitempty"`
	Failure *Failure        `json:"failure,omitempty"`
}

// EvidenceKind is what an Evidence is about.
type EvidenceKind string

// The kinds of evidence.
const (
	FileEvidence  EvidenceKind = "file"  // Workspace, Path and, if it exists, SHA256, Bytes and maybe Body
	DiffEvidence  EvidenceKind = "diff"  // Text is a unified diff of Path
	EntryEvidence EvidenceKind = "entry" // Text is a line that was added somewhere
)

// Evidence is one fact about the world before or after a call, looked at and not claimed.
type Evidence struct {
	Kind      EvidenceKind `json:"kind"`
	Workspace string       `json:"workspace,omitempty"`
	Path      string       `json:"path,omitempty"`
	Exists    bool         `json:"exists,omitempty"`
	SHA256    string       `json:"sha256,omitempty"` // of the content
	Bytes     int64        `json:"bytes,omitempty"`
	Body      *Ref         `json:"body,omitempty"` // the content, where it was kept so that it can be put back
	Text      string       `json:"text,omitempty"`
}

// Ref names a body in the artifact store, as requests do.
type Ref struct {
	SHA256 string `json:"ref"`
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
}

// Bodies is the artifact store.
type Bodies interface {
	// Open reads a body; bytes is its size.
	Open(ctx context.Context, sha256 string) (body io.ReadCloser, bytes int64, err error)
	// Put stores a body under its hash and returns what names it. It is durable when Put returns.
	Put(ctx context.Context, name string, body io.Reader) (Ref, error)
}

// Record is what is kept of a call with an effect: before it acts without an Outcome, afterwards with one.
type Record struct {
	Key     string     `json:"key"`
	Tool    string     `json:"tool"`
	Input   string     `json:"input"` // SHA-256 of the input
	Before  []Evidence `json:"before,omitempty"`
	Outcome *Outcome   `json:"outcome,omitempty"`
}

// Records keeps what calls did.
type Records interface {
	// Record returns the record of a key; found is false when there is none.
	Record(ctx context.Context, key string) (record Record, found bool, err error)
	// SaveRecord stores or replaces the record of its key. It is durable when SaveRecord returns.
	SaveRecord(ctx context.Context, record Record) error
}

// State says whether a call had its effect.
type State string

// The answers of Check.
const (
	Done    State = "done"
	NotDone State = "not_done" // it is safe to call again
	Unknown State = "unknown"  // only a person can say
)

// Checked is what a look at the world says about a call whose end nobody heard of.
type Checked struct {
	State   State    `json:"state"`
	Outcome *Outcome `json:"outcome,omitempty"` // when done: as the call itself would have returned it, as far as can be seen
	Why     string   `json:"why"`               // what was seen
}

// Natured is a Tool whose calls differ in what they do: Nature is that of one call, whose input fits. It only looks at the call.
type Natured interface{ Nature(call Call) policy.Nature }

// Tool is one thing that can be done. A *Failure among its errors is how the call ended; any other error says nothing about it.
type Tool interface {
	Describe() Description
	// Before looks at what Do will change, and refuses what cannot be done. It has no effect.
	Before(ctx context.Context, call Call) ([]Evidence, error)
	// Do acts. The Before of its outcome is filled in by the registry.
	Do(ctx context.Context, call Call, before []Evidence) (Outcome, error)
	// Check says whether an earlier Do of call had its effect; before is what Before had seen then, nil when the call was never begun.
	Check(ctx context.Context, call Call, before []Evidence) (Checked, error)
}
