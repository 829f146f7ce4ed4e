package calls

import (
	"strings"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// settings are sampling values that the makers of a model recommend; a nil one is left to the server.
type settings struct {
	temperature, topP *float64
	topK              *int
}

// family is what is known about the models of one family.
type family struct {
	// names are prefixes of a model's name without namespace, or of the family as Ollama names it (general.architecture).
	// The first family that fits counts: a distilled model is called after its teacher and built like its pupil.
	names    []string
	thinking settings // while it thinks
	plain    settings // while it does not
	levels   bool     // it takes levels of thinking only, and cannot switch it off
	caution  string   // what is known to go wrong; for people
}

func sampled(temperature, topP float64, topK int) settings {
	s := settings{temperature: &temperature}
	if topP > 0 {
		s.topP = &topP
	}
	if topK > 0 {
		s.topK = &topK
	}
	return s
}

// families holds the recommended values with their sources, as read in November 2026: HF is a model card on huggingface.co,
// generation_config the file of that name beside it. They fill what a request and the Modelfile leave open in a call
// without a format; a call with one has values of its own, see sampling.
var families = []family{
	harmony,
	// HF deepseek-ai/DeepSeek-R1: 0.5 to 0.7, 0.6 recommended, against endless repetition; top_p 0.95 as in its benchmarks.
	{names: []string{"deepseek-r1", "r1-"}, thinking: sampled(0.6, 0.95, 0), plain: sampled(0.6, 0.95, 0),
		caution: "its card advises against a system prompt"},
	// HF Qwen/QwQ-32B: 0.6 and 0.95 instead of greedy decoding, to avoid endless repetition.
	{names: []string{"qwq"}, thinking: sampled(0.6, 0.95, 40), plain: sampled(0.6, 0.95, 40), caution: "greedy decoding repeats"},
	// HF Qwen/Qwen3-8B, best practices: thinking 0.6/0.95/20, otherwise 0.7/0.8/20, min_p 0; "DO NOT use greedy decoding". Its
	// packaged values in Ollama are those of thinking (ollama#17889).
	{names: []string{"qwen3"}, thinking: sampled(0.6, 0.95, 20), plain: sampled(0.7, 0.8, 20), caution: "greedy decoding while thinking repeats"},
	// generation_config of Qwen/Qwen2.5-7B-Instruct: 0.7/0.8/20.
	{names: []string{"qwen2", "qwen"}, plain: sampled(0.7, 0.8, 20)},
	// HF google/gemma-4 and generation_config of gemma-3: 1.0/0.95/64.
	{names: []string{"gemma"}, thinking: sampled(1, 0.95, 64), plain: sampled(1, 0.95, 64),
		caution: "gemma4 was seen repeating inside JSON strings (vllm#40080): keep maxLength short"},
	// HF mistralai/Magistral-Small-2506: 0.7/0.95.
	{names: []string{"magistral"}, thinking: sampled(0.7, 0.95, 0), plain: sampled(0.7, 0.95, 0)},
	// HF mistralai/Mistral-Small-3.2-24B-Instruct-2506: "a relatively low temperature, such as temperature=0.15"; Devstral the same.
	{names: []string{"mistral-small", "devstral", "ministral", "mistral3"}, plain: sampled(0.15, 0, 0)},
	// HF microsoft/Phi-4-reasoning: 0.8/0.95/50.
	{names: []string{"phi4-reasoning", "phi4-mini-reasoning"}, thinking: sampled(0.8, 0.95, 50), plain: sampled(0.8, 0.95, 50)},
	// generation_config of meta-llama/Llama-3.1-8B-Instruct and Llama-3.3-70B-Instruct: 0.6/0.9.
	{names: []string{"llama"}, plain: sampled(0.6, 0.9, 0)},
}

// harmony is gpt-oss. README of github.com/openai/gpt-oss, "Recommended sampling parameters": temperature 1.0, top_p 1.0.
// Levels: server/routes.go of Ollama 0.17.4 takes strings for harmony models only; with think:false it still reasons
// (ollama#11691).
var harmony = family{names: []string{"gptoss", "gpt-oss"}, thinking: sampled(1, 1, 0), plain: sampled(1, 1, 0), levels: true,
	caution: "it cannot switch thinking off"}

// familyOf finds the family of a model; the zero family knows nothing. A name says more than an architecture: many models
// of others are built like a llama.
func familyOf(m ollama.Model) family {
	if arch := strings.ToLower(m.Family); strings.HasPrefix(arch, "gptoss") || strings.HasPrefix(arch, "gpt-oss") {
		return harmony // whatever its name: nothing else speaks harmony
	}
	name := strings.ToLower(ollama.Name(m.Name))
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, f := range families {
		for _, prefix := range f.names {
			if strings.HasPrefix(name, prefix) {
				return f
			}
		}
	}
	for _, f := range families {
		for _, prefix := range f.names {
			if prefix != "llama" && strings.HasPrefix(strings.ToLower(m.Family), prefix) {
				return f
			}
		}
	}
	return family{}
}

// fill puts the family's values where a request and the model's own parameters, as /api/show lists them, leave them open.
func (s settings) fill(to *ollama.Sampling, own map[string][]string) {
	open := func(name string) bool { return len(own[name]) == 0 }
	if to.Temperature == nil && open("temperature") {
		to.Temperature = s.temperature
	}
	if to.TopP == nil && open("top_p") {
		to.TopP = s.topP
	}
	if to.TopK == nil && open("top_k") {
		to.TopK = s.topK
	}
}
