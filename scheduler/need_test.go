package scheduler

import (
	"math"
	"testing"
)

// The shapes of five public models, as their GGUF headers give them.
var (
	llama8b  = denseShape("llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072)
	qwen7b   = denseShape("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768)
	qwen14b  = denseShape("qwen2", 48, 5120, 13824, 40, 8, 128, 152064, 32768)
	qwen32b  = denseShape("qwen2", 64, 5120, 27648, 40, 8, 128, 152064, 32768)
	llama70b = denseShape("llama", 80, 8192, 28672, 64, 8, 128, 128256, 131072)
)

// denseShape computes the weights of a Q4_K_M file tensor by tensor: blocks of 256 weights take 144 bytes in Q4_K and 210
// in Q6_K; llama.cpp gives the larger type to attn_v and ffn_down of the first and last eighth of the layers and of
// every third one, and to the output; norms stay in F32.
func denseShape(arch string, layers, embd, ff, heads, kvHeads, headDim, vocab, train int) Shape {
	q4 := func(n int) uint64 { return uint64(n) / 256 * 144 }
	q6 := func(n int) uint64 { return uint64(n) / 256 * 210 }
	s := Shape{
		Architecture: arch, Layers: layers, EmbeddingLength: embd, Heads: heads, KVHeads: []int{kvHeads}, KeyLength: headDim,
		ValueLength: headDim, FeedForward: ff, VocabSize: vocab, ContextLength: train,
	}
	for i := range layers {
		mixed := q4
		if i < layers/8 || i >= layers*7/8 || i%3 == 2 {
			mixed = q6
		}
		kv := embd * kvHeads * headDim
		layer := 2*uint64(4*embd) + 2*q4(embd*heads*headDim) + q4(kv) + mixed(kv) + 2*q4(embd*ff) + mixed(ff*embd)
		s.LayerBytes = append(s.LayerBytes, layer)
		s.WeightBytes += layer
	}
	s.WeightBytes += uint64(4*embd) + q6(embd*vocab)
	return s
}

// The figures are Ollama v0.17.4's own estimate for these models, measured on header-only files, in GiB.
func TestNeedAgreesWithOllama(t *testing.T) {
	columns := []struct {
		context, slots int
		kvType         string
	}{{4096, 1, "f16"}, {8192, 1, "f16"}, {8192, 4, "f16"}, {32768, 1, "f16"}, {32768, 1, "q8_0"}}
	rows := []struct {
		name     string
		shape    Shape
		kvPerTok float64 // KiB
		total    [5]float64
	}{
		{"llama3.1-8b", llama8b, 128, [5]float64{5.54, 6.29, 10.84, 10.84, 8.84}},
		{"qwen2.5-7b", qwen7b, 56, [5]float64{5.03, 5.42, 8.09, 8.09, 7.22}},
		{"qwen2.5-14b", qwen14b, 192, [5]float64{9.49, 10.56, 16.98, 16.98, 13.98}},
		{"qwen2.5-32b", qwen32b, 256, [5]float64{19.86, 21.18, 29.10, 29.10, 25.10}},
		{"llama3.3-70b", llama70b, 320, [5]float64{41.27, 43.03, 53.57, 53.57, 48.57}},
	}
	for _, row := range rows {
		for i, c := range columns {
			need := NeedFor(row.shape, c.context, c.slots, NeedOptions{GPUs: 1, KVType: c.kvType})
			got := float64(need.Total()-need.Margin) / (1 << 30)
			if off := math.Abs(got/row.total[i] - 1); off > 0.02 {
				t.Errorf("%s %d×%d %s: %.2f GiB before margin, Ollama says %.2f (%.1f %% off)", row.name, c.context, c.slots, c.kvType, got, row.total[i], off*100)
			}
		}
		need := NeedFor(row.shape, 4096, 1, NeedOptions{GPUs: 1})
		if got := float64(need.KV) / 4096 / 1024; got != row.kvPerTok {
			t.Errorf("%s: %.1f KiB of KV per token, want %.1f", row.name, got, row.kvPerTok)
		}
	}
}

// Public model cards: gemma3 12b has 48 layers, 8 KV heads of 256, a window of 1024, every 6th layer global; gpt-oss 20b
// has 24 layers, 8 KV heads of 64, every second layer global, and Ollama keeps 4096 tokens on the others.
func TestSlidingWindowsSaveMemory(t *testing.T) {
	gemma := Shape{
		Architecture: "gemma3", WeightBytes: 7 << 30, Layers: 48, EmbeddingLength: 3840, Heads: 16, KVHeads: []int{8},
		KeyLength: 256, ValueLength: 256, VocabSize: 262208, SlidingWindow: 1024,
	}
	wantGemma := uint64(8*32768+40*(1024+512)) * 8 * 512 * 2
	if got := NeedFor(gemma, 32768, 1, NeedOptions{}).KV; got != wantGemma {
		t.Errorf("gemma3: KV %d, want %d", got, wantGemma)
	}
	oss := Shape{
		Architecture: "gptoss", WeightBytes: 12 << 30, Layers: 24, EmbeddingLength: 2880, Heads: 64, KVHeads: []int{8},
		KeyLength: 64, ValueLength: 64, VocabSize: 201088, SlidingWindow: 128,
	}
	wantOss := uint64(12*32768*2+12*(4096*2+512)) * 8 * 128 * 2
	if got := NeedFor(oss, 32768, 2, NeedOptions{}).KV; got != wantOss {
		t.Errorf("gptoss: KV %d, want %d", got, wantOss)
	}
	short := NeedFor(oss, 256, 1, NeedOptions{}).KV
	if want := uint64(24*256) * 8 * 128 * 2; short != want {
		t.Errorf("gptoss at 256 tokens: KV %d, want %d: a window never costs more than the context", short, want)
	}
}

func TestKVHeadsPerLayer(t *testing.T) {
	hybrid := Shape{Architecture: "jamba", WeightBytes: 1 << 30, Layers: 4, EmbeddingLength: 4096, Heads: 32, KVHeads: []int{0, 8, 0, 4}}
	if got, want := NeedFor(hybrid, 1000, 1, NeedOptions{}).KV, uint64(12*256*2*1000); got != want {
		t.Errorf("KV %d, want %d: layers without attention hold none", got, want)
	}
	plain := Shape{Architecture: "bert", WeightBytes: 1 << 30, Layers: 2, EmbeddingLength: 768, Heads: 12}
	if got, want := NeedFor(plain, 512, 1, NeedOptions{}).KV, uint64(2*12*128*2*512); got != want {
		t.Errorf("KV %d, want %d: without a figure every head has its own", got, want)
	}
}

func TestNeedByPart(t *testing.T) {
	vision := llama8b
	vision.ProjectorBytes = 1000 << 20
	host := NeedFor(vision, 8192, 1, NeedOptions{})
	if host.Constant != 0 {
		t.Errorf("constant %d on a host pool, want none", host.Constant)
	}
	if host.Projector != 1400<<20 {
		t.Errorf("projector %d, want 1.4 × the file", host.Projector)
	}
	one, two := NeedFor(vision, 8192, 1, NeedOptions{GPUs: 1}), NeedFor(vision, 8192, 1, NeedOptions{GPUs: 2})
	if one.Constant != 457<<20 || two.Constant != 914<<20 || two.Graph != 2*one.Graph {
		t.Errorf("each device has its own constant and graph: %+v, %+v", one, two)
	}
	if metal := NeedFor(vision, 8192, 1, NeedOptions{GPUs: 1, Metal: true}); metal.Constant != 512<<20 {
		t.Errorf("constant %d on Metal, want 512 MiB", metal.Constant)
	}
	if small := NeedFor(qwen7b, 512, 1, NeedOptions{}); small.Margin != 256<<20 {
		t.Errorf("margin %d, want at least 256 MiB", small.Margin)
	}
	large := NeedFor(llama70b, 8192, 1, NeedOptions{})
	if share := float64(large.Margin) / float64(large.Total()-large.Margin); math.Abs(share-0.03) > 1e-6 {
		t.Errorf("margin share %f, want 3 %%", share)
	}
}

func TestGraphOfUnknownArchitecture(t *testing.T) {
	unknown := llama8b
	unknown.Architecture = "somethingnew"
	at := func(context int) uint64 { return NeedFor(unknown, context, 1, NeedOptions{}).Graph }
	if got, want := at(1), uint64(0.06*float64(unknown.WeightBytes)); got != want {
		t.Errorf("graph %d at one token, want 6 %% of the weights, %d", got, want)
	}
	if got, want := at(32768), uint64(4<<30)*4/6; got != want {
		t.Errorf("graph %d, want Ollama's fallback: query heads per KV head × KV / 6 = %d", got, want)
	}
}

// What a worker reads from a file may be nonsense; a sum must not wrap around to something that fits.
func TestNeedSaturates(t *testing.T) {
	shape := Shape{Architecture: "llama", WeightBytes: math.MaxUint64, ProjectorBytes: math.MaxUint64, Layers: 1 << 14, EmbeddingLength: math.MaxInt32, Heads: 1, VocabSize: math.MaxInt32}
	if total := NeedFor(shape, math.MaxInt, math.MaxInt, NeedOptions{GPUs: 8}).Total(); total < 1<<60 {
		t.Errorf("total %d wrapped around", total)
	}
	if (&shape).believable() != true || (&Shape{}).believable() || (*Shape)(nil).believable() {
		t.Error("only a shape with weights, layers, heads and width can be computed with")
	}
}

func TestRuleSet(t *testing.T) {
	for version, want := range map[string]Rules{
		"0.17.4": RulesClassic, "v0.6.8": RulesClassic, "0.29.9-rc1": RulesClassic, "0.30.0": RulesRunner, "0.31.2-rc0": RulesRunner,
		"1.0.0": RulesRunner, "": RulesRunner, "0.0.0": RulesRunner, "dev": RulesRunner,
	} {
		if got := RuleSet(version); got != want {
			t.Errorf("RuleSet(%q) = %s, want %s", version, got, want)
		}
	}
}

func TestContext(t *testing.T) {
	model := Model{Shape: &Shape{ContextLength: 4096}}
	for _, c := range []struct {
		model  Model
		asked  int
		limits Limits
		want   int
	}{
		{Model{}, 0, Limits{}, 8192},
		{Model{}, 0, Limits{DefaultContext: 2000}, 2000},
		{Model{}, 100000, Limits{}, 100000},
		{model, 0, Limits{}, 4096},
		{model, 100000, Limits{}, 4096},
		{model, 1000, Limits{}, 1000},
	} {
		if got := Context(c.model, c.asked, c.limits); got != c.want {
			t.Errorf("Context(%v, %d, %v) = %d, want %d", c.model.Shape, c.asked, c.limits, got, c.want)
		}
	}
}
