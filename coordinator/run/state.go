package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// State is a run, folded from its events. It has one owner, who may read it between two calls of Apply. It holds no bodies, and of
// a large batch no values: those are named by the event that has them.
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
	Reason  string        // of a cancel or a suspension, as the user gave it
	End     *Ended        // set when it has ended

	Requests   []*Step    // by position, notes included
	Deliveries []Delivery // what the script was given, in that order
	Outputs    []Output
	Collected  []Collected
	Logs       []string    // the newest few, "warn: …"
	Pipelines  []*Pipeline // in the order of their beginning; at most one is in progress

	Counts       Counts // over all items of all steps
	Calls        int64  // attempts placed
	PromptTokens int64
	OutputTokens int64
	Simulated    bool
	Shares       map[string]*Share // by node id
	Contexts     map[string]int    // by model as asked for: the largest context that its calls were placed with, tokens per slot
	Digests      map[string]string // by model as asked for: the digest that its first call was placed with; the run uses no other

	below   struct{ tokens, calls int64 } // spent by children that have ended
	clock   clock
	claims  claims            // what the script said about acceptance
	names   map[string]string // nodes and models, each kept once
	open    openSteps
	reads   int   // open reads
	parked  int   // open steps that wait for a person, a timer or a child
	checks  int   // check deliveries without an answer
	timers  []int // open steps with a due time, soonest first
	spawns  []int // steps that started, or are to start, a child
	due     []int // open steps with nothing left to do
	flights int   // attempts in flight
}

// Delivery is one entry in the order of what the script was given: a step's end or, with Check set, a value to be checked.
type Delivery struct {
	Pos   int
	Time  time.Time
	Check bool
	Item  int      // of a check
	Event int64    // of a check: the event that has the value
	Given *Checked // of a check: the script's answer, nil until it is there. A replay has to give the same
}

// Share is what one node did.
type Share struct {
	Items        int64 // that succeeded with a result made there
	FailedTries  int64
	OutputTokens int64
	OutputNanos  int64
	Simulated    bool
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

// WriteKey is the idempotency key of what a tool writes outside, the same for every attempt: "run/step/item".
func (s *State) WriteKey(pos, item int) string {
	return fmt.Sprintf("%s/%d/%d", s.Pinned.ID, pos, item)
}

// InFlight is how many attempts are under way.
func (s *State) InFlight() int { return s.flights }

// Flying says whether exactly this attempt is under way. One that a rollback stopped is not: its call is to be cancelled.
func (s *State) Flying(a AttemptID) bool {
	_, it := s.flying(a)
	return it != nil
}

// Flights calls yield for every attempt under way, by step and item.
func (s *State) Flights(yield func(*Flight) bool) {
	for st := range s.Open {
		for _, i := range st.flying {
			if !yield(st.Items[i].Flight) {
				return
			}
		}
	}
}

// item returns the item that a names, nil when there is none.
func (s *State) item(pos, i int) (*Step, *Item) {
	st := s.Step(pos)
	if st == nil || i < 0 || i >= len(st.Items) {
		return nil, nil
	}
	return st, &st.Items[i]
}

// name returns the one copy of a name that very many items have.
func (s *State) name(n string) string {
	if kept, ok := s.names[n]; ok {
		return kept
	}
	s.names[n] = n
	return n
}

// openSteps lists the steps without an end by position. A run of ten thousand steps has few of them at once.
type openSteps struct {
	first, last int // position + 1, 0 for none
	n           int
}

// Open calls yield for every step without an end, by position.
func (s *State) Open(yield func(*Step) bool) {
	for at := s.open.first; at > 0; {
		st := s.Requests[at-1]
		at = st.after
		if !yield(st) {
			return
		}
	}
}

func (s *State) opened(st *Step) {
	st.before = s.open.last
	if s.open.last > 0 {
		s.Requests[s.open.last-1].after = st.Pos + 1
	} else {
		s.open.first = st.Pos + 1
	}
	s.open.last = st.Pos + 1
	s.open.n++
}

func (s *State) closed(st *Step) {
	if st.before > 0 {
		s.Requests[st.before-1].after = st.after
	} else {
		s.open.first = st.after
	}
	if st.after > 0 {
		s.Requests[st.after-1].before = st.before
	} else {
		s.open.last = st.before
	}
	st.before, st.after = 0, 0
	s.open.n--
}
