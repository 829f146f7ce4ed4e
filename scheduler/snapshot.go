package scheduler

import "time"

// Snapshot is everything a placement decision may depend on. It is a value: the caller builds it, Place reads it, and
// the same snapshot always gives the same plan.
type Snapshot struct {
	Now       time.Time                // the coordinator's clock when the snapshot was taken
	Nodes     []Node                   // every node ever seen in this fleet, lost ones too, sorted by ID
	Waiting   []Task                   // attempts that could start now, oldest first
	Resources map[string]Resource      // caps and rates by name; a name that is not in it has none
	Received  map[string]time.Duration // service that each run received, by run id, halved every ShareHalfLife; a run that is not in it received none
}

// ShareHalfLife is how fast the service that a run received stops counting against it: fair shares are about the last minutes,
// so that a run of many hours is not shut out by every new one.
const ShareHalfLife = 5 * time.Minute

// Resource is anything else that a call holds while it runs: a site that may be asked so often, a browser, a database.
type Resource struct {
	Cap    int     // calls that may hold it at once; 0 means any number
	InUse  int     // calls of ours that hold it now
	Rate   float64 // starts per second; 0 means any number
	Tokens float64 // starts that the rate allows at once now; between 0 and the burst
	Behind int     // tasks that would hold it and are not in Snapshot.Waiting, because they cannot start next; they count in Queue.Waiting
}

// Node is one machine with one Ollama, as last reported.
type Node struct {
	ID            string
	Name          string
	State         NodeState
	Why           string // why the state is what it is, for people; empty where the state says all
	LastSeen      time.Time
	OllamaVersion string // "0.17.4"; decides the rule set, see RuleSet
	Pools         []Pool
	Devices       []Device
	Models        []Model  // what is pulled there
	Loaded        []Loaded // what its Ollama holds in memory
	Slots         int      // concurrent generations per model (OLLAMA_NUM_PARALLEL); 0 means unknown and counts as 1
	GPUOverhead   uint64   // OLLAMA_GPU_OVERHEAD there, bytes per device; 0 when unknown
	KVType        string   // OLLAMA_KV_CACHE_TYPE there: "f16", "q8_0", "q4_0"; empty means f16
	Loading       *Claim   // the one load in flight; set from the decision on until Loaded shows the model, or the load failed; nil when none
	RoomFor       string   // key of the task that the latest Unload here was for; it counts while that task waits and its model is nowhere
	Simulated     bool
	Avoid         map[string]time.Time // model digest → until when it is not to be tried here again (spilled, out of memory)
	Unfit         map[string]Unfit     // by model digest: at which contexts it did not fit here although by all figures it should have
	MaxCalls      int                  // calls at once on the node, over all its models, of which a load in flight counts as one; 0 means no cap
	LoadRate      float64              // bytes of model file per second that it loads, learned; 0 means unknown
	Speeds        map[string]Speed     // by digest, learned
	Margins       map[MarginKey]uint64 // by load, learned: the 95th percentile of what was observed beyond the need, bytes; replaces the default margin
}

// Unfit is what a load showed that spilled: the model is not to be tried with this context or a larger one for a while.
type Unfit struct {
	Context int // tokens per slot
	Until   time.Time
}

// Speed is what was measured of one model on one node. A field that is zero is unknown.
type Speed struct {
	Load    time.Duration // of a load
	Prompt  float64       // prompt tokens per second
	Decode  float64       // output tokens per second, of one call
	Service time.Duration // mean of recent calls
}

// MarginKey says what a learned margin holds for; the version of Ollama and the devices are the node's.
type MarginKey struct {
	Digest  string
	Context int // tokens per slot
	Slots   int
}

// NodeState says whether a node takes work.
type NodeState string

// The node states.
const (
	NodeUp       NodeState = "up"       // reports arrive
	NodeLost     NodeState = "lost"     // no report for a while; kept with its last facts, comes back by itself
	NodeDraining NodeState = "draining" // finishes what it runs, takes nothing new
	NodeDegraded NodeState = "degraded" // reports arrive, but its Ollama does not answer or its accelerator is lost
	NodePaused   NodeState = "paused"   // outside its hours of use, or paused by a person: takes nothing, and its models go
)

