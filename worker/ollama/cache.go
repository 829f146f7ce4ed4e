package ollama

import (
	"cmp"
	"slices"
)

// maxLayers bounds lists that are made by layer: a file that says it has more is not believed.
const maxLayers = 1 << 14

// readCache works out what each layer keeps between tokens, apart from its length: KV heads where it keeps keys, bytes
// where it keeps a state. Sources: GraphSize in fs/ggml and model/models of Ollama v0.17.4; for what these do not have,
// llama-hparams.cpp of llama.cpp.
func (f *Facts) readCache(in *modelInfo) {
	if f.BlockCount == 0 {
		return
	}
	if causal, ok := in.values[in.arch+".attention.causal"].(bool); ok && !causal || slices.Contains(encoders, in.arch) {
		f.HeadCountKV = []int{0}
		return
	}
	state := recurrentState(f, in)
	pictures := in.list(".attention.cross_attention_layers")
	interval, shared := in.optional(".full_attention_interval"), in.optional(".attention.shared_kv_layers")
	heads, states := make([]int, f.BlockCount), make([]int, f.BlockCount)
	for i := range heads {
		heads[i] = perLayer(f.HeadCountKV, i, perLayer(f.HeadCount, i, 0))
		switch {
		case slices.Contains(pictures, i):
			states[i] = int(min(float64(heads[i])*float64(f.keyLength()+f.valueLength())*pictureBytes, maxState))
			heads[i] = 0
		case slices.Contains(recurrent, in.arch), state > 0 && interval > 1 && (i+1)%interval != 0,
			heads[i] == 0, len(f.HeadCount) > 1 && perLayer(f.HeadCount, i, 0) == 0:
			heads[i] = 0
			if !isFeedForward(f, i) {
				states[i] = state
			}
		case in.arch == "falcon-h1":
			states[i] = state // beside its keys
		case i >= f.BlockCount-shared:
			heads[i] = 0 // it reads what an earlier layer keeps
		}
	}
	if slices.Max(states) > 0 {
		f.StateBytes = states
	}
	if len(f.HeadCount) > 0 || len(f.HeadCountKV) > 0 {
		f.HeadCountKV = compact(heads)
	}
}

// isFeedForward reports whether a layer of nemotron_h does nothing but feed forward, and so keeps nothing at all.
func isFeedForward(f *Facts, layer int) bool {
	return (f.Architecture == "nemotron_h" || f.Architecture == "nemotron_h_moe") && perLayer(f.FeedForwardLength, layer, 0) > 0
}

// encoders attend over their batch alone and keep nothing.
var encoders = []string{"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert", "gemma-embedding", "t5encoder"}

// recurrent are the families in which no layer keeps keys.
var recurrent = []string{"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"}

// pictureBytes is what a cross attention layer of mllama keeps for each element of a head: 4 tiles of 1601 tokens, f32.
const pictureBytes = 4 * 1601 * 4

// recurrentState is what a recurrent layer keeps for a slot, bytes of f32: the last inputs of its convolution and its state.
func recurrentState(f *Facts, in *modelInfo) int {
	key := func(name string) float64 { return float64(in.optional(name)) }
	inner, size := key(".ssm.inner_size"), key(".ssm.state_size")
	elements := inner*size + max(key(".ssm.conv_kernel")-1, 0)*(inner+2*key(".ssm.group_count")*size)
	elements += max(key(".shortconv.l_cache")-1, 0) * float64(f.EmbeddingLength)
	if head := key(".wkv.head_size"); head > 0 {
		shifts := cmp.Or(key(".token_shift_count"), 2)
		elements += (shifts + head) * float64(f.EmbeddingLength)
	}
	return int(min(4*elements, maxState))
}

// maxState is more than any layer keeps for a slot, bytes, so that no sum wraps around.
const maxState = 1 << 40

func (f *Facts) keyLength() int {
	if f.KeyLength > 0 {
		return f.KeyLength
	}
	return f.EmbeddingLength / max(perLayer(f.HeadCount, 0, 1), 1)
}

func (f *Facts) valueLength() int {
	if f.ValueLength > 0 {
		return f.ValueLength
	}
	return f.EmbeddingLength / max(perLayer(f.HeadCount, 0, 1), 1)
}

// perLayer is the entry of a layer in a list that has one for all, or one for each.
func perLayer(list []int, layer, otherwise int) int {
	switch {
	case len(list) == 0:
		return otherwise
	case layer < len(list):
		return list[layer]
	default:
		return list[len(list)-1]
	}
}

// compact is one entry for all where all are the same.
func compact(list []int) []int {
	if len(slices.Compact(slices.Clone(list))) == 1 {
		return list[:1]
	}
	return list
}
