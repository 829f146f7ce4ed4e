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

// The figures are Ollama v0.17.4's own estimate for these models, measured on header-only files, in GiB. Ollama takes a byte for
// an element of q8_0; a block of 32 has 34.
func TestNeedAgreesWithOllama(t *testing.T) {
	columns := []struct {
		context, slots int
		kvType         string
	}{{4096, 1, "f16"}, {8192, 1, "f16"}, {8192, 4, "f16"}, {32768, 1, "f16"}, {32768, 1, "q8_0"}}
	for _, row := range []struct {
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
	} {
		for i, c := range columns {
			need := NeedFor(row.shape, c.context, c.slots, NeedOptions{GPUs: 1, KVType: c.kvType})
			got := float64(need.Total() - need.Margin)
			if c.kvType == "q8_0" {
				got -= float64(need.KV) * (1 - 32.0/34)
			}
			want := row.total[i] * giB
			if off := math.Abs(got - want); off > max(0.01*want, 64<<20) {
				t.Errorf("%s %d×%d %s: %.2f GiB before margin, Ollama says %.2f", row.name, c.context, c.slots, c.kvType, got/giB, row.total[i])
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
	plain := Shape{Architecture: "starcoder", WeightBytes: 1 << 30, Layers: 2, EmbeddingLength: 768, Heads: 12}
	if got, want := NeedFor(plain, 512, 1, NeedOptions{}).KV, uint64(2*12*128*2*512); got != want {
		t.Errorf("KV %d, want %d: without a figure every head has its own", got, want)
	}
}

// The engine of Ollama up to 0.2x keeps windows for its own families only (swa_full is on in its llama.cpp runner), and
// llama-server, since 0.30, for all that llama.cpp knows; gemma2 9b has 42 layers, every second one with a window of 4096.
func TestWindowsByGenerationOfOllama(t *testing.T) {
	gemma2 := Shape{Architecture: "gemma2", WeightBytes: 5 << 30, Layers: 42, EmbeddingLength: 3584, Heads: 16, KVHeads: []int{8},
		KeyLength: 256, ValueLength: 256, VocabSize: 256000, SlidingWindow: 4096}
	token := uint64(8 * 512 * 2)
	for rules, want := range map[Rules]uint64{
		RulesClassic: 42 * 16384 * token,
		"":           42 * 16384 * token, // not known: the more careful of both
		RulesRunner:  21*16384*token + 21*(4096+512)*token,
	} {
		if got := NeedFor(gemma2, 16384, 1, NeedOptions{GPUs: 1, Rules: rules}).KV; got != want {
			t.Errorf("%q: KV %d, want %d", rules, got, want)
		}
	}
}

// What the file says of each layer goes before the pattern of the family: gemma4 has other key lengths on windowed layers.
func TestWindowsThatTheFileTells(t *testing.T) {
	s := Shape{Architecture: "gemma4", WeightBytes: 5 << 30, Layers: 3, EmbeddingLength: 2560, Heads: 8, KVHeads: []int{2}, KeyLength: 512, ValueLength: 512,
		SlidingWindow: 512, Windowed: []bool{true, true, false}, WindowKey: 256, WindowValue: 256}
	want := uint64(2*(512+512)*2*512*2 + 8192*2*1024*2)
	if got := NeedFor(s, 8192, 1, NeedOptions{GPUs: 1, Rules: RulesRunner}).KV; got != want {
		t.Errorf("KV %d, want %d", got, want)
	}
}

// A recurrent state is there once for each slot; Ollama's own engine keeps 24 copies beside it to go back to.
func TestRecurrentStateDoesNotGrowWithTheContext(t *testing.T) {
	const state = 4 * (128*4096 + 3*8192) // Qwen3-Next, f32
	s := Shape{Architecture: "qwen3next", WeightBytes: 40 << 30, Layers: 4, EmbeddingLength: 2048, Heads: 16, KVHeads: []int{0, 0, 0, 2}, KeyLength: 256,
		ValueLength: 256, StateBytes: []uint64{state, state, state, 0}}
	for _, c := range []struct {
		rules  Rules
		slots  int
		states uint64
	}{{RulesRunner, 1, 3}, {RulesRunner, 4, 12}, {RulesClassic, 1, 75}} {
		for _, context := range []int{4096, 65536} {
			want := uint64(context*c.slots*2*512*2) + c.states*state
			if got := NeedFor(s, context, c.slots, NeedOptions{GPUs: 1, Rules: c.rules}).KV; got != want {
				t.Errorf("%s %d×%d: KV %d, want %d", c.rules, context, c.slots, got, want)
			}
		}
	}
}

// A quantised cache needs flash attention; where Ollama up to 0.2x has none for a model, it takes f16 without a word.
func TestQuantisedCache(t *testing.T) {
	gemma2 := Shape{Architecture: "gemma2", WeightBytes: 5 << 30, Layers: 1, EmbeddingLength: 3584, Heads: 16, KVHeads: []int{8}, KeyLength: 256, ValueLength: 256}
	for _, c := range []struct {
		shape  Shape
		kvType string
		rules  Rules
		bytes  float64 // of an element
	}{
		{llama8b, "q8_0", RulesClassic, 34.0 / 32}, {llama8b, "q4_0", RulesClassic, 18.0 / 32}, {llama8b, "", RulesClassic, 2},
		{gemma2, "q8_0", RulesClassic, 2}, {gemma2, "q8_0", RulesRunner, 34.0 / 32},
	} {
		need := NeedFor(c.shape, 4096, 1, NeedOptions{GPUs: 1, KVType: c.kvType, Rules: c.rules})
		if got := float64(need.KV) / float64(NeedFor(c.shape, 4096, 1, NeedOptions{}).KV) * 2; got != c.bytes {
			t.Errorf("%s %s %s: %g bytes an element, want %g", c.shape.Architecture, c.kvType, c.rules, got, c.bytes)
		}
	}
}

func TestNeedByPart(t *testing.T) {
	whole := llama8b
	whole.ProjectorBytes, whole.AdapterBytes, whole.InputBytes = 1000<<20, 300<<20, 500<<20
	host := NeedFor(whole, 8192, 1, NeedOptions{})
	if host.Constant != 0 {
		t.Errorf("constant %d on a host pool, want none", host.Constant)
	}
	if host.Projector != 1400<<20 || host.Adapter != 300<<20 {
		t.Errorf("projector %d, want 1.4 × the file; adapter %d, want the file", host.Projector, host.Adapter)
	}
	one, two := NeedFor(whole, 8192, 1, NeedOptions{GPUs: 1}), NeedFor(whole, 8192, 1, NeedOptions{GPUs: 2, Overhead: 1 << 30})
	if one.Constant != 457<<20 || two.Constant != 914<<20+2<<30 || two.Graph != 2*one.Graph {
		t.Errorf("each device has its own constant, overhead and graph: %+v, %+v", one, two)
	}
	metal := NeedFor(whole, 8192, 1, NeedOptions{GPUs: 1, Metal: true})
	if metal.Constant != 512<<20 {
		t.Errorf("constant %d on Metal, want 512 MiB", metal.Constant)
	}
	if host.Weights-one.Weights != 500<<20 || metal.Weights != host.Weights {
		t.Errorf("input embeddings stay in the host's memory: %d on a card, %d on the host, %d where both are one", one.Weights, host.Weights, metal.Weights)
	}
	if sum := one.Weights + one.KV + one.Graph + one.Projector + one.Adapter + one.Constant + one.Margin; sum != one.Total() {
		t.Errorf("total %d, the parts are %d", one.Total(), sum)
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

// Of a mixture of experts a token passes few: Qwen3-30B-A3B uses 8 of 128.
func TestGraphOfExpertsFollowsThoseUsed(t *testing.T) {
	moe := Shape{Architecture: "qwen3moe", WeightBytes: 18 << 30, ExpertBytes: 16 << 30, Experts: 128, ExpertsUsed: 8, Layers: 48, EmbeddingLength: 2048, Heads: 32,
		KVHeads: []int{4}, KeyLength: 128, ValueLength: 128, VocabSize: 151936}
	dense := moe
	dense.ExpertBytes, dense.Experts = 0, 0
	vocabulary := uint64(4 * 512 * (2048 + 151936)) // the pass over the vocabulary: 300 MiB
	if got := NeedFor(moe, 512, 1, NeedOptions{}).Graph; got != vocabulary {
		t.Errorf("graph %d, want %d: 6 %% of the 3 GiB that a token passes are less", got, vocabulary)
	}
	if got, want := NeedFor(dense, 512, 1, NeedOptions{}).Graph, uint64(18<<30*6/100); got != want {
		t.Errorf("dense: graph %d, want %d", got, want)
	}
}

// Ollama makes an embedding in one batch: of bge-m3 at 8192 tokens the scores alone take 16 heads × 8192² × 4 bytes.
func TestEmbeddingsTakeTheirInputAtOnce(t *testing.T) {
	bge := Shape{Architecture: "bert", WeightBytes: 1 << 30, Layers: 24, EmbeddingLength: 1024, Heads: 16, KVHeads: []int{0}, Pooling: true, VocabSize: 250002}
	for rules, least := range map[Rules]uint64{RulesClassic: 16 * 8192 * 8192 * 4, RulesRunner: 16 * 2048 * 2048 * 4} {
		need := NeedFor(bge, 8192, 1, NeedOptions{GPUs: 1, Rules: rules})
		if need.Graph < least || need.Graph > least*5/4 {
			t.Errorf("%s: graph %d, the scores are %d", rules, need.Graph, least)
		}
		if need.KV != 0 {
			t.Errorf("%s: an encoder keeps %d bytes", rules, need.KV)
		}
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
