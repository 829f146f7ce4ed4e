package calls

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// small are the usual models with a vocabulary that is quickly read.
func small() []ollamatest.Model {
	models := ollamatest.SmallPresets()
	for i := range models {
		models[i].Vocab = 1000
	}
	return models
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// valueOf asks a model for a value as a worker does, over modes that are found out.
func valueOf(t *testing.T, c *ollama.Client, models *Models, change func(*GenerateRequest)) Outcome {
	t.Helper()
	r := GenerateRequest{Common: common(), Prompt: document, Schema: json.RawMessage(itemSchema)}
	r.Models = models
	if change != nil {
		change(&r)
	}
	return Generate(t.Context(), c, r)
}

func kindOfModel(name string, kind ollamatest.Kind) ollamatest.Model {
	m := ollamatest.Model{Name: name, Preset: "qwen3:8b", Kind: kind, Vocab: 1000}
	if kind == ollamatest.KindHarmony {
		m.Family = "gptoss"
	}
	return m
}

// Status 200, done, done_reason, parse, schema and code: each of these fails alone, and none of them makes a value.
func TestEachConditionOfSuccessFailsAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   ollamatest.FaultKind
		kind    Kind
		word    string
		reprobe bool
	}{
		{"free text with status 200", ollamatest.TextForValue, TextInsteadOfStructure, "no value", true},
		{"empty content although it stopped", ollamatest.EmptyTurn, EmptyTurn, "nothing", true},
		{"thoughts and no content", ollamatest.ThinkingOnly, EmptyTurn, "nothing", true},
		{"cut at the limit", ollamatest.Truncated, Truncated, "limit", false},
		{"31 equal tokens: 200 and not done", ollamatest.RepeatAbort, StreamBroken, "without done", false},
		{"valid JSON of another shape", ollamatest.SchemaViolation, SchemaViolation, "schema", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client := server(t, ollamatest.Config{Models: small(), Faults: []ollamatest.Fault{{Kind: c.fault, Probability: 1}}})
			models := NewModels(quiet())
			out := valueOf(t, client, models, nil)
			if out.Kind != c.kind || out.Value != nil || !strings.Contains(out.Message, c.word) || out.Kind.Advice() != Changed {
				t.Errorf("%s %q value %s, want %s about %q", out.Kind, out.Message, out.Value, c.kind, c.word)
			}
			s.SetFaults()
			before := len(s.Probes())
			if out := valueOf(t, client, models, nil); out.Kind != OK {
				t.Errorf("the next: %s %q", out.Kind, out.Message)
			}
			if probed := len(s.Probes()) > before; probed != c.reprobe {
				t.Errorf("the next call probed: %v, want %v", probed, c.reprobe)
			}
		})
	}
}

// A value in the wrong field is the model's answer all the same, but the way is looked for anew.
func TestAValueAmongThoughtsCountsAndIsDoubted(t *testing.T) {
	s, client := server(t, ollamatest.Config{Models: small(), Faults: []ollamatest.Fault{{Kind: ollamatest.MisplacedValue, Probability: 1}}})
	models := NewModels(quiet())
	out := valueOf(t, client, models, nil)
	if out.Kind != OK || out.Value == nil || !slices.Contains(out.Notes, "value came as thinking") {
		t.Errorf("%s %q value %s, notes %q", out.Kind, out.Message, out.Value, out.Notes)
	}
	valueOf(t, client, models, nil)
	if n := probesOf(s); n != 2 {
		t.Errorf("%d probes, want 2", n)
	}
}

func probesOf(s *ollamatest.Server) int { return len(s.Probes()) }

// Whatever the kind of model, its values come: on the way that the probe found, without a second probe.
func TestEveryKindOfModelGivesValues(t *testing.T) {
	for kind, want := range map[ollamatest.Kind]string{
		ollamatest.KindPlain: "/api/generate off", ollamatest.KindTemplate: "/api/generate off", ollamatest.KindParser: "/api/generate off",
		ollamatest.KindHarmony: "/api/chat low", ollamatest.KindNative: "/api/generate off",
	} {
		t.Run(string(kind), func(t *testing.T) {
			s, client := server(t, ollamatest.Config{Models: []ollamatest.Model{kindOfModel("m", kind)}})
			models := NewModels(quiet())
			probed := 0
			for i := range 2 {
				out := valueOf(t, client, models, func(r *GenerateRequest) { r.Model = "m"; r.Options.Think = ollama.ThinkOn })
				r := out.Report()
				if got := r.Endpoint + " " + string(r.Think); out.Kind != OK || got != want || !r.Mode.Applied() || r.Mode.ServerVersion != "0.17.4" {
					t.Errorf("%s %q by %s in %+v, want %s", out.Kind, out.Message, got, r.Mode, want)
				}
				if i == 0 {
					probed = len(s.Probes())
				}
			}
			if len(s.Probes()) != probed {
				t.Errorf("probed twice: %d tries", len(s.Probes()))
			}
		})
	}
}

