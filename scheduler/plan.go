package scheduler

import "time"

// Plan is what Place decided, in the order in which it is to be carried out, with the reasons. Every waiting task has
// exactly one Start, Wait or Impossible in it; Load and Unload are about nodes and come in addition. An Unload that makes
// room never shares a plan with the Load that it is for: that follows from a later snapshot, in which the model is gone
// and the measured memory is free again.
type Plan struct {
	Decisions []Decision
	Queues    []Queue // of every resource that a waiting task holds when it runs, by name
}

// Queue is what waits for one resource.
type Queue struct {
	Resource string
	Cap      int           // as in the snapshot
	InUse    int           // calls that hold it, those that the plan starts included
	Waiting  int           // tasks that would hold it
	Next     time.Duration // until its rate allows a start; 0 when it does now
}

// Decision is one step of a plan.
type Decision struct {
	Action  Action
	Task    string // attempt key; for Load and Unload the task that caused it
	Node    string // node id; empty for Wait and Impossible
	Model   string // model name
	Digest  string
	Context int    // tokens per slot
	Need    uint64 // bytes to be claimed, margin included; set for Load
	Why     Explanation
}

// Action is what is to be done.
type Action string

// The actions.
const (
	Start      Action = "start"      // send the attempt to the node now: the model is loaded and a slot is free
	Load       Action = "load"       // load the model there now: it fits beside what is loaded; its tasks wait
	Unload     Action = "unload"     // free the memory of an idle model first
	Wait       Action = "wait"       // nothing to do yet; Why says for what
	Impossible Action = "impossible" // fits no known machine, lost ones counted, even when empty
)

// WaitFor says what a waiting task waits for.
type WaitFor string

// What a task can wait for.
const (
	WaitSlot   WaitFor = "slot"   // a free slot of the loaded model
	WaitMemory WaitFor = "memory" // busy models must end first, or an unload is stuck
	WaitLoad   WaitFor = "load"   // the model is being loaded, or another load is in flight there
	WaitNode   WaitFor = "node"   // no node that could take it is up
	WaitModel  WaitFor = "model"  // no known node that could hold the model has it
	WaitFacts  WaitFor = "facts"  // the memory of the node or the shape of the model is not known yet
	WaitCap    WaitFor = "cap"    // a resource that is held by as many calls as may, or the node's cap on calls
	WaitRate   WaitFor = "rate"   // a resource that was started as often as it may be
	WaitFaster WaitFor = "faster" // a machine that ends it sooner, although it has to wait for it
)

// Explanation says why: one verdict per node, and what the task waits for, if it does.
type Explanation struct {
	Summary string  // one sentence
	Wait    WaitFor // empty unless the action is Wait, or Admit says what the run would wait for
	Nodes   []NodeVerdict
}

// NodeVerdict is how one node looks to one task.
type NodeVerdict struct {
	*Finding
	Expect Expect `json:",omitzero"` // the parts of the score
}

// Finding is what was found on a node. It is never changed: explanations share it. What a reason does not need is zero. Why says
// it in words.
type Finding struct {
	Node      string
	Name      string
	Verdict   Verdict
	Reason    Reason
	State     NodeState     `json:",omitzero"` // of the node
	Note      string        `json:",omitzero"` // Node.Why
	Need      uint64        `json:",omitzero"` // bytes
	Available Bytes         `json:",omitzero"` // once Evict is unloaded
	Short     uint64        `json:",omitzero"` // bytes; 0 when it fits
	Context   int           `json:",omitzero"` // tokens per slot that Need is for
	Largest   int           `json:",omitzero"` // largest context in tokens that would fit when the node is empty; 0 none or unknown
	Evict     []string      `json:",omitzero"` // names of models that would have to go
	Stay      []Stay        `json:",omitzero"` // models that take the room meanwhile
	Model     string        `json:",omitzero"` // name that Reason is about
	At        int           `json:",omitzero"` // tokens per slot that it is loaded at, see Reason
	Busy      int           `json:",omitzero"` // slots, or calls, of Of
	Of        int           `json:",omitzero"` // slots, or calls with a cap on them
	For       time.Duration `json:",omitzero"` // how long since or until, see Reason
}

