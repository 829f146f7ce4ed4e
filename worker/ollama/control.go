package ollama

// Token types of GGUF whose texts the tokenizer recognises wherever they stand, in data as well: control, such as
// <|im_end|>, and user-defined, such as <think> (enum llama_token_type of llama.cpp).
const (
	controlToken     = 3
	userDefinedToken = 4
)

// Bounds of the control strings that are kept of one model. Real vocabularies have a few hundred to some thousands, most of
// them reserved names; a file that says it has more is not believed.
const (
	maxControl       = 16384
	maxControlLength = 128 // bytes
)

// controlStrings are the texts of the vocabulary that stand for control tokens, in its order. It is nil where the file does
// not tell the types, or has so many that they cannot be right.
func controlStrings(info map[string]any) []string {
	tokens, _ := info["tokenizer.ggml.tokens"].([]any)
	types, _ := info["tokenizer.ggml.token_type"].([]any)
	if len(tokens) == 0 || len(tokens) != len(types) {
		return nil
	}
	out := []string{}
	for i, t := range types {
		kind, _ := t.(float64)
		text, _ := tokens[i].(string)
		if (kind == controlToken || kind == userDefinedToken) && text != "" && len(text) <= maxControlLength {
			out = append(out, text)
		}
	}
	if len(out) > maxControl {
		return nil
	}
	return out
}
