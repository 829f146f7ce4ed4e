package serve

import (
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// hardware copies what the probe found; unknown stays absent.
func hardware(p hwprobe.Report, r *workerv1.NodeReport) {
	for _, pool := range p.Pools {
		r.Pools = append(r.Pools, &workerv1.Pool{Id: pool.ID, Kind: string(pool.Kind), TotalBytes: optional(pool.TotalBytes), FreeBytes: optional(pool.FreeBytes),
			Source: string(pool.FreeSource)})
	}
	for _, d := range p.Devices {
		m := &workerv1.Device{Name: d.Name, Vendor: string(d.Vendor), PoolId: d.Pool, State: string(d.State), Driver: d.Driver, Integrated: optional(d.Integrated),
			TemperatureCelsius: optional(d.Temperature), PowerWatts: optional(d.Power)}
		if percent, ok := d.Utilisation.Value(); ok {
			share := percent / 100
			m.Utilisation = &share
		}
		r.Devices = append(r.Devices, m)
	}
}

func optional[T uint64 | float64 | bool](v hwprobe.Optional[T]) *T {
	if value, ok := v.Value(); ok {
		return &value
	}
	return nil
}

// override replaces the probed total of the pool that models load into by what the operator says, bytes; 0 says nothing.
func override(r *workerv1.NodeReport, memory uint64) {
	if memory == 0 || len(r.GetPools()) == 0 {
		return
	}
	target := r.Pools[0]
	for _, p := range r.Pools {
		if p.GetKind() != string(hwprobe.PoolOfHost) {
			target = p
			break
		}
	}
	if target.FreeBytes != nil {
		free := min(target.GetFreeBytes(), memory)
		if total := target.GetTotalBytes(); total > memory {
			free = target.GetFreeBytes() - min(target.GetFreeBytes(), total-memory)
		}
		target.FreeBytes = &free
	}
	target.TotalBytes, target.Source = &memory, "configured"
}

// keepTotals keeps how large a pool is when a probe that had trouble could not read it: a tool that hangs takes no memory
// out of the machine. What is free now stays unknown.
func keepTotals(r, last *workerv1.NodeReport) {
	if len(r.GetWarnings()) == 0 {
		return
	}
	for _, was := range last.GetPools() {
		i := slices.IndexFunc(r.Pools, func(p *workerv1.Pool) bool { return p.GetId() == was.GetId() })
		switch {
		case was.TotalBytes == nil:
		case i < 0:
			r.Pools = append(r.Pools, &workerv1.Pool{Id: was.GetId(), Kind: was.GetKind(), TotalBytes: was.TotalBytes, Source: "last known"})
		case r.Pools[i].TotalBytes == nil:
			r.Pools[i].TotalBytes, r.Pools[i].Source = was.TotalBytes, "last known"
		}
	}
}

// Shape is what the scheduler computes a need from. Without layers or weights there is none: unknown is not zero. Where
// tensor types are not told (IQ quantisations), the file's size stands for the weights: it is never less.
func Shape(f ollama.Facts) *workerv1.Shape {
	weights := f.Weights.Need()
	if slices.Contains(f.Unknown, "Weights") {
		weights = f.Size
	}
	if f.BlockCount == 0 || weights == 0 {
		return nil
	}
	return &workerv1.Shape{
		Architecture: f.Architecture, WeightBytes: uint64(weights), LayerBytes: unsigned(f.Weights.Layers), InputBytes: uint64(f.Weights.Input),
		ExpertBytes: uint64(f.Weights.Experts), Experts: int32(f.Experts), ExpertsUsed: int32(f.ExpertsUsed),
		ProjectorBytes: uint64(f.ProjectorBytes), AdapterBytes: uint64(f.AdapterBytes),
		Layers: int32(f.BlockCount), EmbeddingLength: int32(f.EmbeddingLength), Heads: int32(most(f.HeadCount)), KvHeads: short(f.HeadCountKV),
		KeyLength: int32(f.KeyLength), ValueLength: int32(f.ValueLength), FeedForward: int32(most(f.FeedForwardLength)),
		VocabSize: int32(f.VocabSize), ContextLength: int32(f.ContextLength),
		SlidingWindow: int32(f.SlidingWindow), SlidingPattern: int32(f.SlidingWindowPeriod), Windowed: f.SlidingWindowPattern,
		WindowKey: int32(f.WindowKeyLength), WindowValue: int32(f.WindowValueLength), StateBytes: unsigned(f.StateBytes),
		Pooling: f.Pooling, Batch: int32(f.NumBatch),
	}
}

func unsigned[T int | int64](list []T) []uint64 {
	out := make([]uint64, len(list))
	for i, n := range list {
		out[i] = uint64(n)
	}
	return out
}

func short(list []int) []int32 {
	out := make([]int32, len(list))
	for i, n := range list {
		out[i] = int32(n)
	}
	return out
}

func most(perLayer []int) int {
	if len(perLayer) == 0 {
		return 0
	}
	return slices.Max(perLayer)
}
