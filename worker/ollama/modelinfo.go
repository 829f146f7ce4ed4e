package ollama

import (
	"bufio"
	"math"
	"strconv"
	"strings"
)

// readInfo reads the keys of a GGUF file, which JSON decoding made: numbers are float64, lists []any.
func (f *Facts) readInfo(values map[string]any) {
	in := modelInfo{values: values}
	in.arch, _ = values["general.architecture"].(string)
	f.Architecture = in.arch
	if f.BlockCount = in.number("BlockCount", ".block_count"); f.BlockCount > maxLayers {
		f.BlockCount, in.unknown = 0, append(in.unknown, "BlockCount")
	}
	f.EmbeddingLength = in.number("EmbeddingLength", ".embedding_length")
	f.FeedForwardLength = in.numbers("FeedForwardLength", ".feed_forward_length")
	f.HeadCount = in.numbers("HeadCount", ".attention.head_count")
	f.HeadCountKV = in.numbers("HeadCountKV", ".attention.head_count_kv")
	f.KeyLength = in.number("KeyLength", ".attention.key_length")
	f.ValueLength = in.number("ValueLength", ".attention.value_length")
	f.ContextLength = in.number("ContextLength", ".context_length")
	f.SlidingWindow = in.optional(".attention.sliding_window")
	f.SlidingWindowPattern = in.flags(".attention.sliding_window_pattern")
	f.SlidingWindowPeriod = in.optional(".attention.sliding_window_pattern")
	f.WindowKeyLength = in.optional(".attention.key_length_swa")
	f.WindowValueLength = in.optional(".attention.value_length_swa")
	f.Experts, f.ExpertsUsed = in.optional(".expert_count"), in.optional(".expert_used_count")
	_, f.Pooling = values[in.arch+".pooling_type"]
	f.VocabSize = in.vocabulary()
	f.Unknown = in.unknown
	f.readCache(&in)
}

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

// list is empty where the file has no list of numbers there.
func (m *modelInfo) list(key string) []int {
	all, _ := m.values[m.arch+key].([]any)
	out := make([]int, 0, len(all))
	for _, e := range all {
		if n, ok := toInt(e); ok {
			out = append(out, n)
		}
	}
	return out
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

// toInt accepts what JSON decoding makes of a GGUF number, up to what a contract carries: no count of a file is larger.
func toInt(v any) (int, bool) {
	f, ok := v.(float64)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0, false
	}
	return int(f), true
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
