package engine

import (
	"encoding/json"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// View is a run as people see it, at one committed moment. It shares nothing with the engine and may be kept.
type View struct {
	ID           string
	Workflow     string
	BuiltIn      bool // Workflow is one of ours, and no user's of that name
	Status       run.Status
	Created      time.Time
	Started      time.Time // zero until it starts
	Ended        time.Time // zero until it ends
	Error        string    // of a failed or diverged run, with file:line:column
	ErrorStack   string
	Steps        []StepView // nil in lists
	Items        run.Counts // over all batches and single calls
	Coverage     float64    // 0..1: items that succeeded of those that were asked for; 1 when none were
	PromptTokens int64
	OutputTokens int64
	Calls        int64 // attempts that were placed on a worker
	Nodes        []NodeShare
	Simulated    bool // at least one result came from a stand-in, or, before the first, every node known is one
	InFlight     []InFlight
	Waiting      []Reason
	Logs         []string // the newest few lines
	Script       string   // SHA-256
	Seed         int64
	Key          string
	Failures     []FailureGroup
	Outputs      []string // names, in the order in which they appeared
	CancelReason string   // of a cancelled run, as its user gave it
	Priority     run.Priority
	Weight       float64 // share of the machines beside other runs; 0 counts as 1

	Active     time.Duration              // what counts against the budget: not what was parked
	Limits     []LimitView                // those that are set
	Acceptance *run.Acceptance            // what was expected against what was done; nil in lists, and while it is not worth its cost
	Phases     []PhaseView                // of the pipeline in progress, or of the last one
	Waits      int                        // steps that wait for a person
	ParkedBy   string                     // why a run is suspended, as its user gave it
	Parent     string                     // the run that spawned it
	Children   []string                   // runs that it spawned, by id
	Base       string                     // the run that it took results from
	ByCode     int                        // of an ended run: expected keys that are covered only because its script says so
	Handled    int                        // of an ended run: of Items.Failed, those that do not count against it
	Roles      map[string][]run.RoleModel // that the run pins; nil in lists, as Prompts and Judges
	Prompts    map[string]string          // SHA-256 of its prompt texts, by name
	Judges     []run.Calibrated           // what was known of judges when it began
	Retry      *Retry                     // what one can change; nil in lists, and while it goes on
}

// LimitView is a budget of a run.
type LimitView struct {
	Name      string // active_seconds, tokens, calls, artifact_bytes or spawn_depth
	Limit     int64
	Spent     int64  // 0 where nothing is spent by a run: artifact_bytes
	Overshoot int64  // beyond the limit, of one that was reached
	Worst     int64  // the most that was possible then; 0: unknown
	SetBy     string // run, workflow, default, parent or base; "": unknown
}

// PhaseView is one phase of a pipeline.
type PhaseView struct {
	Pipeline string
	Name     string
	Status   run.PhaseStatus
	Round    int // how often it was begun
	Reasons  []run.PhaseReason
}

// StepView is one step of a run. Notes (log, output, collected) and reads are steps too.
type StepView struct {
	Pos        int
	Kind       string
	Label      string
	Status     run.StepStatus
	Model      string   // that it has its result from or asks now; of a batch the one that it asks first
	Models     []string // all that it may ask for, its judges too
	Items      run.Counts
	WaitingFor string // empty unless it waits; as Reason.WaitingFor
	Started    time.Time
	Ended      time.Time // zero until it ends
	Error      string
	Node       string          // name, of a single call
	Until      time.Time       // when a wait ends by itself, zero for never
	Child      string          // of a spawn: the run that it started
	Verdict    json.RawMessage // of an evaluate that succeeded, see panel.Verdict
}

// NodeShare is what one node did for a run.
type NodeShare struct {
	NodeID       string
	Name         string
	Items        int64 // that succeeded there
	FailedTries  int64
	OutputTokens int64
	OutputTime   time.Duration
	Simulated    bool
}

// InFlight is one attempt that a node works on.
type InFlight struct {
	Step            int
	Item            int
	Label           string // the item's key
	Node            string // name
	NodeState       scheduler.NodeState
	Model           string
	Attempt         int
	Judging         bool
	Tokens          int64
	TokensPerSecond float64
	Since           time.Time
	Phase           string // sent, queued, loading, prompt, writing
}

// Reason says what how many items wait for.
type Reason struct {
	WaitingFor string // slot, memory, load, node, model, retry, tool, script (a free script host), human, timer, children
	Count      int
	Why        string // one sentence
}

// FailureGroup gathers the failures of one kind.
type FailureGroup struct {
	Kind       string
	Message    string   // of the newest
	Items      []string // labels, all of them
	Handled    int      // of Items: waived, made good by a fallback, or of a phase that was done again
	RetryHelps bool
	Next       []string
	Simulated  bool // at least one of them happened on a stand-in
}

// Filter selects runs; zero fields select everything.
type Filter struct {
	States []run.Status
	Limit  int // at most so many, newest first; 0 is 50
}

// ItemsPage is a part of a step's items in input order.
type ItemsPage struct {
	Step        int
	Items       []ItemView
	Total       int
	FinalPrefix int // items 0..FinalPrefix-1 have all ended
}

// ItemView is one item with its result.
type ItemView struct {
	Index       int
	Key         string // file name or index
	Status      run.StepStatus
	Value       json.RawMessage // validated value
	Text        string          // free text
	FailureKind string
	Failure     string
	Attempts    int
	Node        string // name
	Simulated   bool   // it was worked on by a stand-in
}

// Output is one key result. Exactly one of Value and Ref is set.
type Output struct {
	Name    string
	Value   json.RawMessage
	Ref     *Ref
	Sources []int // positions of the steps it rests on
	// Inferred says that nobody could see where the value comes from: Sources are all steps that had succeeded by then.
	Inferred bool
}

// Ref names a stored body.
type Ref struct {
	SHA256 string `json:"ref"`
	Name   string `json:"name,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// Explanation says why an attempt is where it is, or not placed.
type Explanation struct {
	Subject string // the step and what it is about, for people
	Attempt string // key, "" in a decision of before
	scheduler.Explanation

	// Of a decision as it was taken, see Engine.Decisions.
	At     time.Time
	Action scheduler.Action
	Node   string // id of the one that was chosen, "" for none
}
