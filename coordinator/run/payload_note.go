package run

import "encoding/json"

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

// Noted is a note of the script that acceptance rests on: expect, cover, waive, fallback or until.
type Noted struct {
	Pos     int             `json:"pos"`
	Op      string          `json:"op"`
	Body    json.RawMessage `json:"body"`
	Refused string          `json:"refused,omitempty"` // what is wrong with it; then it counts for nothing and is a shortfall
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
