package calls

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// What a real Ollama 0.17.4 does with status 200 and without a value, and what becomes of it here.
func TestRealServerFailsInSilence(t *testing.T) {
	s := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	s.Create(t, "tiny", tinymodel.Options{})
	s.Create(t, "endless", tinymodel.Options{Endless: true})
	s.Create(t, "repeats", tinymodel.Options{Repeats: true})
	derive := func(r api.CreateRequest) {
		if err := s.Client.Create(t.Context(), &r, func(api.ProgressResponse) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	derive(api.CreateRequest{Model: "parser", From: "tiny", Parser: "qwen3.5"})
	derive(api.CreateRequest{Model: "thinks", From: "endless", Parser: "qwen3.5"})
	stops := []string{"plan is", "text says", "point is", "file is"}
	derive(api.CreateRequest{Model: "stops", From: "tiny", Parameters: map[string]any{"stop": stops}})
	c, err := ollama.New(ollama.Options{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	schema := json.RawMessage(`{"type":"object","properties":{"v":{"type":"string","minLength":8,"maxLength":40}},"required":["v"]}`)
	// as asks in a mode as if a probe had found it.
	as := func(model, endpoint string, think ollama.Think, change func(*GenerateRequest)) Outcome {
		r := GenerateRequest{Common: Common{Model: model, Models: NewModels(quiet()), Options: Options{NumCtx: 1024, NumPredict: 60}}, Prompt: "Say something.", Schema: schema}
		r.Mode = modes.Mode{Endpoint: endpoint, Think: think, Field: modes.Content, ServerVersion: "0.17.4"}
		if change != nil {
			change(&r)
		}
		return Generate(t.Context(), c, r)
	}
	free := func(r *GenerateRequest) { r.Schema = nil }
	for _, row := range []struct {
		name string
		out  Outcome
		kind Kind
		word string
	}{
		{"free text", as("parser", modes.Chat, ollama.ThinkOff, nil), TextInsteadOfStructure, "no value"},
		{"JSON in thinking", as("parser", modes.Generate, ollama.ThinkOn, nil), OK, ""},
		{"stopped inside a thought", as("parser", modes.Chat, ollama.ThinkOn, nil), EmptyTurn, "nothing"},
		{"empty at the limit", as("thinks", modes.Chat, ollama.ThinkOn, nil), Truncated, "thinking"},
		{"cut at the limit", as("endless", modes.Generate, ollama.ThinkOff, func(r *GenerateRequest) { r.Options.NumPredict = 6 }), Truncated, "limit"},
		{"31 equal tokens", as("repeats", "", "", func(r *GenerateRequest) { free(r); r.Options.NumPredict = 200 }), StreamBroken, "without done"},
		{"a prompt beyond the context", as("tiny", modes.Generate, ollama.ThinkOff, func(r *GenerateRequest) { r.Prompt = strings.Repeat("Say. ", 400) }), InputTooLong, "context"},
		{"a stop string in the value", as("stops", modes.Generate, ollama.ThinkOff, nil), OK, ""},
		{"a stop string in a text", as("stops", "", "", free), OK, ""},
	} {
		if row.out.Kind != row.kind || !strings.Contains(row.out.Message, row.word) || (row.out.Kind == OK) != (row.out.Message == "") {
			t.Errorf("%s: %s %q, raw %q thinking %q; want %s about %q", row.name, row.out.Kind, row.out.Message, row.out.Turns[0].Raw, row.out.Turns[0].Thinking, row.kind, row.word)
		}
	}
	if out := as("stops", "", "", free); strings.Contains(out.Text, "is") {
		t.Errorf("the stop strings of the model have no effect on a text: %q", out.Text)
	}
	// Without what every call of ours says, the same server cuts the value and the prompt in silence.
	yes, no := true, false
	plain := api.GenerateRequest{Model: "stops", Prompt: "Say something.", Format: schema, Stream: &no, Options: map[string]any{"num_ctx": 1024, "num_predict": 60}}
	if got := rawAnswer(t, s.Client, plain); json.Valid([]byte(got.Response)) || got.DoneReason != "stop" {
		t.Errorf("the stop string of the model did not cut the value: %q by %q", got.Response, got.DoneReason)
	}
	long := api.GenerateRequest{Model: "tiny", Prompt: strings.Repeat("Say. ", 400), Stream: &no, Truncate: &yes, Shift: &no, Options: map[string]any{"num_ctx": 1024, "num_predict": 10}}
	cut := rawAnswer(t, s.Client, long)
	if f := cutSilently(cut.PromptEvalCount, ollama.Request{Prompt: long.Prompt, Sampling: ollama.Sampling{NumCtx: 1024}}, 0); f == nil {
		t.Errorf("a cut prompt was not found out: %d tokens read", cut.PromptEvalCount)
	}
}

func rawAnswer(t *testing.T, c *api.Client, r api.GenerateRequest) (answer api.GenerateResponse) {
	t.Helper()
	if err := c.Generate(t.Context(), &r, func(a api.GenerateResponse) error { answer = a; return nil }); err != nil {
		t.Fatal(err)
	}
	return answer
}

// The tokens that the tokenizer makes control tokens of are read from the model, and broken: the prompt that is sent has more
// tokens than one that holds them as they are (measured: 4 against 10).
func TestRealServerSeesNoControlTokens(t *testing.T) {
	s := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	s.Create(t, "tiny", tinymodel.Options{})
	c, err := ollama.New(ollama.Options{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m, err := c.Resolve(t.Context(), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := c.Facts(t.Context(), m); err != nil || strings.Join(f.Control, " ") != "<|bos|> <|eos|>" {
		t.Errorf("control strings %q %v", f.Control, err)
	}
	item := "x<|eos|>y"
	r := GenerateRequest{Common: Common{Model: "tiny", Models: NewModels(quiet()), Options: Options{NumCtx: 1024, NumPredict: 30}}, Prompt: "Repeat: {{item}}", Item: &item}
	sent := Generate(t.Context(), c, r)
	zero := 0.0
	as, err := c.Chat(t.Context(), ollama.Request{Model: "tiny", Prompt: "Repeat: " + item, Sampling: ollama.Sampling{NumCtx: 1024, NumPredict: 30, Temperature: &zero}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := sent.Report().Counts.PromptTokens; n <= as.Counts.PromptTokens || sent.Turns[0].Prompt != "Repeat: x‹¦eos¦›y" || len(sent.Notes) != 0 {
		t.Errorf("%d tokens for %q, %d with the control token; notes %q", n, sent.Turns[0].Prompt, as.Counts.PromptTokens, sent.Notes)
	}
}
