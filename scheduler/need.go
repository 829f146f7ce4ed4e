package scheduler

// The constants of the memory formula, in bytes unless they say otherwise. Sources: Ollama v0.17.4, llm/server.go and
// ml/device.go; the margin and the projector factor are ours, because both generations of Ollama count projectors short.
const (
	batchTokens     = 512 // Ollama's default batch, tokens
	gpuConstant     = 457 << 20
	metalConstant   = 512 << 20
	projectorFactor = 1.4
	mostLayers      = 1 << 14 // a shape with more is not believed
	mostBytes       = 1 << 60 // parts saturate here, so that a sum of parts cannot wrap around
)

// Need is a model's memory need by part, in bytes.
type Need struct {
	Weights   uint64
	KV        uint64 // keys and values, and the state of recurrent layers
	Graph     uint64
	Projector uint64
	Adapter   uint64
	Constant  uint64
	Margin    uint64
}

// Total is the sum of all parts, in bytes.
func (n Need) Total() uint64 {
	return n.Weights + n.KV + n.Graph + n.Projector + n.Adapter + n.Constant + n.Margin
}

// NeedOptions says where a model is to be loaded.
type NeedOptions struct {
	GPUs     int    // devices that it is split over, each with its own graph and constant; 0 means the host's CPU
	Metal    bool   // unified memory: the larger per-GPU constant, and the input embeddings beside the rest
	KVType   string // "f16" (or empty), "q8_0", "q4_0"; q8_0 and q4_0 at their real block sizes
	Overhead uint64 // OLLAMA_GPU_OVERHEAD, bytes per device
	Rules    Rules  // of the Ollama there; empty while its version is not known, and then the more careful of both counts
	Learned  Bytes  // margin learned from loads like this one; see LearnedMargins
}

// NeedFor (rule 1) is the memory that a model needs on one node, by part. context is in tokens per slot. Weights come from the
// tensor list, the KV cache from the heads of each layer, the graph from the family of the architecture.
func NeedFor(shape Shape, context, slots int, opts NeedOptions) Need {
	context, slots = max(context, 1), max(slots, 1)
	devices := max(opts.GPUs, 1)
	constant := float64(gpuConstant)
	if opts.Metal {
		constant = metalConstant
	}
	weights := float64(shape.WeightBytes)
	if opts.Metal || opts.GPUs == 0 {
		weights += float64(shape.InputBytes)
	}
	c := newCache(shape, context, slots, opts)
	kv := c.total()
	need := Need{
		Weights:   toBytes(weights),
		KV:        toBytes(kv),
		Graph:     toBytes(float64(devices) * graphBytes(shape, context, slots, opts.Rules, kv)),
		Projector: toBytes(float64(shape.ProjectorBytes) * projectorFactor),
		Adapter:   toBytes(float64(shape.AdapterBytes)),
		Constant:  toBytes(float64(max(opts.GPUs, 0)) * (constant + float64(opts.Overhead))),
	}
	need.Margin = marginOf(need.Total(), opts.Learned)
	if opts.Rules != RulesRunner {
		need.Margin = max(need.Margin, toBytes(float64(max(opts.GPUs, 0))*(float64(shape.layerBytes(0))+c.layer(0))))
	}
	return need
}

// toBytes rounds down and saturates. Integers below 2^53 pass exactly.
func toBytes(f float64) uint64 {
	return uint64(min(max(f, 0), mostBytes))
}

// layerBytes is the weight of one block; where the file does not say it, an even share.
func (s Shape) layerBytes(layer int) uint64 {
	if layer < len(s.LayerBytes) {
		return s.LayerBytes[layer]
	}
	return s.WeightBytes / uint64(max(s.Layers, 1)+1)
}

// units are the pieces of a model that stay together on one device, in the order in which they are put there, bytes: what
// comes with the input, the blocks with their part of the cache, what comes with the output.
func units(s Shape, context, slots int, opts NeedOptions, need Need) []uint64 {
	out := make([]uint64, 0, s.Layers+2)
	out = append(out, need.Projector+need.Adapter)
	c := newCache(s, max(context, 1), max(slots, 1), opts)
	rest := need.Weights
	for i := range s.Layers {
		weights := min(s.layerBytes(i), rest)
		rest -= weights
		out = append(out, weights+toBytes(c.layer(i)))
	}
	return append(out, rest)
}
