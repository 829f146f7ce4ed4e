package schedule

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is what is remembered of one schedule. It is stored as JSON, without what starts anew with every start.
type State struct {
	Created time.Time        `json:"created"`
	Decided time.Time        `json:"decided"`          // the scheduled times up to here have been decided
	Recent  []time.Time      `json:"recent,omitempty"` // the newest that were fired, so that a clock that goes back fires none again
	Fired   int              `json:"fired"`            // firings so far
	Paused  *Pause           `json:"paused,omitempty"`
	Waiting []Firing         `json:"waiting,omitempty"` // for the end of what is under way
	Outbox  []Firing         `json:"outbox,omitempty"`  // decided, and not known to be submitted
	Cancel  []string         `json:"cancel,omitempty"`  // runs that are to be cancelled, and not known to be
	Running []Started        `json:"running,omitempty"`
	Last    *End             `json:"last,omitempty"`   // the run that ended last
	Notes   []Note           `json:"notes,omitempty"`  // why times were not fired, the newest last
	Looked  bool             `json:"looked,omitempty"` // the folder was looked at once
	Known   map[string]Known `json:"known,omitempty"`  // files that need nothing, by path

	settling map[string]quiet // files that may still be written; nil: not looked at since the start
	gone     []gone           // files that vanished, for a while: they may have been renamed
}

// Note is something that a person may ask about later.
type Note struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Pause says since when and why nothing is fired.
type Pause struct {
	At  time.Time `json:"at"`
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
}

// Firing is one start of the workflow.
type Firing struct {
	Key   string    `json:"key"`             // one run per key
	Due   time.Time `json:"due"`             // the scheduled time, or when the files were found quiet
	Late  bool      `json:"late,omitempty"`  // made up for
	Files []FileRef `json:"files,omitempty"` // by path
}

// FileRef is a file as it was when it had become quiet. Whoever opens it later must hold it to the hash.
type FileRef struct {
	Path   string `json:"path"` // relative to the folder, with /
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Started is a run that was started and is not known to have ended.
type Started struct {
	Key string    `json:"key"`
	Run string    `json:"run"`
	At  time.Time `json:"at"`
}

// End is how a run ended. A nil figure is unknown.
type End struct {
	Run      string    `json:"run"`
	State    string    `json:"state"` // of the run, such as completed
	At       time.Time `json:"at"`
	Coverage *float64  `json:"coverage,omitempty"`
	Failures *int      `json:"failures,omitempty"`
}

// NewState is the state of a schedule that was made at now.
func NewState(now time.Time) State {
	now = now.Round(0).UTC()
	return State{Created: now, Decided: now}
}

// Pause returns the state in which nothing is fired. What was decided before and not submitted stays until Resume.
func (s State) Pause(now time.Time, by, why string) State {
	if s.Paused == nil {
		s.Paused = &Pause{At: now.Round(0).UTC(), By: by, Why: why}
	}
	return s
}

// Resume returns the state in which firings go on. The times that passed meanwhile are not made up for; files that came meanwhile are
// treated as after a downtime.
func (s State) Resume(now time.Time) State {
	if s.Paused == nil {
		return s
	}
	s.Paused, s.settling = nil, nil
	if now = now.Round(0).UTC(); now.After(s.Decided) {
		s.Decided = now
	}
	return s
}

// clone lets a decision change what it is given a copy of.
func (s State) clone() State {
	s.Recent, s.Waiting, s.Outbox = slices.Clone(s.Recent), slices.Clone(s.Waiting), slices.Clone(s.Outbox)
	s.Cancel, s.Running, s.gone = slices.Clone(s.Cancel), slices.Clone(s.Running), slices.Clone(s.gone)
	s.Notes = slices.Clone(s.Notes)
	s.Known, s.settling = maps.Clone(s.Known), maps.Clone(s.settling)
	return s
}

// busy says that a run is under way or about to be.
func (s *State) busy() bool { return len(s.Running)+len(s.Outbox)+len(s.Waiting) > 0 }

// key names a firing. The time of creation is part of it, so that a schedule of the same name made later is another.
func (s *State) key(name, what string) string {
	return fmt.Sprintf("schedule/%s@%s/%s", name, s.Created.Format("20060102T150405Z"), what)
}
