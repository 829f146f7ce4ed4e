package ollamatest

import (
	"maps"
	"slices"
)

// presets are shapes of real models, from their published configurations (config.json and the GGUF headers).
var presets = map[string]Model{
	"qwen3:8b": {
		Family: "qwen3", Parameters: "8.2B", Layers: 36, Embedding: 4096, FeedForward: 12288, Heads: 32, KVHeads: 8,
		HeadDim: 128, Vocab: 151936, Context: 40960, Capabilities: []string{"completion", "tools", "thinking"},
	},
	"qwen3:14b": {
		Family: "qwen3", Parameters: "14.8B", Layers: 40, Embedding: 5120, FeedForward: 17408, Heads: 40, KVHeads: 8,
		HeadDim: 128, Vocab: 151936, Context: 40960, Capabilities: []string{"completion", "tools", "thinking"},
	},
	"qwen3:32b": {
		Family: "qwen3", Parameters: "32.8B", Layers: 64, Embedding: 5120, FeedForward: 25600, Heads: 64, KVHeads: 8,
		HeadDim: 128, Vocab: 151936, Context: 40960, Capabilities: []string{"completion", "tools", "thinking"},
	},
	"qwen2.5:7b": {
		Family: "qwen2", Parameters: "7.6B", Layers: 28, Embedding: 3584, FeedForward: 18944, Heads: 28, KVHeads: 4,
		HeadDim: 128, Vocab: 152064, Context: 32768, Capabilities: []string{"completion", "tools"},
	},
	"llama3.1:8b": {
		Family: "llama", Parameters: "8.0B", Layers: 32, Embedding: 4096, FeedForward: 14336, Heads: 32, KVHeads: 8,
		HeadDim: 128, Vocab: 128256, Context: 131072, Capabilities: []string{"completion", "tools"},
	},
	"llama3.2:3b": {
		Family: "llama", Parameters: "3.2B", Layers: 28, Embedding: 3072, FeedForward: 8192, Heads: 24, KVHeads: 8,
		HeadDim: 128, Vocab: 128256, Tied: true, Context: 131072, Capabilities: []string{"completion", "tools"},
	},
	"llama3.3:70b": {
		Family: "llama", Parameters: "70.6B", Layers: 80, Embedding: 8192, FeedForward: 28672, Heads: 64, KVHeads: 8,
		HeadDim: 128, Vocab: 128256, Context: 131072, Capabilities: []string{"completion", "tools"},
	},
	// Its language part, from config.json of Qwen/Qwen2.5-VL-7B-Instruct (that of qwen2.5:7b with a longer context); the part that sees is left out.
	"qwen2.5vl:7b": {
		Family: "qwen25vl", Parameters: "8.3B", Layers: 28, Embedding: 3584, FeedForward: 18944, Heads: 28, KVHeads: 4,
		HeadDim: 128, Vocab: 152064, Context: 128000, Capabilities: []string{"completion", "vision"},
	},
	"nomic-embed-text": {
		Family: "nomic-bert", Parameters: "137M", Quant: "F16", Layers: 12, Embedding: 768, FeedForward: 3072, Heads: 12,
		KVHeads: 12, HeadDim: 64, Vocab: 30522, Tied: true, Context: 2048, Capabilities: []string{"embedding"},
	},
}

// Preset returns a model with the shape of a real one, and whether there is such a preset. The name is as Ollama's
// library has it, such as qwen3:8b.
func Preset(name string) (Model, bool) {
	for known, m := range presets {
		if tagged(known) == tagged(name) {
			m.Name = tagged(known)
			return m, true
		}
	}
	return Model{}, false
}

// PresetNames lists the presets in order.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets)) }

// SmallPresets are the models a server has when its configuration names none: one that thinks, one that does not, one
// that embeds.
func SmallPresets() []Model {
	var out []Model
	for _, name := range []string{"qwen3:8b", "llama3.2:3b", "nomic-embed-text"} {
		m, _ := Preset(name)
		out = append(out, m)
	}
	return out
}
