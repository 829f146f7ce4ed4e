package scheduler

// fallbackShare is the least graph of an architecture without a formula, as a share of the weights that a token passes.
const fallbackShare = 0.06

// graphBytes is the compute buffer on one device with all layers on devices and no flash attention, as Ollama v0.17.4
// computes it (GraphSize in fs/ggml): ours must not be lower, else Ollama would have to choose. kv is the cache in bytes.
func graphBytes(s Shape, context, slots int, rules Rules, kv float64) float64 {
	batch := s.batch(context, rules)
	b := 4 * float64(batch) // bytes of one float32 per token of a batch
	e, v, h := float64(s.EmbeddingLength), float64(s.VocabSize), float64(s.Heads)
	c := float64(context) * float64(slots)
	if s.keepsNothing() {
		c = float64(batch) // an encoder attends over its batch alone
	}
	k, kvh := s.keyLength(), s.kvHeadsMost()
	scores := c * (1 + h)
	switch s.Architecture {
	case "llama", "llama4":
		if s.Experts > 0 {
			return b * max(1+4*e+scores, e+v, 2+3*e+scores+2*kvh+float64(s.FeedForward))
		}
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
		return fallbackGraph(s, b, scores, kv)
	}
}

// fallbackGraph is for an architecture without a formula. Of a model that makes embeddings it is llama's, because Ollama runs
// it without flash attention over a whole input at once. Else it is Ollama's fallback, a sixth of the KV cache for each query
// head that shares one, but at least the pass over the vocabulary and 6 % of the weights that a token passes: of a mixture
// of experts, only those that are used.
func fallbackGraph(s Shape, b, scores, kv float64) float64 {
	e, v := float64(s.EmbeddingLength), float64(s.VocabSize)
	if s.Pooling {
		return b * (1 + 4*e + scores)
	}
	return max(float64(s.Heads)/s.kvHeadsLeast()*kv/6, fallbackShare*s.activeBytes(), b*(e+v))
}

// keepsNothing reports whether no layer keeps keys: an encoder.
func (s Shape) keepsNothing() bool {
	return len(s.KVHeads) > 0 && s.kvHeadsMost() == 0 && len(s.StateBytes) == 0
}
