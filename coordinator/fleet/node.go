package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// node is one worker as last seen. It is guarded by Fleet.mu and written by the link that holds it.
type node struct {
	id, name, address, version, foundBy string
	simulated                           bool
	lastSeen                            time.Time
	report                              *workerv1.NodeReport
	models                              []scheduler.Model // of the report; never changed, so that snapshots share it
	told                                map[string]bool   // fields of reports whose nonsense was told of

	client  workerv1.WorkerServiceClient // nil while not connected
	drop    context.CancelFunc           // ends the link's stream
	silence *time.Timer                  // fires when the node has been silent for too long; nil before it was heard
	lost    bool
}

// set takes in a report and says whether it tells something lasting that the one before did not. Free memory changes all the time.
func (n *node) set(r *workerv1.NodeReport) (news bool) {
	samePool := func(p, q *workerv1.Pool) bool {
		return p.GetId() == q.GetId() && p.GetTotalBytes() == q.GetTotalBytes() && p.GetReserveBytes() == q.GetReserveBytes()
	}
	keepModes(n.report, r)
	sameModel := func(m, n *workerv1.Model) bool { return proto.Equal(m, n) }
	same := slices.EqualFunc(n.report.GetModels(), r.GetModels(), sameModel)
	news = !same || !slices.EqualFunc(n.report.GetPools(), r.GetPools(), samePool)
	if n.report = r; same {
		return news
	}
	n.models = nil
	for _, m := range r.GetModels() {
		n.models = append(n.models, scheduler.Model{Name: m.GetName(), Digest: m.GetDigest(), FileBytes: m.GetFileBytes(), Shape: Shape(m.GetShape()), Embedding: m.GetEmbedding()})
	}
	return news
}

func (n *node) state() scheduler.NodeState {
	switch {
	case n.lost:
		return scheduler.NodeLost
	case n.client == nil, !n.report.GetOllama().GetReachable(), n.lostAccelerator() != "":
		return scheduler.NodeDegraded
	default:
		return scheduler.NodeUp
	}
}

func (n *node) problem() string {
	switch {
	case n.lost:
		return "no report since " + n.lastSeen.Local().Format("2006-01-02 15:04:05")
	case n.client == nil:
		return "the connection broke; connecting again"
	case !n.report.GetOllama().GetReachable():
		return "its Ollama does not answer: " + n.report.GetOllama().GetError()
	case n.lostAccelerator() != "":
		return fmt.Sprintf("its accelerator %s is lost: without it Ollama would compute on the processor", n.lostAccelerator())
	default:
		return ""
	}
}

// lostAccelerator names a device that is there no more, on a machine that has no other. It is not a machine without accelerators:
// in a container that lost its GPU after hours, Ollama goes on and computes on the processor.
func (n *node) lostAccelerator() (name string) {
	for _, d := range n.report.GetDevices() {
		switch {
		case usable(d):
			return ""
		case d.GetState() == "lost":
			name = d.GetName()
		}
	}
	return name
}

func usable(d *workerv1.Device) bool { return d.GetState() == "ok" || d.GetState() == "asleep" }

// snapshot is the node as the scheduler sees it, without what only the engine knows.
func (n *node) snapshot() scheduler.Node {
	r := n.report
	out := scheduler.Node{ID: n.id, Name: n.name, State: n.state(), LastSeen: n.lastSeen, OllamaVersion: r.GetOllama().GetVersion(),
		Slots: int(r.GetSlots()), Models: n.models, Simulated: n.simulated}
	for _, p := range r.GetPools() {
		out.Pools = append(out.Pools, scheduler.Pool{ID: p.GetId(), Kind: scheduler.PoolKind(p.GetKind()), Total: known(p.TotalBytes), Free: known(p.FreeBytes),
			FreeAge: n.freeAge(), Reserve: p.GetReserveBytes()})
	}
	for i, free := range pinnedFree(r) {
		out.Pools[i].Free = scheduler.Bytes{N: free, Known: true}
	}
	for _, d := range r.GetDevices() {
		out.Devices = append(out.Devices, scheduler.Device{Name: d.GetName(), Pool: d.GetPoolId(), Usable: usable(d)})
	}
	for _, l := range r.GetLoaded() {
		out.Loaded = append(out.Loaded, scheduler.Loaded{Digest: l.GetDigest(), Name: l.GetName(), Context: int(l.GetContext()), SizeBytes: l.GetSizeBytes(), VRAMBytes: l.GetVramBytes()})
	}
	return out
}

// sourceOwner is Pool.Source of a total that the machine's owner gave; see hwprobe.SourceOverride.
const sourceOwner = "override"

