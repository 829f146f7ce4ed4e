package panel

import "strings"

// lines are names of families that go on after the name: "mistral-small" and "mistral-nemo" are one family.
var lines = []struct{ prefix, family string }{
	{"mistral", "mistral"}, {"ministral", "mistral"}, {"mixtral", "mistral"}, {"codestral", "mistral"}, {"devstral", "mistral"}, {"magistral", "mistral"},
	{"qwen", "qwen"}, {"qwq", "qwen"}, {"llama", "llama"}, {"codellama", "llama"}, {"gemma", "gemma"}, {"codegemma", "gemma"}, {"phi", "phi"},
	{"granite", "granite"}, {"deepseek", "deepseek"}, {"command", "command"}, {"aya", "command"}, {"gpt-oss", "gpt-oss"},
}

// Family is the family of a model by its name, as far as a name tells: "qwen3:8b" and "qwen2.5-coder" are qwen, "llama3.1" is
// llama. A tune under a name of its own is a family of its own, unless the configuration says another: a distilled model is a
// relative of what it was made from, and its name may hide that ("deepseek-r1:8b" is a qwen).
func Family(model string) string {
	name := model[strings.LastIndexByte(model, '/')+1:]
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(name)
	for _, l := range lines {
		if strings.HasPrefix(name, l.prefix) {
			return l.family
		}
	}
	if end := strings.IndexAny(name, "0123456789"); end > 0 {
		name = name[:end]
	}
	return strings.TrimRight(name, "-_.")
}
