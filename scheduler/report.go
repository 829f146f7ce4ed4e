package scheduler

import (
	"cmp"
	"fmt"
)

// FitQuestion asks how a model relates to every machine.
type FitQuestion struct {
	Model     string // name with tag; with a Shape only a label
	Context   int    // tokens per slot; 0 for the default
	Slots     int    // calls at once; 0 for what each node runs
	Shape     *Shape // of a model that need not be pulled anywhere, such as a file's; nil: that of the model by its name
	FileBytes uint64 // with Shape: size of its file
}

// FitReport is the answer.
type FitReport struct {
	Model   string
	Digest  string // empty with the shape of a file
	Context int    // tokens per slot, as it would be loaded: bounded by the model's own maximum
	Asked   int    // as in the question
	Known   bool   // a shape is known; without one there are no needs
	Nodes   []NodeFit
}

// FitVerdict is whether a model fits a machine now.
type FitVerdict string

// The verdicts of a fit.
const (
	FitLoaded  FitVerdict = "loaded"  // it is loaded there at this context
	FitYes     FitVerdict = "yes"     // it fits beside what is loaded
	FitEvict   FitVerdict = "evict"   // it fits once what is in Evict is unloaded
	FitBlocked FitVerdict = "blocked" // it fits the machine, but what takes the room stays: other programs, models that are kept
	FitNo      FitVerdict = "no"      // it does not fit even an empty machine
	FitUnknown FitVerdict = "unknown" // the machine's memory or the model's shape is not known
)

// NodeFit is one machine's part of the answer. All sizes are bytes.
type NodeFit struct {
	Node, Name string
	State      NodeState
	Pulled     bool // the model is there
	Verdict    FitVerdict
	Slots      int
	Devices    int  // accelerators that it would be split over; 0 on a host pool
	Need       Need // on so many
	Pools      []PoolFit
	Available  Bytes // what the model could take after the unloads in Evict; with several devices only what whole layers can use
	Short      uint64
	Evict      []Eviction // smallest set that makes room
	Predicted  uint64     // what Ollama 0.30 takes it for by itself; 0 up to 0.2x
	Largest    int        // largest context in tokens that fits now, after no unload; 0 none
	Empty      int        // largest context in tokens that fits the empty machine; 0 none
	Why        string     // one clause for people
}

// Eviction is a model that would have to go.
type Eviction struct {
	Model string
	Bytes uint64 // what it gives back
	Busy  int    // calls that have to end first
}

// PoolFit is what is in one of the pools that models of a node go to, bytes.
type PoolFit struct {
	ID        string
	Kind      PoolKind
	Total     Bytes
	Free      Bytes  // as measured
	Stale     bool   // the measured figure is old: it only lowers what is available
	Claims    uint64 // of loaded models and the load in flight
	Foreign   uint64 // in use beyond what the loaded models hold: other programs
	Reserve   uint64 // kept free
	Available Bytes  // for a new model beside what is loaded
}

// fileDigest stands for the digest of a shape that belongs to no model of a node.
const fileDigest = "file"

// Fit says for every machine what a model needs there, what is available, and what would make it fit. It decides nothing; the
// same rules decide in Place. Nodes are in the order of their ids.
func Fit(s Snapshot, q FitQuestion, limits Limits) FitReport {
	hosts, shapes := newHosts(s, limits)
	r := FitReport{Model: q.Model, Asked: q.Context, Digest: shapes.digestByName[tagged(q.Model)]}
	r.Context = contextOf(shapes.byDigest[r.Digest], q.Context, limits)
	if q.Shape != nil {
		r.Digest, r.Context = "", contextOf(q.Shape, q.Context, limits)
	}
	for _, h := range hosts {
		f := &fit{digest: r.Digest, shape: shapes.byDigest[r.Digest]}
		if q.Shape != nil {
			f.digest, f.shape, f.file = fileDigest, q.Shape, q.FileBytes
		} else if f.model = findName(h.Node, tagged(q.Model)); f.model != nil {
			f.digest, f.shape, f.file = f.model.Digest, shapes.byDigest[f.model.Digest], f.model.FileBytes
		}
		f.slots = slotsOf(h.Node, f.model, f.shape)
		if q.Slots > 0 && !alone(f.model, f.shape) {
			f.slots = q.Slots
		}
		f.measure(h, contextOf(f.shape, q.Context, limits))
		r.Known = r.Known || f.shape.believable()
		r.Nodes = append(r.Nodes, h.report(f))
	}
	return r
}

