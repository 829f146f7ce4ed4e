package scheduler

import "slices"

// Shape is what a model's memory need is computed from; the worker reads it from /api/show, or from a file's header, once
// per digest. Numbers that count layers or lengths are 0 where the file does not tell them.
type Shape struct {
	Architecture    string
	WeightBytes     uint64   // blk.*, output_norm, output (token_embd where tied), and what belongs to no group
	LayerBytes      []uint64 // weights per block, for splitting over devices; may be empty
	InputBytes      uint64   // input embeddings: in the host's memory, so they count where models share it
	ExpertBytes     uint64   // of WeightBytes: routed experts
	Experts         int      // of a layer; 0 when there are none
	ExpertsUsed     int      // for one token
	ProjectorBytes  uint64
	AdapterBytes    uint64
	Layers          int
	EmbeddingLength int
	Heads           int
	KVHeads         []int // one entry for all layers, or one per layer; 0 on a layer that keeps no keys
	KeyLength       int   // 0: EmbeddingLength / Heads
	ValueLength     int   // 0: EmbeddingLength / Heads
	FeedForward     int
	VocabSize       int
	ContextLength   int      // the model's own maximum, tokens
	SlidingWindow   int      // tokens; 0 when none
	SlidingPattern  int      // every n-th layer is global; 0 when the file does not say
	Windowed        []bool   // which layers keep only the window, where the file says it for each
	WindowKey       int      // key length on windowed layers; 0: KeyLength
	WindowValue     int      // value length on windowed layers; 0: ValueLength
	StateBytes      []uint64 // what each layer keeps per slot whatever the context (recurrent state in f32, pictures); empty when none does
	Pooling         bool     // makes embeddings: one batch holds a whole input
	Batch           int      // num_batch of the Modelfile, tokens; 0 when it sets none
}

// believable reports whether a need can be computed from the shape at all; what was not read is not taken for zero.
func (s *Shape) believable() bool {
	return s != nil && s.WeightBytes > 0 && s.Layers > 0 && s.Layers <= mostLayers && s.EmbeddingLength > 0 &&
		(s.Heads > 0 || len(s.StateBytes) > 0)
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

// batch is how many tokens are computed at once. An embedding is made in one piece: Ollama up to 0.2x takes the whole
// context, 0.30 at most 2048 tokens.
func (s Shape) batch(context int, rules Rules) int {
	switch {
	case s.Pooling && rules == RulesRunner:
		return min(2048, context)
	case s.Pooling:
		return context
	case s.Batch > 0:
		return min(s.Batch, context)
	default:
		return min(batchTokens, context)
	}
}

// activeBytes is how much of the weights one token passes through.
func (s Shape) activeBytes() float64 {
	if s.Experts == 0 || s.ExpertsUsed == 0 {
		return float64(s.WeightBytes)
	}
	experts := float64(min(s.ExpertBytes, s.WeightBytes))
	return float64(s.WeightBytes) - experts*(1-min(1, float64(s.ExpertsUsed)/float64(s.Experts)))
}
