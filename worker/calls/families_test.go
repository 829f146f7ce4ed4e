package calls

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// The values are those of the model cards and generation_config files that families.go names.
func TestFamiliesRecommend(t *testing.T) {
	for _, c := range []struct {
		name, family      string
		thinks            bool
		temperature, topP float64 // 0: left open
		topK              int
	}{
		{"qwen3:8b", "qwen3", true, 0.6, 0.95, 20},
		{"qwen3:8b", "qwen3", false, 0.7, 0.8, 20},
		{"qwen2.5-coder:7b", "qwen2", false, 0.7, 0.8, 20},
		{"deepseek-r1:8b", "qwen3", true, 0.6, 0.95, 0},
		{"gpt-oss:20b", "gptoss", true, 1, 1, 0},
		{"mine", "gptoss", true, 1, 1, 0},
		{"gemma3:12b", "gemma3", false, 1, 0.95, 64},
		{"mistral-small:24b", "llama", false, 0.15, 0, 0},
		{"hf.co/someone/Magistral-Small:Q4", "llama", true, 0.7, 0.95, 0},
		{"phi4-reasoning", "phi3", true, 0.8, 0.95, 50},
		{"llama3.3:70b", "llama", false, 0.6, 0.9, 0},
		{"somebodys:7b", "llama", false, 0, 0, 0},
		{"nobody", "unheard", true, 0, 0, 0},
	} {
		f := familyOf(ollama.Model{Name: c.name, Family: c.family})
		s, recommended := ollama.Sampling{}, f.plain
		if c.thinks {
			recommended = f.thinking
		}
		recommended.fill(&s, nil)
		if value(s.Temperature) != c.temperature || value(s.TopP) != c.topP || (s.TopK != nil) != (c.topK > 0) || s.TopK != nil && *s.TopK != c.topK {
			t.Errorf("%s (%s, thinks %v): %v %v %v", c.name, c.family, c.thinks, value(s.Temperature), value(s.TopP), s.TopK)
		}
		if f.levels != (c.family == "gptoss") {
			t.Errorf("%s: levels %v", c.name, f.levels)
		}
	}
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

// What a request or the Modelfile says wins over what the makers recommend.
func TestRecommendedValuesFillOnlyWhatIsOpen(t *testing.T) {
	hot := 1.3
	s := ollama.Sampling{Temperature: &hot}
	familyOf(ollama.Model{Name: "qwen3:8b"}).thinking.fill(&s, map[string][]string{"top_p": {"0.5"}})
	if *s.Temperature != 1.3 || s.TopP != nil || s.TopK == nil || *s.TopK != 20 {
		t.Errorf("%+v", s)
	}
}

// A call that is to think first does so where the model can, with the values for that; others are left as they are.
func TestFreeCallsThinkWhereTheyCan(t *testing.T) {
	_, client := server(t, ollamatest.Config{Memory: 80 << 30, Models: []ollamatest.Model{
		kindOfModel("qwen3:thinker", ollamatest.KindTemplate), kindOfModel("gpt-oss:any", ollamatest.KindHarmony), {Name: "llama3.2:3b", Vocab: 1000}}})
	models := NewModels(quiet())
	for _, c := range []struct {
		model       string
		thinks      bool
		asked       ollama.Think
		sent        ollama.Think
		temperature float64
	}{
		{"qwen3:thinker", true, "", ollama.ThinkOn, 0.6},
		{"qwen3:thinker", false, "", "", 0.6}, // it thinks by itself
		{"qwen3:thinker", true, ollama.ThinkOff, ollama.ThinkOff, 0.7},
		{"gpt-oss:any", true, "", ollama.ThinkMedium, 1},
		{"gpt-oss:any", true, ollama.ThinkHigh, ollama.ThinkHigh, 1},
		{"llama3.2:3b", true, "", "", 0.6},
	} {
		r := turnRequest{common: Common{Model: c.model, Models: models, Options: Options{Think: c.asked}}, prompt: document, thinks: c.thinks}
		out := generateText(t.Context(), client, r)
		if got := out.Report(); out.Kind != OK || got.Think != c.sent || value(got.Sampling.Temperature) != c.temperature || got.Endpoint != "/api/chat" {
			t.Errorf("%s, to think %v, asked %q: %s %s, think %q, temperature %v", c.model, c.thinks, c.asked, out.Kind, out.Message, got.Think, value(got.Sampling.Temperature))
		}
	}
}

// Without room for thoughts a value of a model that always thinks would never come.
func TestAModeThatThinksHasRoom(t *testing.T) {
	r := turnRequest{budget: 350, format: []byte("{}")}
	if n := r.sampling(knowledge{}, ollama.ThinkOff).NumPredict; n != 350 {
		t.Errorf("%d", n)
	}
	if n := r.sampling(knowledge{}, ollama.ThinkLow).NumPredict; n != 350+thinkingRoom {
		t.Errorf("%d", n)
	}
	r.common.Options.NumPredict = 99
	if n := r.sampling(knowledge{}, ollama.ThinkLow).NumPredict; n != 99 {
		t.Errorf("what was asked for became %d", n)
	}
}

// A schema that needs more than the usual limit gets it; one that needs less, or leaves bounds open, keeps the usual one.
func TestALargeSchemaHasRoom(t *testing.T) {
	_, client := server(t, ollamatest.Config{Models: small()})
	for schema, want := range map[string]int{
		itemSchema: defaultNumPredict,
		`{"type":"array","maxItems":40,"items":{"type":"string","maxLength":900}}`: 14000,
	} {
		out := valueOf(t, client, NewModels(quiet()), func(r *GenerateRequest) { r.Schema = []byte(schema); r.Options.NumCtx = 32768 })
		if n := out.Report().Sampling.NumPredict; out.Kind != OK || n < want || n > 2*want {
			t.Errorf("%s: %s %q with %d tokens, want %d or somewhat more", schema, out.Kind, out.Message, n, want)
		}
	}
}
