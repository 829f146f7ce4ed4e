package serve

import (
	"cmp"
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// hardware copies what the probe found; unknown stays absent.
func hardware(p hwprobe.Report, r *workerv1.NodeReport) {
	for _, pool := range p.Pools {
		r.Pools = append(r.Pools, &workerv1.Pool{Id: pool.ID, Kind: string(pool.Kind), TotalBytes: optional(pool.TotalBytes), FreeBytes: optional(pool.FreeBytes),
			Source: string(sourceOf(pool)), ReserveBytes: pool.ReserveBytes})
	}
	for _, d := range p.Devices {
		m := &workerv1.Device{Id: d.ID, Pci: d.PCI, Uuid: d.UUID, Name: d.Name, Vendor: string(d.Vendor), PoolId: d.Pool, State: string(d.State), Driver: d.Driver, Integrated: optional(d.Integrated),
			TemperatureCelsius: optional(d.Temperature), PowerWatts: optional(d.Power)}
		if percent, ok := d.Utilisation.Value(); ok {
			share := percent / 100
			m.Utilisation = &share
		}
		r.Devices = append(r.Devices, m)
	}
}

// sourceOf is where a pool's numbers come from in one word: that the total is not measured now matters more than what told the rest.
func sourceOf(p hwprobe.Pool) hwprobe.Source {
	switch p.TotalSource {
	case hwprobe.SourceOverride, hwprobe.SourceLastKnown, hwprobe.SourceEstimate:
		return p.TotalSource
	}
	return cmp.Or(p.FreeSource, p.TotalSource)
}

func optional[T uint64 | float64 | bool](v hwprobe.Optional[T]) *T {
	if value, ok := v.Value(); ok {
		return &value
	}
	return nil
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