// Reason is what decided a verdict.
type Reason string

// The reasons.
const (
	ReasonSlot     Reason = "slot"     // loaded, and a slot is free
	ReasonBusy     Reason = "busy"     // loaded, and every slot is busy
	ReasonCalls    Reason = "calls"    // loaded, and the node runs as many calls as it may
	ReasonRoom     Reason = "room"     // there is room, or will be once Evict is unloaded
	ReasonHeld     Reason = "held"     // there will be room once Evict is unloaded, of which some are in use and have not had their time
	ReasonShort    Reason = "short"    // no room while Stay stays
	ReasonLoading  Reason = "loading"  // it is being loaded there
	ReasonMaking   Reason = "making"   // room is being made for it
	ReasonYields   Reason = "yields"   // it makes room for a model that has waited longer
	ReasonContext  Reason = "context"  // it is loaded there at At tokens, and in use
	ReasonOther    Reason = "other"    // Model is being loaded
	ReasonReserved Reason = "reserved" // room is being made for Model
	ReasonLarge    Reason = "large"    // does not fit the empty node
	ReasonEmbeds   Reason = "embeds"   // only makes embeddings
	ReasonState    Reason = "state"    // the node is not up; For since it was last seen
	ReasonMissing  Reason = "missing"  // not pulled there
	ReasonAnother  Reason = "another"  // a model of that name is pulled there, but not that of digest Model
	ReasonPinned   Reason = "pinned"   // the attempt already runs elsewhere
	ReasonSpilled  Reason = "spilled"  // did not fit there a short while ago; For until it is tried again
	ReasonRooted   Reason = "rooted"   // unloads did not remove Stay, and are tried again later
	ReasonMemory   Reason = "memory"   // the node's memory is not known
	ReasonShape    Reason = "shape"    // the model's shape is not known
	ReasonFailed   Reason = "failed"   // an earlier attempt failed there
)

// Stay is a loaded model that stays for now.
type Stay struct {
	Model string
	Cause string        // "in use", "pinned", "foreign" or "stuck"
	Times int           // unloads in a row that left it in memory
	Retry time.Duration // until the next one
}

// Expect is when a call would end on a node, by part, from now. All of it is an estimate; zero where the node cannot take it.
type Expect struct {
	Wait  time.Duration // until a slot, or what is in the way, is expected to be free
	Load  time.Duration // of the model, and of what its load would displace
	Serve time.Duration // prompt and output
}

// Finish is the sum of the parts.
func (e Expect) Finish() time.Duration { return e.Wait + e.Load + e.Serve }

// Verdict is the outcome for one node.
type Verdict string

// The verdicts.
const (
	VerdictChosen   Verdict = "chosen"
	VerdictFits     Verdict = "fits"       // could take it, another was better
	VerdictWait     Verdict = "wait"       // fits after something ends
	VerdictNoModel  Verdict = "no_model"   // the model is not pulled there
	VerdictTooLarge Verdict = "impossible" // does not fit even when empty, or the model cannot do what is asked
	VerdictExcluded Verdict = "excluded"   // lost, draining, degraded, or to be avoided by this task
	VerdictUnknown  Verdict = "unknown"    // memory or shape not known
)

// Limits are the policy numbers of a fleet; the zero value means the defaults documented at each field.
type Limits struct {
	ReserveHost    uint64              // bytes kept free on host and unified pools; default: a tenth of the pool, at most 8 GiB
	ReserveDevice  uint64              // bytes kept free on device pools; default 256 MiB
	DefaultContext int                 // tokens when neither task nor model says; default 8192, bounded by the model's own
	MaxWait        time.Duration       // after this a waiting task's model may displace a loaded one even when others wait for that; default max(60 s, 4 × load time)
	Pins           map[string][]string // model name → ids or names of the nodes that keep it in memory
	Contexts       map[string]int      // tokens per slot by model name, for tasks and pins that do not say; a name without tag is the latest
	IdleUnload     time.Duration       // a model that nothing used and nobody waits for is unloaded after this; 0: never
}
