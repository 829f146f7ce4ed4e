package ggufheader

import "slices"

// The models, with the numbers of their published configurations.
var (
	Llama8B  = Model{Name: "llama3.1-8b", Arch: "llama", Layers: 32, Embedding: 4096, Heads: 32, KVHeads: 8, FF: 14336, Vocab: 128256, Context: 131072}
	Llama70B = Model{Name: "llama3.3-70b", Arch: "llama", Layers: 80, Embedding: 8192, Heads: 64, KVHeads: 8, FF: 28672, Vocab: 128256, Context: 131072}
	Mixtral  = Model{Name: "mixtral-8x7b", Arch: "llama", Layers: 32, Embedding: 4096, Heads: 32, KVHeads: 8, FF: 14336, Vocab: 32000, Context: 32768,
		Experts: 8, Used: 2, ExpertFF: 14336}
	Qwen7B   = Model{Name: "qwen2.5-7b", Arch: "qwen2", Layers: 28, Embedding: 3584, Heads: 28, KVHeads: 4, FF: 18944, Vocab: 152064, Context: 32768}
	Qwen14B  = Model{Name: "qwen2.5-14b", Arch: "qwen2", Layers: 48, Embedding: 5120, Heads: 40, KVHeads: 8, FF: 13824, Vocab: 152064, Context: 32768}
	Qwen32B  = Model{Name: "qwen2.5-32b", Arch: "qwen2", Layers: 64, Embedding: 5120, Heads: 40, KVHeads: 8, FF: 27648, Vocab: 152064, Context: 32768}
	Qwen3    = Model{Name: "qwen3-8b", Arch: "qwen3", Layers: 36, Embedding: 4096, Heads: 32, KVHeads: 8, Key: 128, Value: 128, FF: 12288, Vocab: 151936, Context: 40960}
	Qwen3MoE = Model{Name: "qwen3-30b-a3b", Arch: "qwen3moe", Layers: 48, Embedding: 2048, Heads: 32, KVHeads: 4, Key: 128, Value: 128, FF: 6144, Vocab: 151936,
		Context: 40960, Experts: 128, Used: 8, ExpertFF: 768}
	Gemma2 = Model{Name: "gemma2-9b", Arch: "gemma2", Layers: 42, Embedding: 3584, Heads: 16, KVHeads: 8, Key: 256, Value: 256, FF: 14336, Vocab: 256000,
		Context: 8192, Tied: true, Extra: map[string]any{"attention.sliding_window": uint32(4096)}}
	Gemma3 = Model{Name: "gemma3-12b", Arch: "gemma3", Layers: 48, Embedding: 3840, Heads: 16, KVHeads: 8, Key: 256, Value: 256, FF: 15360, Vocab: 262208,
		Context: 131072, Tied: true, Extra: map[string]any{"attention.sliding_window": uint32(1024)}}
	Gemma3n = Model{Name: "gemma3n-e4b", Arch: "gemma3n", Layers: 35, Embedding: 2048, Heads: 8, KVHeads: 2, Key: 256, Value: 256, FF: 16384, Vocab: 262144,
		Context: 32768, Tied: true, Extra: map[string]any{"attention.sliding_window": uint32(512), "attention.shared_kv_layers": uint32(15)}}
	Phi3 = Model{Name: "phi3-mini", Arch: "phi3", Layers: 32, Embedding: 3072, Heads: 32, KVHeads: 32, FF: 8192, Vocab: 32064, Context: 4096, Fused: true,
		Extra: map[string]any{"attention.sliding_window": uint32(2047)}}
	Mistral3 = Model{Name: "mistral-small3.1-24b", Arch: "mistral3", Layers: 40, Embedding: 5120, Heads: 32, KVHeads: 8, Key: 128, Value: 128, FF: 32768, Vocab: 131072,
		Context: 131072}
	// GPTOSS has the architecture under Ollama's name, GPTOSSUpstream under llama.cpp's.
	GPTOSS = Model{Name: "gpt-oss-20b", Arch: "gptoss", Layers: 24, Embedding: 2880, Heads: 64, KVHeads: 8, Key: 64, Value: 64, FF: 2880, Vocab: 201088,
		Context: 131072, Experts: 32, Used: 4, ExpertFF: 2880, Extra: map[string]any{"attention.sliding_window": uint32(128)}}
	GPTOSSUpstream = as(GPTOSS, "gpt-oss")
	// DeepSeek keeps keys and values as they are, DeepSeekMLA the narrow vector that they are made of.
	DeepSeek = Model{Name: "deepseek-v2-lite", Arch: "deepseek2", Layers: 27, Embedding: 2048, Heads: 16, KVHeads: 16, Key: 192, Value: 128, FF: 10944, Vocab: 102400,
		Context: 163840, Experts: 64, Used: 6, ExpertFF: 1408, DenseFirst: 1, LoRA: 512, Rope: 64}
	DeepSeekMLA = absorbed(DeepSeek)
	GLM4        = Model{Name: "glm4-9b", Arch: "glm4", Layers: 40, Embedding: 4096, Heads: 32, KVHeads: 2, Key: 128, Value: 128, FF: 13696, Vocab: 151552, Context: 32768}
	CommandR    = Model{Name: "command-r-35b", Arch: "command-r", Layers: 40, Embedding: 8192, Heads: 64, KVHeads: 64, FF: 22528, Vocab: 256000, Context: 131072, Tied: true}
	Cohere2     = Model{Name: "command-r7b", Arch: "cohere2", Layers: 32, Embedding: 4096, Heads: 32, KVHeads: 8, Key: 128, Value: 128, FF: 14336, Vocab: 256000,
		Context: 8192, Tied: true, Extra: map[string]any{"attention.sliding_window": uint32(4096)}}
	Llama4 = Model{Name: "llama4-scout", Arch: "llama4", Layers: 48, Embedding: 5120, Heads: 40, KVHeads: 8, Key: 128, Value: 128, FF: 16384, Vocab: 202048,
		Context: 10485760, Experts: 16, Used: 1, ExpertFF: 8192}
	OLMo3 = Model{Name: "olmo3-7b", Arch: "olmo3", Layers: 32, Embedding: 4096, Heads: 32, KVHeads: 32, FF: 11008, Vocab: 100278, Context: 65536,
		Extra: map[string]any{"attention.sliding_window": uint32(4096), "attention.sliding_window_pattern": slices.Repeat([]bool{true, true, true, false}, 8)}}
	Qwen3Next = Model{Name: "qwen3-next-80b-a3b", Arch: "qwen3next", Layers: 48, Embedding: 2048, Heads: 16, KVByLayer: slices.Repeat([]uint32{0, 0, 0, 2}, 12), Key: 256, Value: 256,
		FF: 5120, Vocab: 151936, Context: 262144, Experts: 512, Used: 10, ExpertFF: 512, State: true,
		Extra: map[string]any{"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(4096), "ssm.state_size": uint32(128), "ssm.group_count": uint32(16), "ssm.time_step_rank": uint32(32)}}
	Jamba = Model{Name: "jamba-mini", Arch: "jamba", Layers: 32, Embedding: 4096, Heads: 32, KVByLayer: slices.Repeat([]uint32{0, 0, 0, 0, 8, 0, 0, 0}, 4),
		FF: 14336, Vocab: 65536, Context: 262144, Experts: 16, Used: 2, ExpertFF: 14336, State: true,
		Extra: map[string]any{"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(8192), "ssm.state_size": uint32(16), "ssm.time_step_rank": uint32(256)}}
	BERT = Model{Name: "bge-m3", Arch: "bert", Layers: 24, Embedding: 1024, Heads: 16, FF: 4096, Vocab: 250002, Context: 8192, Position: true,
		Extra: map[string]any{"attention.causal": false, "pooling_type": uint32(2)}}
)

func as(m Model, arch string) Model {
	m.Arch = arch
	return m
}

// absorbed is the same model as newer files have it: one KV head that is the narrow vector.
func absorbed(m Model) Model {
	m.Name += " (MLA)"
	m.Extra = map[string]any{"attention.head_count_kv": uint32(1), "attention.key_length": m.LoRA + m.Rope, "attention.value_length": m.LoRA,
		"attention.key_length_mla": m.Key, "attention.value_length_mla": m.Value}
	return m
}
