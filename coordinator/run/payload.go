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
	BuiltIn   bool            `json:"built_in,omitempty"` // Workflow is one of loopkeeper's own, and no user's of that name
	Program   string          `json:"program"`            // the script's file name, for its error messages
	Script    string          `json:"script"`             // SHA-256 of the bundled code
	SourceMap string          `json:"source_map"`         // SHA-256, "" for none
	Interface string          `json:"interface"`          // version of the script interface
	Input     json.RawMessage `json:"input"`
	Seed      int64           `json:"seed"`
	Clock     time.Time       `json:"clock"` // what the script sees as now until the first delivery
	Key       string          `json:"key,omitempty"`
	Limits    Limits          `json:"limits"`
	// SetBy says who set each limit: run, workflow, default, parent or base. Runs of before it was recorded have none.
	SetBy map[string]string `json:"set_by,omitempty"`
	// Models are used in place of others, by the one that the script asks for.
	Models map[string]string `json:"models,omitempty"`
	// Roles are the models that play each role, in order of preference, as the settings had it when the run began.
	Roles map[string][]RoleModel `json:"roles,omitempty"`
	// Prompts are the prompt texts that the run's calls use, SHA-256 by name. One that is not named is the worker's own.
	Prompts map[string]string `json:"prompts,omitempty"`
	// Judges is what was known of judges when the run began: of each that was calibrated.
	Judges    []Calibrated `json:"judges,omitempty"`
	Priority  Priority     `json:"priority,omitempty"`
	Weight    float64      `json:"weight,omitempty"` // share of the machines beside other runs; 0 counts as 1
	Submitted []Submitted  `json:"submitted,omitempty"`
	Base      *Base        `json:"base,omitempty"`
	Parent    *Parent      `json:"parent,omitempty"` // the run that spawned it
}

// RoleModel is a model that plays a role.
type RoleModel struct {
	Model  string `json:"model"`
	Family string `json:"family,omitempty"` // where its name does not tell
}

// Calibrated is how a judge did on subjects whose answers are known; it holds for that digest and those prompts only.
type Calibrated struct {
	Model   string  `json:"model"`
	Digest  string  `json:"digest"`
	Prompts string  `json:"prompts"`        // version of the texts that judges are given
	Type    string  `json:"type,omitempty"` // of the criteria; "" is any
	N       int     `json:"n"`              // subjects of each kind, good and defect
	TPR     float64 `json:"tpr"`            // share of the good that it passed
	TNR     float64 `json:"tnr"`            // share of the defects that it found
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
	Of    string `json:"of,omitempty"`    // the run above whose limit it is, "" for its own
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
	Of        string `json:"of,omitempty"`    // the run above whose limit it is, "" for its own
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

// Parked says that a person suspended the run.
type Parked struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Resumed says that a person lets it go on.
type Resumed struct {
	By string `json:"by,omitempty"`
}