// pinnedFree is what is free in the pools, by index, whose total the machine's owner gave and of which nothing measures what is free: all
// but what Ollama holds. The owner vouches for the rest. Ollama does not say which device a model is on: the emptiest is taken.
func pinnedFree(r *workerv1.NodeReport) map[int]uint64 {
	free := map[int]uint64{}
	for i, p := range r.GetPools() {
		if p.GetSource() == sourceOwner && p.TotalBytes != nil && p.FreeBytes == nil {
			free[i] = p.GetTotalBytes()
		}
	}
	take := func(bytes uint64, host bool) {
		most := -1
		for i, n := range free {
			if (r.GetPools()[i].GetKind() == string(scheduler.PoolHost)) == host && (most < 0 || n > free[most] || n == free[most] && i < most) {
				most = i
			}
		}
		if most >= 0 {
			free[most] -= min(bytes, free[most])
		}
	}
	for _, l := range r.GetLoaded() {
		take(l.GetVramBytes(), false)
		take(l.GetSizeBytes()-min(l.GetVramBytes(), l.GetSizeBytes()), true)
	}
	return free
}

// freeAge is how old what is free is: as old as the report, and as much more as the hardware was looked at before it. The two times
// are of the worker's clock, which may be another one than ours.
func (n *node) freeAge() time.Duration {
	age := time.Since(n.lastSeen)
	if r := n.report; r.Probed != nil && r.Time != nil {
		age += max(0, r.Time.AsTime().Sub(r.Probed.AsTime()))
	}
	return age
}

func known(v *uint64) scheduler.Bytes {
	if v == nil {
		return scheduler.Bytes{}
	}
	return scheduler.Bytes{N: *v, Known: true}
}

// Shape is a model's shape as the scheduler takes it; nil while unknown.
func Shape(s *workerv1.Shape) *scheduler.Shape {
	if s == nil {
		return nil
	}
	out := &scheduler.Shape{Architecture: s.GetArchitecture(), WeightBytes: s.GetWeightBytes(), LayerBytes: s.GetLayerBytes(), InputBytes: s.GetInputBytes(),
		ExpertBytes: s.GetExpertBytes(), Experts: int(s.GetExperts()), ExpertsUsed: int(s.GetExpertsUsed()),
		ProjectorBytes: s.GetProjectorBytes(), AdapterBytes: s.GetAdapterBytes(),
		Layers: int(s.GetLayers()), EmbeddingLength: int(s.GetEmbeddingLength()), Heads: int(s.GetHeads()), KeyLength: int(s.GetKeyLength()),
		ValueLength: int(s.GetValueLength()), FeedForward: int(s.GetFeedForward()), VocabSize: int(s.GetVocabSize()),
		ContextLength: int(s.GetContextLength()), SlidingWindow: int(s.GetSlidingWindow()), SlidingPattern: int(s.GetSlidingPattern()),
		Windowed: s.GetWindowed(), WindowKey: int(s.GetWindowKey()), WindowValue: int(s.GetWindowValue()), StateBytes: s.GetStateBytes(),
		Pooling: s.GetPooling(), Batch: int(s.GetBatch())}
	for _, h := range s.GetKvHeads() {
		out.KVHeads = append(out.KVHeads, int(h))
	}
	return out
}

// stored is a node as the ledger keeps it.
type stored struct {
	Name      string          `json:"name"`
	Address   string          `json:"address"`
	Version   string          `json:"version"`
	FoundBy   string          `json:"found_by"`
	Simulated bool            `json:"simulated"`
	LastSeen  time.Time       `json:"last_seen"`
	Report    json.RawMessage `json:"report"`
}

const metaPrefix = "node/"

// remember reads the nodes seen in earlier lives; they are lost until they answer.
func (f *Fleet) remember(ctx context.Context) error {
	rows, err := f.o.Memory.Meta(ctx, metaPrefix)
	if err != nil {
		return err
	}
	for key, raw := range rows {
		var s stored
		report := &workerv1.NodeReport{}
		err := json.Unmarshal(raw, &s)
		if err == nil {
			err = (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(s.Report, report)
		}
		if err != nil { // not fatal: the node is found again by asking
			f.o.Log.Warn("a stored node cannot be read", "key", key, "error", err)
			continue
		}
		id := key[len(metaPrefix):]
		f.nodes[id] = &node{id: id, name: s.Name, address: s.Address, version: s.Version, foundBy: s.FoundBy, simulated: s.Simulated,
			lastSeen: s.LastSeen, lost: true}
		bound(report) // what an earlier version stored was not
		f.nodes[id].set(report)
	}
	return nil
}

// store keeps a node for the next life. Failing is not fatal: the node is found again by asking.
func (f *Fleet) store(id string) {
	f.mu.Lock()
	n := f.nodes[id]
	s := stored{Name: n.name, Address: n.address, Version: n.version, FoundBy: n.foundBy, Simulated: n.simulated, LastSeen: n.lastSeen}
	report := n.report
	f.mu.Unlock()
	raw, err := protojson.Marshal(report)
	if err == nil {
		s.Report = raw
		raw, err = json.Marshal(s)
	}
	if err == nil {
		err = f.o.Memory.Append(context.WithoutCancel(f.ctx), ledger.Commit{Meta: map[string]json.RawMessage{metaPrefix + id: raw}})
	}
	if err != nil {
		f.o.Log.Warn("a node could not be stored", "node", id, "error", err)
	}
}