// report is the answer for one node.
func (h *host) report(f *fit) NodeFit {
	n := NodeFit{Node: h.ID, Name: h.name(), State: h.State, Pulled: f.model != nil, Slots: f.slots, Pools: h.poolFits(), Predicted: f.predict}
	if len(f.needs) == 0 {
		n.Verdict, n.Why = FitUnknown, "the shape of the model is not known"
		if f.shape.believable() {
			n.Why = "its memory is not known"
		}
		return n
	}
	most := cmp.Or(f.shape.ContextLength, max(f.context, 1<<20))
	n.Empty = largestContext(most, func(context int) bool { return f.at(h, context).room.ok })
	n.Largest = largestContext(most, func(context int) bool { return f.at(h, context).roomAfter(h, h.copies(f)).ok })
	r := n.judge(h, f)
	n.Available, n.Short = Bytes{N: r.available, Known: true}, r.short
	n.Need = f.needs[max(r.devices, 1)-1]
	if h.memory.devices {
		n.Devices = max(r.devices, 1)
	}
	return n
}

// judge finds the verdict, what would have to go for it, and the room that it is about.
func (n *NodeFit) judge(h *host, f *fit) room {
	now := f.roomAfter(h, h.copies(f))
	way := h.clear(f, func(j int) bool { return h.residents[j].busy == 0 && h.mayGo(j) })
	if !way.ok {
		way = h.clear(f, h.mayGo)
	}
	switch {
	case h.find(f) >= 0:
		n.Verdict, n.Why = FitLoaded, fmt.Sprintf("loaded at %d tokens", f.context)
		return f.room
	case !f.room.ok:
		n.Verdict, n.Why = FitNo, fmt.Sprintf("needs %s at %d tokens, has %s when empty", gib(f.room.need), f.context, gib(f.room.available))
		return f.room
	case way.ok && len(way.evict) == 0:
		n.Verdict, n.Why = FitYes, fmt.Sprintf("needs %s at %d tokens, %s available", gib(now.need), f.context, gib(now.available))
		return way.room
	case way.ok:
		var names []string
		for _, j := range way.evict {
			l := h.Loaded[j]
			n.Evict = append(n.Evict, Eviction{Model: l.Name, Bytes: sum(h.memory.held[j].frees), Busy: h.residents[j].busy})
			names = append(names, l.Name)
		}
		n.Verdict, n.Why = FitEvict, fmt.Sprintf("needs %s at %d tokens, %s available, %s once %s is unloaded",
			gib(way.room.need), f.context, gib(now.available), gib(way.room.available), and(names))
		return way.room
	default:
		n.Verdict, n.Why = FitBlocked, fmt.Sprintf("needs %s at %d tokens, %s available: what takes the rest stays", gib(now.need), f.context, gib(now.available))
		return now
	}
}

// mayGo reports whether loaded model j is one that may be unloaded at all.
func (h *host) mayGo(j int) bool { return !h.stays(j) }

// copies marks what has to go in any case: the same model at another context, of which Ollama keeps one.
func (h *host) copies(f *fit) []bool {
	gone := make([]bool, len(h.Loaded))
	for j := range h.Loaded {
		gone[j] = h.Loaded[j].Digest == f.digest
	}
	return gone
}

// poolFits are the pools that models of the node go to.
func (h *host) poolFits() []PoolFit {
	m := h.memory
	out := make([]PoolFit, len(m.pools))
	none := make([]bool, len(m.held))
	for p, pool := range m.pools {
		out[p] = PoolFit{ID: pool.ID, Kind: pool.Kind, Total: pool.Total, Free: pool.Free, Stale: pool.FreeAge > FreshFor, Reserve: m.limits.reserve(pool), Claims: m.loading}
		var held uint64
		for _, one := range m.held {
			out[p].Claims += one.claim[p]
			held += one.frees[p]
		}
		if pool.Total.Known && pool.Free.Known {
			out[p].Foreign = below(below(pool.Total.N, pool.Free.N), held)
		}
		if m.known {
			out[p].Available = Bytes{N: m.available(p, none), Known: true}
		}
	}
	return out
}

func sum(list []uint64) uint64 {
	var total uint64
	for _, n := range list {
		total += n
	}
	return total
}
