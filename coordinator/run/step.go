package run

import (
	"encoding/json"
	"slices"
	"time"
)

// Step is one request of the script.
type Step struct {
	Pos    int
	Kind   string
	Body   json.RawMessage // canonical
	Note   bool
	Label  string
	Model  string          // that it asks for first
	Models []string        // all that it may ask for, in order of preference; of an evaluate those who may judge
	Judges []string        // those who may judge the results of its items
	Shared json.RawMessage // the request without its items, as attempts carry it; nil once the step has ended

	Status    StepStatus
	Requested time.Time
	Began     time.Time // first placement
	Ended     time.Time
	Due       time.Time // when a wait ends by itself, zero for never
	Failure   *Failure
	Result    Content   // of a step without items
	Child     *ChildEnd // of a spawn that has started a child; without a status until that has ended
	Detached  bool      // of a spawn: it outlives this run
	External  bool      // of a tool: it wrote something outside, or may have; done again it writes it again
	From      *From     // the step of another run whose result this one took over

	Items  []Item
	Counts Counts
	Failed []int // indices of failed items, in the order of failing; in input order once the step has ended

	spec          *spec
	judge         int        // of Models or Judges: who judges first
	single        string     // key of the only item, once the step has ended
	named         bool       // single is a name and no index
	handle        bool       // a batch that delivers a handle and not its items
	moved         bool       // of a phase request: its move is done
	seen          [2]seen    // by phase
	fresh         int        // items from here on were never touched
	low           int        // items before this have ended
	waiting       [2]indices // touched items that wait for a place, by phase
	later         indices    // touched items in backoff when they came to wait
	flying        indices
	before, after int // neighbours among the open steps, position + 1
}

// Item is one unit of a step's work: the whole step, or one element of a batch. A hundred thousand of them are a few ten MB.
type Item struct {
	Status  StepStatus
	Node    string   // of the last work attempt that succeeded, else of the last attempt that failed
	Sent    [2]int   // attempts placed, by phase
	Flight  *Flight  // the attempt under way, nil when none
	Failure *Failure // the last one
	Result  Content  // of the last work attempt that succeeded; of an ended item of a large batch it is only in the event
	Event   int64    // the event that has Result
	Report  Spent    // of that attempt

	tries *tries // nil while it was never touched, and after its end
}

// Spent is what the call took that made a result.
type Spent struct {
	Model        string
	PromptTokens int64
	OutputTokens int64
	Nanos        int64
	Simulated    bool
	Candidate    uint16 // which of the step's models it was
	Reused       bool   // it was taken over from another run, and cost this one nothing
}

// Flight is an attempt that has a node and no end yet.
type Flight struct {
	AttemptID
	Try      int // from 1, by phase and model: attempts that a node lost are not counted
	Node     string
	Model    string
	Digest   string
	Context  int
	Seed     int64
	Why      string // the scheduler's reason
	External bool   // of a tool: interrupted, its outcome is unknown
	Epoch    int
	Since    time.Time
	Begun    bool
}

// ItemKey names item i for people and for the books of what is covered.
func (st *Step) ItemKey(i int) string {
	if st.spec == nil {
		return st.single
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

// phase is what item i is in.
func (it *Item) phase() Phase {
	if it.tries == nil {
		return Work
	}
	return it.tries.phase
}

// next is the attempt that would be placed next for item i.
func (st *Step) next(i int) AttemptID {
	it := &st.Items[i]
	p := it.phase()
	return AttemptID{Pos: st.Pos, Item: i, Phase: p, Number: it.Sent[phaseIndex(p)] + 1}
}

// readyAt is since when item i could run.
func (st *Step) readyAt(i int) time.Time {
	if t := st.Items[i].tries; t != nil {
		return t.ready
	}
	return st.Requested
}

// touch returns item i's books, and lists what was passed over.
func (st *Step) touch(i int) *tries {
	for ; st.fresh <= i; st.fresh++ {
		if st.Items[st.fresh].Status == StepReady {
			st.waiting[0].add(st.fresh)
		}
	}
	it := &st.Items[i]
	if it.tries == nil {
		it.tries = &tries{phase: Work, ready: st.Requested}
	}
	return it.tries
}

// wait lists a touched item among those that wait for a place.
func (st *Step) wait(i int, now time.Time) {
	t := st.Items[i].tries
	if t.ready.After(now) {
		st.later.add(i)
	} else {
		st.waiting[phaseIndex(t.phase)].add(i)
	}
}

// unlist takes an item out of the lists of those that wait.
func (st *Step) unlist(i int) {
	_ = st.waiting[0].remove(i) || st.waiting[1].remove(i) || st.later.remove(i)
}

// writing says whether a tool is writing outside for the step.
func (st *Step) writing() bool {
	return len(st.flying) > 0 && st.Items[st.flying[0]].Flight.External
}

// move changes an item's status and all that depends on it. A batch is as far as its furthest item.
func (s *State) move(st *Step, i int, to StepStatus) {
	it := &st.Items[i]
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

// indices is a sorted list of items.
type indices []int32

func (l *indices) add(i int) {
	at, _ := slices.BinarySearch(*l, int32(i))
	*l = slices.Insert(*l, at, int32(i))
}

func (l *indices) remove(i int) bool {
	at, found := slices.BinarySearch(*l, int32(i))
	if found {
		*l = slices.Delete(*l, at, at+1)
		if len(*l) == 0 {
			*l = nil
		}
	}
	return found
}
