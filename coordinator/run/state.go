package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// State is a run, folded from its events. It has one owner, who may read it between two calls of Apply.
type State struct {
	Pinned Created // what the first event pinned

	Status  Status
	Seq     int64 // of the last event applied
	Epoch   int   // moved by a cancel; what began under an older one is not applied
	Born    time.Time
	Started time.Time     // zero until it starts
	Ended   time.Time     // zero until it ends
	Script  *ScriptEnded  // set when the script returned or threw; open steps may still go on
	Limit   *LimitReached // set when a budget ran out
	Reason  string        // of a cancel, as the user gave it
	End     *Ended        // set when it has ended

	Requests   []*Step    // by position, notes included
	Deliveries []Delivery // what the script was given, in that order
	Outputs    []Output
	Collected  []Collected
	Logs       []string // the newest few, "warn: …"

	Counts       Counts // over all items of all steps
	Calls        int64  // attempts placed
	PromptTokens int64
	OutputTokens int64
	Simulated    bool
	Shares       map[string]*Share // by node id
	Contexts     map[string]int    // by model as asked for: the largest context that its calls were placed with, tokens per slot
	Digests      map[string]string // by model as asked for: the digest that its first call was placed with; the run uses no other

	open    int   // steps without an end
	reads   int   // of these, reads
	due     []int // of these, the steps with nothing left to do
	flights int   // attempts in flight
}

// Delivery is one step's end as an entry in the order of deliveries.
type Delivery struct {
	Pos  int
	Time time.Time
}

// Share is what one node did.
type Share struct {
	Items        int64 // that succeeded with a result made there
	FailedTries  int64
	OutputTokens int64
	OutputNanos  int64
	Simulated    bool
}

// Step is one request of the script.
type Step struct {
	Pos    int
	Kind   string
	Body   json.RawMessage // canonical
	Note   bool
	Label  string
	Model  string
	Shared json.RawMessage // the request without its items, as attempts carry it

	Status    StepStatus
	Requested time.Time
	Began     time.Time // first placement
	Ended     time.Time
	Failure   *Failure
	Result    Content // of a read

	Items  []Item
	Counts Counts
	Failed []int // indices of failed items, in the order of failing

	spec  *spec
	seen  [2]seen // by phase
	fresh int     // items from here on were never touched
	low   int     // items before this have ended
}

// Item is one unit of a step's work: the whole step, or one element of a batch.
type Item struct {
	Status     StepStatus
	Phase      Phase
	Ready      time.Time // since when it could run, or will be able to
	Tries      int       // work attempts that counted
	JudgeTries int       // judge attempts that counted, for the present result
	Lost       [2]int    // attempts that did not count, by phase: a node lost them
	Sent       [2]int    // attempts placed, by phase
	Avoid      []string  // nodes to try last
	Feedback   []string
	Flight     *Flight // the attempt under way, nil when none
	Result     Content // of the last work attempt that succeeded
	Report     Report  // of that attempt
	Node       string  // of that attempt, else of the last one that failed
	Failure    *Failure

	failedOn string // the node of the last failure
}

// Flight is an attempt that has a node and no end yet.
type Flight struct {
	AttemptID
	Try     int // from 1, by phase: attempts that a node lost are not counted
	Node    string
	Model   string
	Digest  string
	Context int
	Seed    int64
	Why     string // the scheduler's reason
	Epoch   int
	Since   time.Time
	Begun   bool
}

// Output is a key result and the steps it rests on.
type Output struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Sources []int           `json:"sources"`
	// Inferred says that the library could not see where the value comes from, see docs/requests.md.
	Inferred bool `json:"inferred"`
}

// Collected is a list of failures that the script gathered and did not throw.
type Collected struct {
	Label    string             `json:"label"`
	Failures []CollectedFailure `json:"failures"`
}

// CollectedFailure is one failure of a part of the script's work.
type CollectedFailure struct {
	Key     string `json:"key"` // of the part, for people
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Step    *int   `json:"step"` // position of the step that failed, nil when the script itself failed
}

// Of returns the failed step that a collected failure is about, nil when there is none: then it stands for itself.
func (s *State) Of(f CollectedFailure) *Step {
	if f.Step == nil {
		return nil
	}
	if st := s.Step(*f.Step); st != nil && st.Status == StepFailed {
		return st
	}
	return nil
}

// Step returns the step at pos, nil when there is none.
func (s *State) Step(pos int) *Step {
	if pos < 0 || pos >= len(s.Requests) {
		return nil
	}
	return s.Requests[pos]
}

// Key is the idempotency key of an attempt: "run/step/item/phase/number".
func (s *State) Key(a AttemptID) string {
	return fmt.Sprintf("%s/%d/%d/%s/%d", s.Pinned.ID, a.Pos, a.Item, a.Phase, a.Number)
}

// InFlight is how many attempts are under way.
func (s *State) InFlight() int { return s.flights }

// Flights calls yield for every attempt under way, by step and item.
func (s *State) Flights(yield func(*Flight) bool) {
	for _, st := range s.Requests {
		if st.Counts.Running == 0 {
			continue
		}
		for i := st.low; i < st.fresh; i++ {
			if f := st.Items[i].Flight; f != nil && !yield(f) {
				return
			}
		}
	}
}

// ItemKey names item i for people.
func (st *Step) ItemKey(i int) string {
	if st.spec == nil {
		return ""
	}
	return st.spec.key(st.Kind, i)
}

// FinalPrefix is how many items from the first on have ended.
func (st *Step) FinalPrefix() int { return st.low }

func phaseIndex(p Phase) int {
	if p == Judge {
		return 1
	}
	return 0
}

// next is the attempt that would be placed next for item i.
func (st *Step) next(i int) AttemptID {
	it := &st.Items[i]
	return AttemptID{Pos: st.Pos, Item: i, Phase: it.Phase, Number: it.Sent[phaseIndex(it.Phase)] + 1}
}

// try is which counted try an attempt is, from 1. One that a node lost is tried again, as if it had never been: with the same
// seed, and so to the same result as in a run that nothing disturbed.
func (it *Item) try(a AttemptID) int { return a.Number - it.Lost[phaseIndex(a.Phase)] }

// item returns the item that a names, nil when there is none.
func (s *State) item(pos, i int) (*Step, *Item) {
	st := s.Step(pos)
	if st == nil || i < 0 || i >= len(st.Items) {
		return nil, nil
	}
	return st, &st.Items[i]
}

// move changes an item's status and all that depends on it. A batch is as far as its furthest item.
func (s *State) move(st *Step, it *Item, to StepStatus) {
	*st.Counts.of(it.Status)--
	*s.Counts.of(it.Status)--
	it.Status = to
	*st.Counts.of(to)++
	*s.Counts.of(to)++
	switch {
	case to.Ended(): // the step's own end is an event
	case len(st.Items) == 1, to == StepRunning, to == StepPlaced && st.Status == StepReady:
		st.Status = to
	}
}
