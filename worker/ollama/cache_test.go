package ollama

import (
	"slices"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ggufheader"
)

// What layers keep, from the configurations of the models: Qwen3-Next has attention on every fourth of 48 layers, and a state of
// 32 heads of 128 × 128 beside 3 × 8192 inputs of its convolution; LFM2 keeps 2 inputs of 2048; Gemma 3n's last 15 of 35
// layers read what earlier ones keep; mllama's cross attention keeps 4 pictures of 1601 tokens.
func TestWhatLayersKeep(t *testing.T) {
	lfm2 := ggufheader.Model{Arch: "lfm2", Layers: 3, Embedding: 2048, Heads: 32, KVByLayer: []uint32{0, 0, 8}, FF: 8192, Vocab: 8,
		Extra: map[string]any{"shortconv.l_cache": uint32(3)}}
	interval := ggufheader.Model{Arch: "qwen35", Layers: 4, Embedding: 2048, Heads: 16, KVHeads: 2, Key: 256, Value: 256, FF: 512, Vocab: 8,
		Extra: map[string]any{"full_attention_interval": uint32(4), "ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(4096), "ssm.state_size": uint32(128), "ssm.group_count": uint32(16)}}
	mllama := ggufheader.Model{Arch: "mllama", Layers: 4, Embedding: 4096, Heads: 32, KVHeads: 8, FF: 512, Vocab: 8,
		Extra: map[string]any{"attention.cross_attention_layers": []int32{3}}}
	mamba := ggufheader.Model{Arch: "mamba", Layers: 2, Embedding: 4096, FF: 0, Vocab: 8, Heads: 1, State: true,
		Extra: map[string]any{"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(8192), "ssm.state_size": uint32(16)}}
	nemotron := ggufheader.Model{Arch: "nemotron_h", Layers: 3, Embedding: 4096, Heads: 32, KVByLayer: []uint32{0, 0, 8}, FF: 0, Vocab: 8,
		Extra: map[string]any{"feed_forward_length": []uint32{0, 21504, 0}, "ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(8192), "ssm.state_size": uint32(128), "ssm.group_count": uint32(8)}}
	delta := 4 * (128*4096 + 3*8192)
	for _, c := range []struct {
		model  ggufheader.Model
		heads  []int
		states []int
	}{
		{ggufheader.Llama8B, []int{8}, nil},
		{ggufheader.BERT, []int{0}, nil},
		{ggufheader.Qwen3Next, slices.Repeat([]int{0, 0, 0, 2}, 12), slices.Repeat([]int{delta, delta, delta, 0}, 12)},
		{interval, []int{0, 0, 0, 2}, []int{delta, delta, delta, 0}},
		{lfm2, []int{0, 0, 8}, []int{4 * 2 * 2048, 4 * 2 * 2048, 0}},
		{ggufheader.Gemma3n, append(slices.Repeat([]int{2}, 20), make([]int, 15)...), nil},
		{mllama, []int{8, 8, 8, 0}, []int{0, 0, 0, 8 * 256 * 4 * 1601 * 4}},
		{mamba, []int{0}, slices.Repeat([]int{4 * (16*8192 + 3*8192)}, 2)},
		{nemotron, []int{0, 0, 8}, []int{4 * (128*8192 + 3*(8192+2*8*128)), 0, 0}},
	} {
		raw, _ := ggufheader.Encode(c.model.Keys(), []ggufheader.Tensor{{Name: "blk.0.x", Dims: []uint64{256}}})
		f, err := decoded(raw)
		if err != nil || !slices.Equal(f.HeadCountKV, c.heads) || !slices.Equal(f.StateBytes, c.states) {
			t.Errorf("%s %s: heads %v, states %v, %v; want %v, %v", c.model.Arch, c.model.Name, f.HeadCountKV, f.StateBytes, err, c.heads, c.states)
		}
	}
}
