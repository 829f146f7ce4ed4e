package tinymodel

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Options says which of two models to make, and from which random numbers.
type Options struct {
	Seed    uint64 // of the weights; another seed is another model with another digest
	Layers  int    // 0: 2. More make it slower and larger: some 0.2 MB each
	Endless bool   // never ends an answer by itself: for tests of limits, progress and cancelling
	Repeats bool   // says one thing over and over, which Ollama breaks off after 30 tokens
}

// The network's size. Width must hold one dimension per class and leave some for noise.
const (
	width         = 64
	innerWidth    = 2 * width
	heads         = 4
	contextLength = 8192 // tokens, and a token is a byte of the prompt
	defaultLayers = 2

	// How loudly a token says its class, and what is left of that where the last matrix reads it: the norm before that
	// matrix divides by the root mean square of the class and the noise together.
	classLevel = 8.0
	classGain  = 5.5
	// The noise: what a token adds by itself, what a layer makes of what came before, and how much the last matrix hears
	// of both, which comes to about one logit.
	tokenNoise = 1.0
	layerNoise = 1.0
	headNoise  = 0.15
)

// Bytes returns the model as a GGUF file, the same bytes for the same options.
func Bytes(o Options) []byte {
	if o.Layers == 0 {
		o.Layers = defaultLayers
	}
	random := rand.New(rand.NewPCG(o.Seed, 1))
	texts, types := vocabulary()
	return encodeGGUF(metadata(o, texts, types), network(o, len(texts), random))
}

// metadata is what a llama needs to be loaded.
func metadata(o Options, texts []string, types []int32) []pair {
	return []pair{
		{"general.architecture", "llama"},
		{"general.name", "tiny"},
		{"general.file_type", uint32(ggmlF32)},
		{"llama.block_count", uint32(o.Layers)},
		{"llama.context_length", uint32(contextLength)},
		{"llama.embedding_length", uint32(width)},
		{"llama.feed_forward_length", uint32(innerWidth)},
		{"llama.attention.head_count", uint32(heads)},
		{"llama.attention.head_count_kv", uint32(heads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(width / heads)},
		{"llama.rope.freq_base", float32(10000)},
		{"llama.vocab_size", uint32(len(texts))},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", "default"},
		{"tokenizer.ggml.tokens", texts},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", []string{}},
		{"tokenizer.ggml.bos_token_id", uint32(tokenBegin)},
		{"tokenizer.ggml.eos_token_id", uint32(tokenEnd)},
		{"tokenizer.ggml.add_bos_token", true},
	}
}

// network returns the weights. A token's vector says its class in the first dimensions and is noise in the others; the
// layers add more noise, which carries what came earlier; the last matrix turns the class into the preferences.
func network(o Options, vocabularySize int, random *rand.Rand) []tensor {
	embedding := noise(random, vocabularySize*width, tokenNoise)
	head := noise(random, vocabularySize*width, headNoise)
	table := preferences(o)
	for token := range vocabularySize {
		row := token * width
		for c := range table {
			embedding[row+c] = 0
			head[row+c] = float32(table[c][token] / classGain)
		}
		embedding[row+int(classOf(token))] = classLevel
	}
	tensors := []tensor{
		matrix("token_embd.weight", width, vocabularySize, embedding),
		vector("output_norm.weight"),
		matrix("output.weight", width, vocabularySize, head),
	}
	for layer := range o.Layers {
		tensors = append(tensors, block(fmt.Sprintf("blk.%d.", layer), random)...)
	}
	return tensors
}

// block is one layer with random weights. It reads everything and writes only noise: what the model makes of the text so
// far tips the balance between things it likes equally, and never drowns what it likes.
func block(name string, random *rand.Rand) []tensor {
	fill := func(part string, in, out int) tensor {
		return matrix(name+part+".weight", in, out, noise(random, in*out, 1/math.Sqrt(width)))
	}
	fillNoise := func(part string, in int) tensor {
		data := noise(random, in*width, layerNoise/math.Sqrt(width))
		clear(data[:classes()*in])
		return matrix(name+part+".weight", in, width, data)
	}
	return []tensor{
		vector(name + "attn_norm.weight"),
		fill("attn_q", width, width),
		fill("attn_k", width, width),
		fill("attn_v", width, width),
		fillNoise("attn_output", width),
		vector(name + "ffn_norm.weight"),
		fill("ffn_gate", width, innerWidth),
		fill("ffn_up", width, innerWidth),
		fillNoise("ffn_down", innerWidth),
	}
}

func matrix(name string, in, out int, data []float32) tensor {
	return tensor{name: name, dims: []uint64{uint64(in), uint64(out)}, data: data}
}

// vector is a norm's weight: ones.
func vector(name string) tensor {
	data := make([]float32, width)
	for i := range data {
		data[i] = 1
	}
	return tensor{name: name, dims: []uint64{width}, data: data}
}

func noise(random *rand.Rand, length int, deviation float64) []float32 {
	data := make([]float32, length)
	for i := range data {
		data[i] = float32(random.NormFloat64() * deviation)
	}
	return data
}
