package scheduler

import (
	"cmp"
	"slices"
)

// The constants of the memory formula, in bytes unless they say otherwise. Sources: Ollama v0.17.4, llm/server.go and
// ml/device.go; the margin and the projector factor are ours, because both generations of Ollama count projectors short.
const (
	batchTokens     = 512 // Ollama's default batch, tokens
	gpuConstant     = 457 << 20
	metalConstant   = 512 << 20
	projectorFactor = 1.4
	marginShare     = 0.03
	marginLeast     = 256 << 20
	fallbackShare   = 0.06    // of the weights, for the graph of an architecture without a formula
	mostLayers      = 1 << 14 // a shape with more is not believed
	mostBytes       = 1 << 60 // parts saturate here, so that a sum of parts cannot wrap around
)

// NeedOptions says where a model is to be loaded.
type NeedOptions struct {
	GPUs   int    // devices that it is split over, each with its own graph and constant; 0 means the host's CPU
	Metal  bool   // unified memory: the larger per-GPU constant
	KVType string // "f16" (or empty), "q8_0", "q4_0"; q8_0 and q4_0 at their real block sizes
}

// NeedFor (rule 1) is the memory that a model needs on one node, by part. context is in tokens per slot. Weights come from the
// tensor list, the KV cache from the heads of each layer, the graph from the family of the architecture.
func NeedFor(shape Shape, context, slots int, opts NeedOptions) Need {
	context, slots = max(context, 1), max(slots, 1)
	devices := max(opts.GPUs, 1)
	constant := gpuConstant
	if opts.Metal {
		constant = metalConstant
	}
	kv := kvBytes(shape, context, slots, opts.KVType)
	need := Need{
		Weights:   toBytes(float64(shape.WeightBytes)),
		KV:        toBytes(kv),
		Graph:     toBytes(float64(devices) * graphBytes(shape, context, slots, kv)),
		Projector: toBytes(float64(shape.ProjectorBytes) * projectorFactor),
		Constant:  toBytes(float64(max(opts.GPUs, 0)) * float64(constant)),
	}
	need.Margin = max(toBytes(float64(need.Total())*marginShare), marginLeast)
	return need
}

// toBytes rounds down and saturates. Integers below 2^53 pass exactly.
func toBytes(f float64) uint64 {
	return uint64(min(max(f, 0), mostBytes))
}

// kvBytes is the size of the KV cache. A sliding layer keeps its window per slot and one batch, never more than all.
func kvBytes(s Shape, context, slots int, kvType string) float64 {
	perHead := (s.keyLength() + s.valueLength()) * elementBytes(kvType)
	all := float64(context) * float64(slots)
	window, pattern := s.sliding()
	sliding := min(all, float64(window)*float64(slots)+batchTokens)
	total := 0.0
	for i := range s.Layers {
		tokens := all
		if window > 0 && pattern > 1 && (i+1)%pattern != 0 {
			tokens = sliding
		}
		total += tokens * perHead * float64(s.kvHeads(i))
	}
	return total
}

// elementBytes is the size of one KV element; a quantised block of 32 carries its 2-byte scale.
func elementBytes(kvType string) float64 {
	switch kvType {
	case "q8_0":
		return 34.0 / 32
	case "q4_0":
		return 18.0 / 32
	default:
		return 2
	}
}

// sliding is the window in tokens and the distance between global layers; without a known pattern every layer counts
// in full. Ollama keeps at least 4096 tokens on the sliding layers of gpt-oss.
func (s Shape) sliding() (window, pattern int) {
	switch s.Architecture {
	case "gemma3":
		return s.SlidingWindow, cmp.Or(s.SlidingPattern, 6)
	case "gptoss", "gpt-oss":
		return max(s.SlidingWindow, 4096), cmp.Or(s.SlidingPattern, 2)
	default:
		return s.SlidingWindow, s.SlidingPattern
	}
}

// kvHeads is the number of KV heads of a layer; without any figure, every head has its own.
func (s Shape) kvHeads(layer int) int {
	switch {
	case len(s.KVHeads) == 0:
		return s.Heads
	case len(s.KVHeads) == 1:
		return s.KVHeads[0]
	case layer < len(s.KVHeads):
		return s.KVHeads[layer]
	default:
		return slices.Max(s.KVHeads)
	}
}

func (s Shape) kvHeadsMost() float64 {
	if len(s.KVHeads) == 0 {
		return float64(s.Heads)
	}
	return float64(slices.Max(s.KVHeads))
}

func (s Shape) kvHeadsLeast() float64 {
	if len(s.KVHeads) == 0 {
		return float64(max(s.Heads, 1))
	}
	return float64(max(slices.Min(s.KVHeads), 1))
}

func (s Shape) keyLength() float64 {
	if s.KeyLength > 0 {
		return float64(s.KeyLength)
	}
	return float64(s.EmbeddingLength / max(s.Heads, 1))
}

func (s Shape) valueLength() float64 {
	if s.ValueLength > 0 {
		return float64(s.ValueLength)
	}
	return float64(s.EmbeddingLength / max(s.Heads, 1))
}

// believable reports whether a need can be computed from the shape at all; what was not read is not taken for zero.
func (s *Shape) believable() bool {
	return s != nil && s.WeightBytes > 0 && s.Layers > 0 && s.Layers <= mostLayers && s.Heads > 0 && s.EmbeddingLength > 0
}

// largestLayer is the slack that a split over devices can lose on each further one, because layers are not divisible.
func (s Shape) largestLayer() uint64 {
	if len(s.LayerBytes) > 0 {
		return slices.Max(s.LayerBytes)
	}
	return s.WeightBytes / uint64(max(s.Layers, 1))
}

// graphBytes is the compute buffer on one device with all layers on devices and no flash attention, as Ollama v0.17.4
// computes it (GraphSize in fs/ggml): ours must not be lower, else Ollama would have to choose. Without a formula it is
// Ollama's fallback, a sixth of the KV cache for each query head that shares one, but at least 6 % of the weights.
func graphBytes(s Shape, context, slots int, kv float64) float64 {
	const b = 4 * batchTokens // bytes of one float32 per token of a batch
	e, v, h := float64(s.EmbeddingLength), float64(s.VocabSize), float64(s.Heads)
	c := float64(context) * float64(slots)
	k, kvh := s.keyLength(), s.kvHeadsMost()
	scores := c * (1 + h)
	switch s.Architecture {
	case "llama", "llama4":
		return b * max(1+4*e+scores, e+v)
	case "mllama":
		return b * max(2+3*e+k*h+scores, e+v)
	case "gemma", "gemma2", "gemma3":
		return b * max(2+2*e+2*k*h+scores, e+v)
	case "gemma3n":
		return 4 * b * max(2+2*e+2*k*h+scores, e+v)
	case "command-r":
		return b * max(2+4*e+scores, e+v)
	case "qwen2":
		return b * max(1+2*e+scores, e+v)
	case "phi2":
		return b * max(1+4*e+scores, e+v)
	case "stablelm":
		return b * (2 + 3*e + scores)
	case "deepseek2":
		return b * max(3*e+2+c*(1+kvh)+2*k*kvh, 3*e+v)
	case "chatglm":
		qkv := k*h + 2*k*kvh
		return b * max(2+2*e+k*h+qkv+scores, e+v)
	case "gptoss", "gpt-oss":
		// Ollama turns flash attention on for it: no score matrix, but the vocabulary still passes through.
		return max(float64(4*slots+context*slots>>10+110)*(1<<20), b*(e+v))
	default:
		return max(h/s.kvHeadsLeast()*kv/6, fallbackShare*float64(s.WeightBytes))
	}
}
