package ollama

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"
)

// modelInfo reads the GGUF keys as /api/show returns them and notes what is not there.
type modelInfo struct {
	values  map[string]any
	arch    string
	unknown []string
}

func (m *modelInfo) number(field, key string) int {
	v, ok := toInt(m.values[m.arch+key])
	if !ok {
		m.unknown = append(m.unknown, field)
	}
	return v
}

func (m *modelInfo) optional(key string) int {
	v, _ := toInt(m.values[m.arch+key])
	return v
}

// numbers reads a value that is one number for all layers in most models, and a list with one per layer in some.
func (m *modelInfo) numbers(field, key string) []int {
	switch v := m.values[m.arch+key].(type) {
	case []any:
		out := make([]int, 0, len(v))
		for _, e := range v {
			n, ok := toInt(e)
			if !ok {
				break
			}
			out = append(out, n)
		}
		if len(out) == len(v) && len(v) > 0 {
			return out
		}
	default:
		if n, ok := toInt(v); ok {
			return []int{n}
		}
	}
	m.unknown = append(m.unknown, field)
	return nil
}

func (m *modelInfo) flags(key string) []bool {
	list, _ := m.values[m.arch+key].([]any)
	var out []bool
	for _, e := range list {
		b, ok := e.(bool)
		if !ok {
			return nil
		}
		out = append(out, b)
	}
	return out
}

func (m *modelInfo) vocabulary() int {
	if n, ok := toInt(m.values[m.arch+".vocab_size"]); ok {
		return n
	}
	if tokens, ok := m.values["tokenizer.ggml.tokens"].([]any); ok && len(tokens) > 0 {
		return len(tokens)
	}
	m.unknown = append(m.unknown, "VocabSize")
	return 0
}

// toInt accepts what JSON decoding makes of a GGUF number.
func toInt(v any) (int, bool) {
	f, ok := v.(float64)
	if !ok || f < 0 || f != float64(int(f)) {
		return 0, false
	}
	return int(f), true
}

// countWeights sums the tensors by group and returns the sum of all. The grouping is Ollama 0.17.4's (llm/server.go).
func (f *Facts) countWeights(tensors []api.Tensor) int64 {
	var all int64
	if len(tensors) == 0 {
		f.noteUnknown("Weights")
	}
	untied := slices.ContainsFunc(tensors, func(t api.Tensor) bool { return t.Name == "output.weight" })
	f.Weights.Layers = make([]int64, max(f.BlockCount, 0))
	for _, t := range tensors {
		size, ok := tensorBytes(t)
		if !ok {
			f.noteUnknown("Weights")
		}
		all += size
		f.count(t.Name, size, untied)
	}
	return all
}

func (f *Facts) count(name string, size int64, untied bool) {
	var layer int
	w := &f.Weights
	switch {
	case layerOf(name, &layer) && layer < len(w.Layers):
		w.Layers[layer] += size
	case strings.HasPrefix(name, "output_norm."):
		w.OutputNorm += size
	case strings.HasPrefix(name, "output."):
		w.Output += size
	case strings.HasPrefix(name, "token_embd."):
		w.TokenEmbedding += size
		if !untied {
			w.Output += size
		}
	case strings.HasPrefix(name, "v."), strings.HasPrefix(name, "mm."), strings.HasPrefix(name, "a."):
		f.ProjectorBytes += size
	default:
		w.Other += size
	}
}

func layerOf(name string, layer *int) bool {
	n, err := fmt.Sscanf(name, "blk.%d.", layer)
	return n == 1 && err == nil && *layer >= 0
}

func (f *Facts) noteUnknown(field string) {
	if !slices.Contains(f.Unknown, field) {
		f.Unknown = append(f.Unknown, field)
	}
}

// tensorBytes is elements × bytes of the type's block / elements of the block, from Ollama's own table.
func tensorBytes(t api.Tensor) (int64, bool) {
	kind, err := ggml.ParseTensorType(t.Type)
	if err != nil {
		return 0, false
	}
	elements := uint64(1)
	for _, n := range t.Shape {
		elements *= n
	}
	return int64(elements * kind.TypeSize() / kind.BlockSize()), true
}

// parameters reads the text that /api/show gives: one "name   value" a line, repeated for lists.
func parameters(text string) map[string][]string {
	out := map[string][]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if ok {
			value = strings.TrimSpace(value)
			if unquoted, err := strconv.Unquote(value); err == nil {
				value = unquoted
			}
			out[name] = append(out[name], value)
		}
	}
	return out
}

func firstInt(values []string) int {
	if len(values) == 0 {
		return 0
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n < 0 {
		return 0
	}
	return n
}
