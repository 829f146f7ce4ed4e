package ollamatest

import (
	"fmt"

	"github.com/ollama/ollama/api"
)

// minimumMemory is what Ollama 0.17.4 keeps free per device (ml/device.go), and batch its default num_batch.
const (
	minimumMemory = 457 << 20
	batch         = 512
)

// quantization is how a file of one kind stores its tensors.
type quantization struct {
	fileType                int    // general.file_type of the GGUF
	base, important, output string // types of most tensors, of the sensitive ones, and of the output
}

// quants follow llama.cpp's llama_tensor_get_type for the kinds that people run.
var quants = map[string]quantization{
	"F32":    {0, "F32", "F32", "F32"},
	"F16":    {1, "F16", "F16", "F16"},
	"Q4_0":   {2, "Q4_0", "Q4_0", "Q6_K"},
	"Q8_0":   {7, "Q8_0", "Q8_0", "Q8_0"},
	"Q4_K_M": {15, "Q4_K", "Q6_K", "Q6_K"},
	"Q6_K":   {18, "Q6_K", "Q6_K", "Q6_K"},
}

// typeSize is bytes and elements per block of a GGML type.
var typeSize = map[string][2]uint64{
	"F32": {4, 1}, "F16": {2, 1}, "Q4_0": {18, 32}, "Q8_0": {34, 32}, "Q4_K": {144, 256}, "Q5_K": {176, 256}, "Q6_K": {210, 256},
}

func tensorBytes(t api.Tensor) uint64 {
	size := typeSize[t.Type]
	return elements(t) * size[0] / size[1]
}

func elements(t api.Tensor) uint64 {
	n := uint64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// layerTensors are the tensors of block i.
func (m Model) layerTensors(i int) []api.Tensor {
	q := quants[m.Quant]
	important := q.base
	if eighth := m.Layers / 8; i < eighth || i >= 7*eighth || (i-eighth)%3 == 2 { // use_more_bits of llama.cpp
		important = q.important
	}
	value := important
	if value == "Q4_K" && m.Layers == 80 { // llama.cpp stores the shared values of 70B models with more bits
		value = "Q5_K"
	}
	e, f := uint64(m.Embedding), uint64(m.FeedForward)
	queries, kv := uint64(m.Heads*m.HeadDim), uint64(m.KVHeads*m.HeadDim)
	name := func(part string) string { return fmt.Sprintf("blk.%d.%s.weight", i, part) }
	return []api.Tensor{
		{Name: name("attn_norm"), Type: "F32", Shape: []uint64{e}},
		{Name: name("attn_q"), Type: q.base, Shape: []uint64{e, queries}},
		{Name: name("attn_k"), Type: q.base, Shape: []uint64{e, kv}},
		{Name: name("attn_v"), Type: value, Shape: []uint64{e, kv}},
		{Name: name("attn_output"), Type: q.base, Shape: []uint64{queries, e}},
		{Name: name("ffn_norm"), Type: "F32", Shape: []uint64{e}},
		{Name: name("ffn_gate"), Type: q.base, Shape: []uint64{e, f}},
		{Name: name("ffn_up"), Type: q.base, Shape: []uint64{e, f}},
		{Name: name("ffn_down"), Type: important, Shape: []uint64{f, e}},
	}
}

// outerTensors are the tensors outside the blocks. A tied embedding is stored as well as an output would be.
func (m Model) outerTensors() []api.Tensor {
	q := quants[m.Quant]
	e, v := uint64(m.Embedding), uint64(m.Vocab)
	embd := api.Tensor{Name: "token_embd.weight", Type: q.base, Shape: []uint64{e, v}}
	norm := api.Tensor{Name: "output_norm.weight", Type: "F32", Shape: []uint64{e}}
	if m.Tied {
		embd.Type = q.output
		return []api.Tensor{embd, norm}
	}
	return []api.Tensor{embd, norm, {Name: "output.weight", Type: q.output, Shape: []uint64{e, v}}}
}

func (m Model) tensors() []api.Tensor {
	out := m.outerTensors()
	for i := range m.Layers {
		out = append(out, m.layerTensors(i)...)
	}
	return out
}

func (m Model) parameterCount() uint64 {
	var n uint64
	for _, t := range m.tensors() {
		n += elements(t)
	}
	return n
}

// fileSize is the size of the model's file, bytes.
func (m Model) fileSize() int64 {
	var n uint64
	for _, t := range m.tensors() {
		n += tensorBytes(t)
	}
	return int64(n)
}

// footprint is the memory one loaded model takes, bytes.
type footprint struct {
	layers []uint64 // weights and KV cache of each block; the output counts as one more, last
	fixed  uint64   // graph and minimum, needed on a device with any layer on it
}

// footprintOf follows Ollama 0.17.4's estimate (research: scheduling §2.2): blocks, output_norm and output (the
// embedding if tied), KV at f16 for ctx × slots, the graph of the llama family, and the constant per device. The input
// embedding stays on the host and is not counted.
func (m Model) footprintOf(ctx, slots int) footprint {
	n := uint64(ctx * slots)
	kv := n * uint64(2*m.HeadDim*m.KVHeads) * 2
	if m.can("embedding") && !m.can("completion") {
		kv = 0 // an encoder keeps no cache
	}
	var f footprint
	for i := range m.Layers {
		size := kv
		for _, t := range m.layerTensors(i) {
			size += tensorBytes(t)
		}
		f.layers = append(f.layers, size)
	}
	var output uint64
	for _, t := range m.outerTensors() {
		if t.Name != "token_embd.weight" || m.Tied {
			output += tensorBytes(t)
		}
	}
	f.layers = append(f.layers, output)
	f.fixed = m.graph(n) + minimumMemory
	return f
}

// graph is the compute buffer for a context of n tokens over all slots, with every layer on the device (GraphSize in
// fs/ggml/ggml.go; qwen2 and its successors have a smaller factor).
func (m Model) graph(n uint64) uint64 {
	e, heads, vocab := uint64(m.Embedding), uint64(m.Heads), uint64(m.Vocab)
	if m.can("embedding") && !m.can("completion") {
		return 4 * batch * (e + n)
	}
	width := 4 * e
	if m.Family == "qwen2" || m.Family == "qwen3" {
		width = 2 * e
	}
	return max(4*batch*(1+width+n*(1+heads)), 4*batch*(e+vocab))
}

func (f footprint) total() int64 {
	n := f.fixed
	for _, l := range f.layers {
		n += l
	}
	return int64(n)
}

// onDevice is how many bytes and layers land on a device with the given free memory when at most limit layers may
// (negative: all). Ollama offloads whole layers; what is left runs on the host.
func (f footprint) onDevice(free int64, limit int) (used int64, placed int) {
	if limit < 0 {
		limit = len(f.layers)
	}
	used = int64(f.fixed)
	for i := len(f.layers) - 1; i >= 0 && placed < limit; i-- {
		if used+int64(f.layers[i]) > free {
			break
		}
		used += int64(f.layers[i])
		placed++
	}
	if placed == 0 {
		return 0, 0
	}
	return used, placed
}

// predictModern is PredictServerVRAM of Ollama 0.30 and newer (research: scheduling §2.5): file and KV cache, no graph.
func (m Model) predictModern(ctx, slots, numBatch int) int64 {
	need := m.fileSize() + int64(2*m.Layers*m.KVHeads*(m.Embedding/m.Heads))*int64(ctx*slots)*2
	switch {
	case numBatch >= 2048:
		return need + 2<<30
	case numBatch >= 1024:
		return need + 768<<20
	}
	return need
}
