package ollamatest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// Model is an installed model, described by the shape that decides its memory. Fields left zero come from the preset
// that Preset, or else Name, names.
type Model struct {
	Name         string   `yaml:"name"`         // with or without tag; "latest" is added
	Preset       string   `yaml:"preset"`       // take the shape of this preset
	Digest       string   `yaml:"digest"`       // default: a hash of name and shape
	Family       string   `yaml:"family"`       // general.architecture
	Parameters   string   `yaml:"parameters"`   // for people, such as 8.2B
	Quant        string   `yaml:"quant"`        // Q4_K_M, Q8_0, F16 …
	Layers       int      `yaml:"layers"`       // transformer blocks
	Embedding    int      `yaml:"embedding"`    // embedding length
	FeedForward  int      `yaml:"feed_forward"` // inner width of the MLP
	Heads        int      `yaml:"heads"`        // attention heads
	KVHeads      int      `yaml:"kv_heads"`     // heads of keys and values
	HeadDim      int      `yaml:"head_dim"`     // length of one key or value; default embedding/heads
	Vocab        int      `yaml:"vocab"`        // tokens
	Tied         bool     `yaml:"tied"`         // output shares the token embedding
	Context      int      `yaml:"context"`      // trained context, tokens
	NumCtx       int      `yaml:"num_ctx"`      // PARAMETER num_ctx of the Modelfile; 0 = none
	Capabilities []string `yaml:"capabilities"` // completion, tools, thinking, embedding, insert, vision
	Kind         Kind     `yaml:"kind"`         // how it thinks and is prompted; default: by family and capabilities
	Stop         []string `yaml:"stop"`         // PARAMETER stop of the Modelfile
	Control      []string `yaml:"control"`      // texts of its control tokens beside <|endoftext|>
	PromptRate   float64  `yaml:"prompt_rate"`  // overrides Config.PromptRate
	DecodeRate   float64  `yaml:"decode_rate"`  // overrides Config.DecodeRate
}

func completeModels(key string, models []Model) ([]Model, error) {
	var out []Model
	for i, m := range models {
		done, err := m.complete()
		if err != nil {
			return nil, wrong(fmt.Sprintf("%s[%d]", key, i), "%v", err)
		}
		if slices.ContainsFunc(out, func(o Model) bool { return o.Name == done.Name }) {
			return nil, wrong(fmt.Sprintf("%s[%d].name", key, i), "%s occurs twice", done.Name)
		}
		out = append(out, done)
	}
	return out, nil
}

// complete fills in the preset, the tag and the digest.
func (m Model) complete() (Model, error) {
	if m.Name = cmp.Or(m.Name, m.Preset); m.Name == "" {
		return m, fmt.Errorf("name: missing")
	}
	base, ok := Preset(cmp.Or(m.Preset, m.Name))
	if !ok && m.Preset != "" {
		return m, fmt.Errorf("preset: %q is unknown; there are %s", m.Preset, strings.Join(PresetNames(), ", "))
	}
	m.Name = tagged(m.Name)
	m = m.over(base)
	m.Family, m.Quant = cmp.Or(m.Family, "llama"), cmp.Or(m.Quant, "Q4_K_M")
	m.Context, m.Vocab = cmp.Or(m.Context, 8192), cmp.Or(m.Vocab, 32000)
	if m.Capabilities == nil {
		m.Capabilities = []string{"completion"}
	}
	if m.Layers < 1 || m.Embedding < 1 || m.Heads < 1 || m.Context < 1 {
		return m, fmt.Errorf("model %s: it is no preset, so layers, embedding and heads are needed", m.Name)
	}
	if m.Kind == "" {
		m.Kind = m.defaultKind()
	}
	if !slices.Contains(kinds, m.Kind) {
		return m, fmt.Errorf("model %s: kind %q is unknown; there are %v", m.Name, m.Kind, kinds)
	}
	m.KVHeads, m.HeadDim = cmp.Or(m.KVHeads, m.Heads), cmp.Or(m.HeadDim, m.Embedding/m.Heads)
	m.FeedForward = cmp.Or(m.FeedForward, 4*m.Embedding)
	if _, ok := quants[m.Quant]; !ok {
		return m, fmt.Errorf("model %s: quant %q is unknown", m.Name, m.Quant)
	}
	if m.Digest == "" {
		sum := sha256.Sum256(fmt.Append(nil, m))
		m.Digest = hex.EncodeToString(sum[:])
	}
	return m, nil
}

