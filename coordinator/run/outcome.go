package run

import "encoding/json"

// Advice says whether another attempt can help; it comes with every failure.
type Advice string

// The advices.
const (
	Never     Advice = "never"      // the same request cannot succeed
	Again     Advice = "again"      // the same request may succeed
	OtherNode Advice = "other_node" // elsewhere it may
	Changed   Advice = "changed"    // with another seed or temperature it may
)

// Failure is why an attempt, an item or a step did not succeed.
type Failure struct {
	Kind    string   `json:"kind"` // outcome kind of the worker's calls, or one of the kinds below
	Message string   `json:"message"`
	Advice  Advice   `json:"advice"`
	Next    []string `json:"next,omitempty"` // what a user can do
}

// The failure kinds that arise here, or on a worker and mean something here.
const (
	KindNodeLost     = "node_lost"                 // the node vanished while it worked
	KindNodePaused   = "node_paused"               // a person took the node out of use while it worked
	KindCannotSend   = "cannot_send"               // the attempt did not reach its node
	KindUnreachable  = "ollama_unreachable"        // the node is there, its Ollama is not
	KindOutOfMemory  = "out_of_memory"             // the model did not fit where it was
	KindCancelled    = "cancelled"                 // the call was ended from outside
	KindSentBack     = "sent_back"                 // the judge was not satisfied and no attempt is left
	KindNeedsHuman   = "needs_human"               // the judge wants a person to decide
	KindBadVerdict   = "text_instead_of_structure" // what should be a value or a verdict is none
	KindBadRequest   = "bad_request"               // the script asked for something that makes no sense
	KindItemsFailed  = "items_failed"              // of a batch: some of its items failed
	KindCannotFit    = "cannot_fit"                // the model fits no known machine
	KindModelMissing = "model_missing"             // machines are up, and none that could hold the model has it
	KindCheckFailed  = "check_failed"              // the script's check was not satisfied and no attempt is left
	KindTooLarge     = "result_too_large"          // a result beyond the limit of one artifact
	KindTooDeep      = "spawn_depth"               // a child below the limit of depth
	KindRolledBack   = "rolled_back"               // a person sent the pipeline back to an earlier phase
	KindRollbacks    = "rollbacks_exhausted"       // a pipeline was sent back too often
	KindRefused      = "refused"                   // of a tool: the policy or a person does not allow it
	KindUnknown      = "unknown"                   // of a tool that writes outside: it may or may not have happened
)

// Report says what ran, see the worker contract.
type Report struct {
	Model        string          `json:"model,omitempty"`
	Digest       string          `json:"digest,omitempty"`
	Ollama       string          `json:"ollama,omitempty"`
	Endpoint     string          `json:"endpoint,omitempty"`
	DoneReason   string          `json:"done_reason,omitempty"`
	PromptTokens int64           `json:"prompt_tokens,omitempty"`
	OutputTokens int64           `json:"output_tokens,omitempty"`
	LoadNanos    int64           `json:"load_nanos,omitempty"`
	PromptNanos  int64           `json:"prompt_nanos,omitempty"`
	OutputNanos  int64           `json:"output_nanos,omitempty"`
	TotalNanos   int64           `json:"total_nanos,omitempty"`
	Options      json.RawMessage `json:"options,omitempty"`
	Simulated    bool            `json:"simulated,omitempty"`
	Repaired     bool            `json:"repaired,omitempty"`
}

// Counts counts items, each once: Total is the sum of the five after it. Retried counts attempts beyond the first.
type Counts struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Running   int `json:"running"` // placed or running
	Waiting   int `json:"waiting"` // ready
	Cancelled int `json:"cancelled"`
	Retried   int `json:"retried"`
	Reused    int `json:"reused,omitempty"` // of those that succeeded: taken over from an earlier run
}

// Coverage is the share of items that succeeded, 1 when there are none.
func (c Counts) Coverage() float64 {
	if c.Total == 0 {
		return 1
	}
	return float64(c.Succeeded) / float64(c.Total)
}

// of returns the counter that items of a status are counted in.
func (c *Counts) of(s StepStatus) *int {
	switch s {
	case StepSucceeded:
		return &c.Succeeded
	case StepFailed, StepUnknown:
		return &c.Failed
	case StepPlaced, StepRunning:
		return &c.Running
	case StepCancelled, StepSkipped:
		return &c.Cancelled
	default:
		return &c.Waiting
	}
}
