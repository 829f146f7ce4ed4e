package ggufheader

import (
	"fmt"
	"maps"
)

// Model is what decides about the memory of a model: the numbers of its card.
type Model struct {
	Name, Arch string
	Layers     uint32
	Embedding  uint32
	Heads      uint32
	KVHeads    uint32
	Key, Value uint32 // lengths of a head; 0: Embedding / Heads
	FF         uint32 // width of the dense feed forward
	Vocab      uint32
	Context    uint32
	Tied       bool           // no output matrix of its own
	Experts    uint32         // routed
	Used       uint32         // of those, for one token
	ExpertFF   uint32         // width of one expert
	DenseFirst uint32         // layers before the first with experts
	LoRA       uint32         // kv_lora_rank: keys and values are made of one narrow vector (MLA)
	Rope       uint32         // with LoRA: width of the part of a key that carries positions
	State      bool           // layers without KV heads are recurrent: mamba's tensors
	Fused      bool           // one tensor for query, key and value
	Position   bool           // learned positions and token types, as in bert
	KVByLayer  []uint32       // instead of KVHeads
	Extra      map[string]any // keys of the architecture, without its prefix
}

// Keys are the keys of the file.
func (m Model) Keys() map[string]any {
	keys := map[string]any{
		"general.architecture": m.Arch, "general.name": m.Name, "general.file_type": uint32(15), "general.alignment": uint32(alignment),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": make([]string, m.Vocab),
	}
	own := map[string]any{
		"block_count": m.Layers, "context_length": m.Context, "embedding_length": m.Embedding, "feed_forward_length": m.FF,
		"attention.head_count": m.Heads, "attention.layer_norm_rms_epsilon": float32(1e-6),
	}
	add := func(name string, v uint32) {
		if v > 0 {
			own[name] = v
		}
	}
	add("attention.head_count_kv", m.KVHeads)
	add("attention.key_length", m.Key)
	add("attention.value_length", m.Value)
	add("expert_count", m.Experts)
	add("expert_used_count", m.Used)
	add("expert_feed_forward_length", m.ExpertFF)
	add("leading_dense_block_count", m.DenseFirst)
	add("attention.kv_lora_rank", m.LoRA)
	add("rope.dimension_count", m.Rope)
	if m.KVByLayer != nil {
		own["attention.head_count_kv"] = m.KVByLayer
	}
	maps.Copy(own, m.Extra)
	for name, v := range own {
		keys[m.Arch+"."+name] = v
	}
	return keys
}

// Tensors are the tensors of the file, quantised as Q4_K_M does it: the sensitive ones of some layers in Q6_K.
func (m Model) Tensors() []Tensor {
	e, v := uint64(m.Embedding), uint64(m.Vocab)
	out := []Tensor{matrix("token_embd.weight", Q4_K, e, v)}
	if m.Position {
		out = append(out, vector("token_embd_norm.weight", e), matrix("position_embd.weight", F32, e, uint64(m.Context)), matrix("token_types.weight", F32, e, 2))
	}
	for i := range m.Layers {
		out = append(out, m.block(i)...)
	}
	if !m.Position { // an encoder ends with its last block
		out = append(out, vector("output_norm.weight", e))
	}
	if !m.Tied && !m.Position {
		out = append(out, matrix("output.weight", Q6_K, e, v))
	}
	return out
}

func (m Model) block(i uint32) []Tensor {
	e := uint64(m.Embedding)
	mixed := Q4_K
	if i < m.Layers/8 || i >= m.Layers*7/8 || i%3 == 2 {
		mixed = Q6_K
	}
	out := []Tensor{vector("attn_norm.weight", e), vector("ffn_norm.weight", e)}
	if kv := m.kvHeads(i); kv > 0 || !m.State {
		out = append(out, m.attention(uint64(kv), mixed)...)
	} else {
		inner, state := uint64(m.Extra["ssm.inner_size"].(uint32)), uint64(m.Extra["ssm.state_size"].(uint32))
		out = append(out, matrix("ssm_in.weight", Q4_K, e, 2*inner), matrix("ssm_out.weight", Q4_K, inner, e), matrix("ssm_x.weight", F32, inner, 2*state))
	}
	out = append(out, m.feedForward(i, mixed)...)
	for t := range out {
		out[t].Name = fmt.Sprintf("blk.%d.%s", i, out[t].Name)
	}
	return out
}

func (m Model) kvHeads(layer uint32) uint32 {
	switch {
	case m.KVByLayer != nil:
		return m.KVByLayer[layer]
	case m.KVHeads == 0:
		return m.Heads
	default:
		return m.KVHeads
	}
}

func (m Model) attention(kv uint64, mixed Kind) []Tensor {
	e, heads := uint64(m.Embedding), uint64(m.Heads)
	key, value := e/heads, e/heads
	if m.Key > 0 {
		key, value = uint64(m.Key), uint64(m.Value)
	}
	switch {
	case m.LoRA > 0:
		rank, rope := uint64(m.LoRA), uint64(m.Rope)
		return []Tensor{
			matrix("attn_q.weight", Q4_K, e, heads*key), matrix("attn_kv_a_mqa.weight", Q8_0, e, rank+rope), vector("attn_kv_a_norm.weight", rank),
			matrix("attn_kv_b.weight", Q4_K, rank, heads*(key-rope+value)), matrix("attn_output.weight", Q4_K, heads*value, e),
		}
	case m.Fused:
		return []Tensor{matrix("attn_qkv.weight", mixed, e, heads*key+kv*(key+value)), matrix("attn_output.weight", Q4_K, heads*value, e)}
	default:
		return []Tensor{
			matrix("attn_q.weight", Q4_K, e, heads*key), matrix("attn_k.weight", Q4_K, e, kv*key), matrix("attn_v.weight", mixed, e, kv*value),
			matrix("attn_output.weight", Q4_K, heads*value, e),
		}
	}
}

func (m Model) feedForward(layer uint32, mixed Kind) []Tensor {
	e, ff := uint64(m.Embedding), uint64(m.FF)
	if m.Experts == 0 || layer < m.DenseFirst {
		return []Tensor{matrix("ffn_gate.weight", Q4_K, e, ff), matrix("ffn_up.weight", Q4_K, e, ff), matrix("ffn_down.weight", mixed, ff, e)}
	}
	n, width := uint64(m.Experts), uint64(m.ExpertFF)
	return []Tensor{
		matrix("ffn_gate_inp.weight", F32, e, n), matrix("ffn_gate_exps.weight", Q4_K, e, width, n), matrix("ffn_up_exps.weight", Q4_K, e, width, n),
		matrix("ffn_down_exps.weight", mixed, width, e, n),
	}
}

// matrix takes the kind that its rows allow: a block must not cross a row, and llama.cpp falls back as well.
func matrix(name string, kind Kind, dims ...uint64) Tensor {
	for dims[0]%blocks[kind][1] != 0 {
		kind = map[Kind]Kind{Q4_K: Q8_0, Q6_K: Q8_0, Q8_0: F16}[kind]
	}
	return Tensor{Name: name, Dims: dims, Kind: kind}
}

func vector(name string, n uint64) Tensor { return Tensor{Name: name, Dims: []uint64{n}, Kind: F32} }