// A level that was asked for holds where the mode needs one.
func TestTheLevelOfThinkingIsTheRequests(t *testing.T) {
	_, client := server(t, ollamatest.Config{Models: []ollamatest.Model{kindOfModel("m", ollamatest.KindHarmony)}})
	out := valueOf(t, client, NewModels(quiet()), func(r *GenerateRequest) { r.Model = "m"; r.Options.Think = ollama.ThinkHigh })
	if r := out.Report(); out.Kind != OK || r.Think != ollama.ThinkHigh || r.Mode.Think != ollama.ThinkLow {
		t.Errorf("%s %q, think %q", out.Kind, out.Message, r.Think)
	}
}

// A server that applies no format is asked with one all the same, and what comes counts only where the schema accepts it.
func TestWithoutAModeValuesAreTakenOutOfText(t *testing.T) {
	s, client := server(t, ollamatest.Config{Models: []ollamatest.Model{kindOfModel("m", ollamatest.KindNoGrammar)}})
	models := NewModels(quiet())
	out := valueOf(t, client, models, func(r *GenerateRequest) { r.Model = "m" })
	r := out.Report()
	calls := s.Calls()
	if out.Kind != TextInsteadOfStructure || !r.Mode.None || r.Endpoint != "/api/generate" || calls[len(calls)-1].Format == "" {
		t.Errorf("%s in %+v, sent %+v", out.Kind, r.Mode, calls[len(calls)-1])
	}
	o := &scripted{answers: []string{"Here you are:\n```json\n{\"summary\":\"s\",\"points\":[]}\n```\nBye."}}
	written := GenerateRequest{Common: common(), Prompt: "x", Schema: json.RawMessage(itemSchema)}
	if out := Generate(t.Context(), o, written); out.Kind != OK || !slices.Contains(out.Notes, "taken out of text") {
		t.Errorf("%s %q", out.Kind, out.Message)
	}
}

// Thinking that uses up the limit leaves an empty answer, which is another thing than one that was cut.
func TestThinkingThatUsesUpTheLimit(t *testing.T) {
	_, client := server(t, ollamatest.Config{Models: []ollamatest.Model{kindOfModel("m", ollamatest.KindHarmony)}})
	out := valueOf(t, client, NewModels(quiet()), func(r *GenerateRequest) { r.Model = "m"; r.Options.NumPredict = 5 })
	if out.Kind != Truncated || out.Report().DoneReason != "length" || out.Turns[0].Raw != "" || !strings.Contains(out.Message, "thinking") {
		t.Errorf("%s %q, raw %q", out.Kind, out.Message, out.Turns[0].Raw)
	}
}

// The stop strings of a Modelfile must not cut a value: what is left of it can look whole once it is repaired.
func TestStopStringsDoNotCutValues(t *testing.T) {
	m := kindOfModel("m", ollamatest.KindPlain)
	m.Stop = []string{"summ", "pump"}
	_, client := server(t, ollamatest.Config{Models: []ollamatest.Model{m}})
	if out := valueOf(t, client, NewModels(quiet()), func(r *GenerateRequest) { r.Model = "m" }); out.Kind != OK {
		t.Errorf("%s %q", out.Kind, out.Message)
	}
	if out := Generate(t.Context(), client, GenerateRequest{Common: Common{Model: "m"}, Prompt: document}); strings.Contains(out.Text, "pump") {
		t.Errorf("the stand-in does not stop: %q", out.Text)
	}
	// Should a server cut all the same, the part is no value.
	cut := &scripted{answers: []string{`{"summary":"the pu`, `{"summary":"the pump","points":[]`}}
	for range 2 {
		r := GenerateRequest{Common: common(), Prompt: "x", Schema: json.RawMessage(itemSchema)}
		r.Models, r.Mode = NewModels(quiet()), modes.Mode{Endpoint: modes.Generate, Think: ollama.ThinkOff, Field: modes.Content, ServerVersion: "0"}
		if out := Generate(t.Context(), versioned{cut}, r); out.Value != nil || out.Kind == OK {
			t.Errorf("%s %q took %s", out.Kind, out.Message, out.Value)
		}
	}
}

