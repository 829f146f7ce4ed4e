package oracle

import (
	"slices"
	"testing"

	"github.com/loopkeeper/loopkeeper/scheduler"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ggufheader"
)

// exception is where an oracle is not followed, and why. The tests insist that it differs there and nowhere else, so that a
// reason that no longer holds is noticed.
type exception struct {
	why  string
	when func(load) bool
}

func always(load) bool      { return true }
func quantised(l load) bool { return l.kvType != "f16" }

var (
	noFlash  = exception{"the server falls back to f16 for a model without flash attention (llm/server.go), GraphSize is not told", quantised}
	uncapped = exception{"GraphSize lets a window be larger than the context, the cache does not (kvcache/causal.go)", func(l load) bool { return l.context*l.slots < 4096+512 }}
)

// Ollama speaks for its engines up to 0.2x, gguf-parser for llama.cpp, which Ollama runs since 0.30; each is compared with
// our count under that rule set. Every architecture is known to both but gptoss, Ollama's own name for gpt-oss.
var cases = []struct {
	model          ggufheader.Model
	ollama, parser exception // in the KV cache
	parserWeights  string    // why gguf-parser's weights are not ours
}{
	{model: ggufheader.Llama8B},
	{model: ggufheader.Llama70B},
	{model: ggufheader.Mixtral},
	{model: ggufheader.Qwen32B},
	{model: ggufheader.Qwen3},
	{model: ggufheader.Qwen3MoE},
	{model: ggufheader.Gemma2, ollama: noFlash},
	{model: ggufheader.Gemma3},
	{model: ggufheader.Gemma3n, ollama: exception{"GraphSize counts every layer in full, but does not decide: its engine runs the model, whose last 15 layers " +
		"read what earlier ones keep and whose others keep windows (model/models/gemma3n); gguf-parser agrees", always}},
	{model: ggufheader.Phi3},
	{model: ggufheader.Mistral3},
	{model: ggufheader.GPTOSS, ollama: uncapped, parser: exception{"it knows the architecture only as gpt-oss, and takes this one to have no windows",
		func(l load) bool { return l.context > 512 }}},
	{model: ggufheader.GPTOSSUpstream, ollama: uncapped},
	{model: ggufheader.DeepSeek, ollama: noFlash},
	{model: ggufheader.DeepSeekMLA, ollama: noFlash, parser: exception{"it takes the lengths of a head from before the absorption (192 and 128) for the one " +
		"absorbed head, which has 576 and 512: llama-kv-cache.cpp allocates n_embd_k_gqa and n_embd_v_gqa; Ollama agrees", always}},
	{model: ggufheader.GLM4},
	{model: ggufheader.CommandR},
	{model: ggufheader.Cohere2},
	{model: ggufheader.Llama4},
	{model: ggufheader.OLMo3, ollama: exception{"GraphSize counts every layer in full, but does not decide: its engine runs the model with a window on 3 of 4 " +
		"layers (model/models/olmo3); gguf-parser agrees", func(l load) bool { return l.context*l.slots > 4096 }}},
	{model: ggufheader.Qwen3Next, ollama: exception{"GraphSize counts a recurrent state once, but the engine keeps one for each slot and reserves 24 copies " +
		"beside it (kvcache/recurrent_checkpoints.go)", always}},
	{model: ggufheader.Jamba, ollama: exception{"GraphSize counts a recurrent state once, llama.cpp keeps one for each sequence; gguf-parser agrees",
		func(l load) bool { return l.slots > 1 }}},
	{model: ggufheader.BERT, ollama: exception{"an encoder keeps no keys, GraphSize takes a missing count of KV heads for one; gguf-parser agrees", always},
		parserWeights: "of the input tensors only token_embd is made again as output (ml/backend/ggml), not positions and token types; Ollama agrees"},
}

func TestNeedAgainstBothOracles(t *testing.T) {
	for _, c := range cases {
		t.Run(c.model.Name+"/"+c.model.Arch, func(t *testing.T) {
			t.Parallel()
			s := open(t, c.model)
			for _, l := range loads {
				ours, theirs := s.ours(l, scheduler.RulesClassic), s.byOllama(l)
				if ours.Weights != theirs.weights {
					t.Errorf("weights %d, Ollama counts %d", ours.Weights, theirs.weights)
				}
				if l.kvType == "q8_0" {
					theirs.kv = theirs.kv * 34 / 32 // Ollama takes a byte for an element; a block of 32 has 34
				} else {
					checkGraph(t, c.model, l, ours.Graph, theirs.graph)
				}
				c.ollama.agree(t, "Ollama", l, ours.KV, theirs.kv)

				ours, theirs = s.ours(l, scheduler.RulesRunner), s.byParser(l)
				if same := ours.Weights == theirs.weights; same != (c.parserWeights == "") {
					t.Errorf("weights %d, gguf-parser counts %d; known reason: %q", ours.Weights, theirs.weights, c.parserWeights)
				}
				c.parser.agree(t, "gguf-parser", l, ours.KV, theirs.kv)
			}
		})
	}
}

// agree holds two caches to within 1 % of each other, but for the exception.
func (e exception) agree(t *testing.T, oracle string, l load, ours, theirs uint64) {
	t.Helper()
	excepted := e.when != nil && e.when(l)
	switch same := near(ours, theirs, 0.01); {
	case !same && !excepted:
		t.Errorf("%d×%d %s: KV %d, %s counts %d (%+.1f %%)", l.context, l.slots, l.kvType, ours, oracle, theirs, 100*(float64(ours)/float64(theirs)-1))
	case same && excepted:
		t.Errorf("%d×%d %s: KV %d, and %s counts the same: the reason does not hold: %s", l.context, l.slots, l.kvType, ours, oracle, e.why)
	}
}

// formulas are the families whose graph Ollama computes; ours is the same.
var formulas = []string{"llama", "llama4", "gemma2", "gemma3", "gemma3n", "command-r", "qwen2", "deepseek2"}

// checkGraph: where Ollama has no formula it has a fallback, and ours is not below it.
func checkGraph(t *testing.T, m ggufheader.Model, l load, ours, theirs uint64) {
	t.Helper()
	if slices.Contains(formulas, m.Arch) && m.Experts == 0 && !near(ours, theirs, 1e-9) {
		t.Errorf("%d×%d: graph %d, Ollama computes %d", l.context, l.slots, ours, theirs)
	}
	// olmo3's cache is smaller than GraphSize takes it to be, and its graph is a share of that; its engine measures it
	if ours < theirs && m.Arch != "olmo3" {
		t.Errorf("%d×%d: graph %d, Ollama takes %d: it would evict or spill by itself", l.context, l.slots, ours, theirs)
	}
}

// The published sizes of the files on the Ollama registry, in GB: what the weights of a Q4_K_M add up to is not of our making.
func TestFilesHaveTheirPublishedSize(t *testing.T) {
	for _, c := range []struct {
		model ggufheader.Model
		gb    float64
	}{{ggufheader.Llama8B, 4.9}, {ggufheader.Qwen7B, 4.7}, {ggufheader.Qwen14B, 9.0}} {
		s := open(t, c.model)
		if total := float64(s.shape.WeightBytes+s.shape.InputBytes) / 1e9; total < 0.97*c.gb || total > 1.03*c.gb {
			t.Errorf("%s: %.2f GB of tensors, the registry's file has %.1f", c.model.Name, total, c.gb)
		}
	}
}