// Bytes is an amount that may be unknown; unknown is not zero.
type Bytes struct {
	N     uint64
	Known bool
}

// Pool is memory that devices of a node draw on.
type Pool struct {
	ID    string // "host", "gpu:0000:0c:00.0"
	Kind  PoolKind
	Total Bytes
	Free  Bytes // as measured, foreign use included
	// FreeAge is how old the figure in Free was when the snapshot was taken; see FreshFor.
	FreeAge time.Duration
	Reserve uint64 // bytes kept free in it; 0 leaves that to the Limits
}

// PoolKind says what memory a pool is.
type PoolKind string

// The pool kinds.
const (
	PoolHost    PoolKind = "host"
	PoolDevice  PoolKind = "device"
	PoolUnified PoolKind = "unified"
)

// Device is one accelerator and the pool it draws on.
type Device struct {
	Name   string
	Pool   string
	Usable bool // false when degraded, lost or unsupported; one that sleeps wakes when it is used
}

// Model is a model present on a node. Identity is the digest; names are for people.
type Model struct {
	Name      string // with tag, "qwen3:8b"
	Digest    string
	FileBytes uint64
	Shape     *Shape // nil while unknown
	Embedding bool   // embedding only: it answers no generate
}

// Loaded is a model in a node's memory.
type Loaded struct {
	Digest    string
	Name      string
	Context   int    // tokens per slot
	SizeBytes uint64 // as Ollama reserves it
	VRAMBytes uint64
	Busy      int       // attempts of ours that run on it now
	Since     time.Time // when it was loaded, or first seen loaded; zero counts as long ago
	LastUsed  time.Time // last start or end of an attempt of ours
	Leaving   bool      // an unload is in flight: it takes nothing new and still holds its memory
	Foreign   bool      // loaded by somebody else; never unloaded
	Pinned    bool      // kept in memory by a person; never unloaded
	Stuck     int       // unloads in a row that left it in memory
	Retry     time.Time // after such an unload: not to be unloaded again before
	Observed  Bytes     // what its load took of the device's free memory, measured
	Calls     []Call    // the attempts of Busy, as far as more is known of them
	Affinity  []string  // Task.Affinity of what ran there last, newest first
}

// Call is an attempt that runs.
type Call struct {
	Run   string
	Since time.Time // when it was started
	Work  Work
}

// Claim is memory set aside for a model that is loaded or loading.
type Claim struct {
	Digest  string
	Name    string
	Context int
	Need    uint64 // bytes
	Since   time.Time
}

// Task is one attempt that waits for a place.
type Task struct {
	Key     string    // attempt key, unique
	Run     string    // run id
	Model   string    // model name as asked, with tag
	Digest  string    // of that name in the task's run: another model of that name is never taken; empty while the run has used none
	Context int       // tokens per slot, the fleet-wide value for this model; 0 lets DefaultContext decide
	Ready   time.Time // since when it could run
	Avoid   []string  // node ids that an earlier attempt failed on; used only when nothing else can
	Embed   bool
	Prefer  string // node id that should take it when it is equally good (shared context is warm there)
	// Pinned, when set, is the only node that may take it: a coordinator that came back re-attaches there.
	Pinned    string
	Priority  Priority
	Weight    float64  // share of its run beside other runs; 0 counts as 1
	Work      Work     // what it is expected to take
	Affinity  string   // hash of the shared context or conversation: what ran before with the same one has its prompt warm
	Resources []string // named resources that it holds while it runs, beside its slot
}

// Priority orders tasks before their age and their run's share do.
type Priority int

// The priorities.
const (
	PriorityBatch       Priority = -1
	PriorityNormal      Priority = 0
	PriorityInteractive Priority = 1
)

// Work is the expected size of a call in tokens. A field that is zero is unknown.
type Work struct {
	Prompt int
	Output int
	Shared int // of the prompt: tokens that are the same for every task with its Affinity
}