// A server that cuts the prompt although it was told not to has not read the criteria.
func TestAPromptCutInSilence(t *testing.T) {
	for _, version := range []string{"0.17.4", "0.31.0"} {
		s, client := server(t, ollamatest.Config{Models: small(), Version: version, Faults: []ollamatest.Fault{{Kind: ollamatest.SilentCut, Probability: 1}}})
		models := NewModels(quiet())
		long := func(r *GenerateRequest) { r.Prompt = strings.Repeat(document+"\n", 300); r.Options.NumCtx = 2048 }
		out := valueOf(t, client, models, long)
		if out.Kind != InputTooLong || out.Value != nil || !strings.Contains(out.Message, "2048") {
			t.Errorf("%s, a value: %s %q", version, out.Kind, out.Message)
		}
		text := GenerateRequest{Common: common(), Prompt: "x"}
		long(&text)
		if out := Generate(t.Context(), client, text); out.Kind != InputTooLong {
			t.Errorf("%s, a text: %s %q", version, out.Kind, out.Message)
		}
		if out := valueOf(t, client, models, nil); out.Kind != OK {
			t.Errorf("%s, a prompt that fits: %s %q", version, out.Kind, out.Message)
		}
		if n := probesOf(s); n != 1 {
			t.Errorf("%s: %d probes", version, n)
		}
	}
	// A prompt that fits and by chance has about half of the context is no cut one: English has four bytes a token.
	req := ollama.Request{Prompt: strings.Repeat("word ", 1026), Sampling: ollama.Sampling{NumCtx: 2048}}
	if f := cutSilently(1026, req, 0); f != nil {
		t.Errorf("%+v", f)
	}
	if f := cutSilently(0, req, 0); f != nil {
		t.Errorf("a count that nobody gave: %+v", f)
	}
	if f := cutSilently(1000, req, 1000); f == nil {
		t.Error("a context that the model does not have was not taken into account")
	}
}

// What a coordinator has learned saves the probe, unless the server is another by now.
func TestAModeThatWasLearned(t *testing.T) {
	s, client := server(t, ollamatest.Config{Models: small()})
	learned := modes.Mode{Endpoint: modes.Chat, Think: ollama.ThinkOff, Field: modes.Content, ServerVersion: "0.17.4"}
	out := valueOf(t, client, NewModels(quiet()), func(r *GenerateRequest) { r.Mode = learned })
	if out.Kind != OK || out.Report().Endpoint != "/api/chat" || probesOf(s) != 0 {
		t.Errorf("%s %q by %s after %d probes", out.Kind, out.Message, out.Report().Endpoint, probesOf(s))
	}
	learned.ServerVersion = "0.16.0"
	out = valueOf(t, client, NewModels(quiet()), func(r *GenerateRequest) { r.Mode = learned })
	if out.Kind != OK || out.Report().Endpoint != "/api/generate" || probesOf(s) != 1 {
		t.Errorf("%s %q by %s after %d probes", out.Kind, out.Message, out.Report().Endpoint, probesOf(s))
	}
}

// A load that the probe took is the call's: people see what they waited for, and the pace is learned from it.
func TestTheLoadOfAProbeCounts(t *testing.T) {
	_, client := server(t, ollamatest.Config{Models: small(), LoadLatency: 30e6})
	out := valueOf(t, client, NewModels(quiet()), nil)
	if d := out.Report().Counts.LoadDuration; out.Kind != OK || d < 30e6 {
		t.Errorf("%s, load %s", out.Kind, d)
	}
}

// Without an answer about the model, the call fails as it would have without a probe.
func TestAProbeThatFailsIsTheCallsFailure(t *testing.T) {
	for fault, kind := range map[ollamatest.FaultKind]Kind{ollamatest.HTTP503: Busy, ollamatest.HTTP500: ServerError, ollamatest.OutOfMemory: OutOfMemory} {
		_, client := server(t, ollamatest.Config{Models: small(), Faults: []ollamatest.Fault{{Kind: fault, Probability: 1, Contains: modes.Prompt}}})
		if out := valueOf(t, client, NewModels(quiet()), nil); out.Kind != kind || out.Kind.Advice() != OtherNode || len(out.Turns) != 1 {
			t.Errorf("%s: %s %q", fault, out.Kind, out.Message)
		}
	}
}

// versioned lets a scripted server say which it is.
type versioned struct{ *scripted }

func (versioned) Server(context.Context) (ollama.Server, error) {
	return ollama.Server{Version: "0"}, nil
}

func (versioned) Facts(context.Context, ollama.Model) (ollama.Facts, error) {
	return ollama.Facts{}, &ollama.Error{Kind: ollama.ServerError}
}
