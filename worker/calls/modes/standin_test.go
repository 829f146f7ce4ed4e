package modes

import (
	"context"
	"log/slog"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// asking returns how a client is asked, and the names of the ways that were tried.
func asking(c *ollama.Client, tried *[]string) Ask {
	return func(ctx context.Context, endpoint string, r ollama.Request) (ollama.Reply, error) {
		*tried = append(*tried, endpoint+"/"+string(r.Think))
		if endpoint == Chat {
			return c.Chat(ctx, r, nil)
		}
		return c.Generate(ctx, r, nil)
	}
}

// The table of research: judgement §2.1: which way the probe has to end up with for each kind of model.
func TestEveryKindOfModelHasItsWay(t *testing.T) {
	model := func(kind ollamatest.Kind) ollamatest.Model {
		m := ollamatest.Model{Name: string(kind), Preset: "qwen3:8b", Kind: kind, Vocab: 1000}
		switch kind {
		case ollamatest.KindPlain, ollamatest.KindNative, ollamatest.KindNoGrammar:
			m.Capabilities = []string{"completion"}
		case ollamatest.KindHarmony:
			m.Family = "gptoss"
		}
		return m
	}
	for _, c := range []struct {
		name, version string
		kind          ollamatest.Kind
		want          Mode
		tried         int
	}{
		{"plain", "0.17.4", ollamatest.KindPlain, Mode{Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, Ordered: true}, 1},
		{"template", "0.17.4", ollamatest.KindTemplate, Mode{Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, Ordered: true}, 1},
		{"parser", "0.17.4", ollamatest.KindParser, Mode{Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, Ordered: true}, 1},
		{"harmony", "0.17.4", ollamatest.KindHarmony, Mode{Endpoint: Chat, Think: ollama.ThinkLow, Field: Content, Ordered: true}, 3},
		{"sorted keys", "0.30.5", ollamatest.KindNative, Mode{Endpoint: Generate, Think: ollama.ThinkOff, Field: Content}, 1},
		{"no way", "0.17.4", ollamatest.KindNoGrammar, Mode{Endpoint: Generate, Think: ollama.ThinkOff, Field: Content, None: true}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ollamatest.New(ollamatest.Config{Version: c.version, Memory: 80 << 30, Models: []ollamatest.Model{model(c.kind)}})
			client, err := ollama.New(ollama.Options{BaseURL: s.Start(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			var tried []string
			target := Target{Name: string(c.kind), Digest: "d", NumCtx: 512, Levels: c.kind == ollamatest.KindHarmony}
			got, err := NewBook(slog.New(slog.DiscardHandler)).Find(t.Context(), c.version, target, Mode{}, asking(client, &tried))
			if err != nil {
				t.Fatal(err)
			}
			c.want.ServerVersion, c.want.Time = c.version, got.Time
			if got != c.want || got.Time.IsZero() || len(tried) != c.tried {
				t.Errorf("found %+v by %v, want %+v by %d tries", got, tried, c.want, c.tried)
			}
			if len(s.Probes()) != c.tried || len(s.Calls()) != 0 {
				t.Errorf("%d probes and %d calls in the log", len(s.Probes()), len(s.Calls()))
			}
			for _, call := range s.Probes() {
				if budget := call.Options["num_predict"].(float64); budget > 20 && call.Endpoint == Generate || budget > 300 || call.Options["num_ctx"] != 512.0 {
					t.Errorf("a probe with options %v", call.Options)
				}
			}
		})
	}
}

// Each of the conditions of success fails alone (research: judgement §0.3).
func TestWhatIsNoSuccess(t *testing.T) {
	n := nonces{first: 123, second: 456}
	stop := func(text string) ollama.Reply { return ollama.Reply{Text: text, DoneReason: "stop"} }
	for name, r := range map[string]ollama.Reply{
		"free text":           stop("Here is the form."),
		"another number":      stop(`{"b":123,"a":457}`),
		"swapped":             stop(`{"b":456,"a":123}`),
		"one missing":         stop(`{"b":123}`),
		"a key more":          stop(`{"b":123,"a":456,"c":1}`),
		"text behind":         stop(`{"b":123,"a":456} done`),
		"a bracket behind":    stop(`{"b":123,"a":456}}`),
		"text before":         stop(`Sure: {"b":123,"a":456}`),
		"a number as text":    stop(`{"b":"123","a":"456"}`),
		"cut, whole or not":   {Text: `{"b":123,"a":456}`, DoneReason: "length"},
		"no done reason":      {Text: `{"b":123,"a":456}`},
		"nothing":             stop(""),
		"only thoughts":       {Thinking: "let me see", DoneReason: "stop"},
		"thoughts and a word": {Thinking: `{"b":123,"a":456}`, Text: "ok", DoneReason: "stop"},
	} {
		if field, _, ok := n.arrived(r); ok {
			t.Errorf("%s: taken, in %s", name, field)
		}
	}
	for name, c := range map[string]struct {
		r       ollama.Reply
		field   string
		ordered bool
	}{
		"as asked":    {stop("{\n  \"b\": 123,\n  \"a\": 456\n}\n"), Content, true},
		"sorted":      {stop(`{"a":456,"b":123}`), Content, false},
		"as thinking": {ollama.Reply{Thinking: `{"b":123,"a":456}`, DoneReason: "stop"}, Thinking, true},
	} {
		if field, ordered, ok := n.arrived(c.r); !ok || field != c.field || ordered != c.ordered {
			t.Errorf("%s: %v in %q, ordered %v", name, ok, field, ordered)
		}
	}
}

func TestTheStandInKnowsTheProbe(t *testing.T) {
	if Prompt != ollamatest.ProbePrompt {
		t.Errorf("the stand-in takes %q for a probe", ollamatest.ProbePrompt)
	}
}