// over returns m with its zero fields taken from base.
func (m Model) over(base Model) Model {
	m.Digest, m.Family = cmp.Or(m.Digest, base.Digest), cmp.Or(m.Family, base.Family)
	m.Parameters, m.Quant = cmp.Or(m.Parameters, base.Parameters), cmp.Or(m.Quant, base.Quant)
	m.Layers, m.Embedding = cmp.Or(m.Layers, base.Layers), cmp.Or(m.Embedding, base.Embedding)
	m.FeedForward, m.Heads = cmp.Or(m.FeedForward, base.FeedForward), cmp.Or(m.Heads, base.Heads)
	m.KVHeads, m.HeadDim = cmp.Or(m.KVHeads, base.KVHeads), cmp.Or(m.HeadDim, base.HeadDim)
	m.Vocab, m.Context = cmp.Or(m.Vocab, base.Vocab), cmp.Or(m.Context, base.Context)
	m.Tied, m.NumCtx = m.Tied || base.Tied, cmp.Or(m.NumCtx, base.NumCtx)
	if m.Capabilities == nil {
		m.Capabilities = base.Capabilities
	}
	return m
}

// tagged adds the tag that Ollama assumes.
func tagged(name string) string {
	if i := strings.LastIndexByte(name, ':'); i < 0 || strings.Contains(name[i:], "/") {
		return name + ":latest"
	}
	return name
}

func (m Model) can(capability string) bool { return slices.Contains(m.Capabilities, capability) }

// unsafeParallel are the families that Ollama 0.17.4 never runs in more than one slot (server/sched.go).
var unsafeParallel = []string{"mllama", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen3next", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe"}

// parallel is how many slots the model gets when the server is set to n.
func (m Model) parallel(n int) int {
	if !m.can("completion") || slices.Contains(unsafeParallel, m.Family) {
		return 1
	}
	return n
}

func (m Model) details() api.ModelDetails {
	return api.ModelDetails{
		Format: "gguf", Family: m.Family, Families: []string{m.Family},
		ParameterSize: m.Parameters, QuantizationLevel: m.Quant,
	}
}

// info is model_info of /api/show; Ollama sends arrays as null unless verbose.
func (m Model) info(verbose bool) map[string]any {
	kv := map[string]any{
		"general.architecture":                m.Family,
		"general.basename":                    strings.SplitN(m.Name, ":", 2)[0],
		"general.file_type":                   quants[m.Quant].fileType,
		"general.parameter_count":             m.parameterCount(),
		"general.quantization_version":        2,
		m.Family + ".block_count":             m.Layers,
		m.Family + ".context_length":          m.Context,
		m.Family + ".embedding_length":        m.Embedding,
		m.Family + ".feed_forward_length":     m.FeedForward,
		m.Family + ".attention.head_count":    m.Heads,
		m.Family + ".attention.head_count_kv": m.KVHeads,
		m.Family + ".attention.key_length":    m.HeadDim,
		m.Family + ".attention.value_length":  m.HeadDim,
		m.Family + ".vocab_size":              m.Vocab,
		"tokenizer.ggml.model":                "gpt2",
		"tokenizer.ggml.tokens":               nil,
		"tokenizer.ggml.token_type":           nil,
	}
	if verbose {
		tokens, types := make([]string, m.Vocab), make([]int, m.Vocab)
		for i := range tokens {
			tokens[i], types[i] = fmt.Sprintf("t%d", i), 1
		}
		tokens[0], types[0] = "<|endoftext|>", 3
		for i, c := range m.Control[:min(len(m.Control), m.Vocab-1)] {
			tokens[i+1], types[i+1] = c, 3
		}
		kv["tokenizer.ggml.tokens"], kv["tokenizer.ggml.token_type"] = tokens, types
	}
	return kv
}

func (m Model) capabilities() []model.Capability {
	var out []model.Capability
	for _, c := range m.Capabilities {
		out = append(out, model.Capability(c))
	}
	return out
}
