package calls

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/calls/plan"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

const itemSchema = `{"type":"object","properties":{"summary":{"type":"string","minLength":1,"maxLength":200},"points":{"type":"array","items":{"type":"string"},"maxItems":3}},"required":["summary","points"]}`

const document = "The pump ran for twelve hours. It failed at night because a seal was worn. The seal was replaced in the morning."

func server(t *testing.T, cfg ollamatest.Config) (*ollamatest.Server, *ollama.Client) {
	t.Helper()
	s := ollamatest.New(cfg)
	c, err := ollama.New(ollama.Options{BaseURL: s.Start(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s, c
}

func common() Common { return Common{Model: "qwen3:8b", Options: Options{NumCtx: 4096, Seed: 7}} }

func TestGenerateValue(t *testing.T) {
	s, c := server(t, ollamatest.Config{})
	item := document
	var tokens []int
	r := GenerateRequest{Common: common(), Prompt: "Summarise {{item}}", Item: &item, Schema: json.RawMessage(itemSchema)}
	r.Progress = func(n int) { tokens = append(tokens, n) }
	out := Generate(t.Context(), c, r)
	if out.Kind != OK {
		t.Fatalf("%s: %s %v", out.Kind, out.Message, out.Reasons)
	}
	var value struct{ Summary string }
	if err := json.Unmarshal(out.Value, &value); err != nil || value.Summary == "" {
		t.Errorf("value %s: %v", out.Value, err)
	}
	if len(tokens) == 0 || !slices.IsSorted(tokens) || tokens[0] != 1 {
		t.Errorf("progress %v", tokens)
	}
	report := out.Report()
	m, err := c.Resolve(t.Context(), "qwen3:8b")
	if err != nil {
		t.Fatal(err)
	}
	if report.Digest != m.Digest || report.Endpoint != "/api/generate" || report.Think != ollama.ThinkOff || report.DoneReason != "stop" ||
		report.Counts.PromptTokens == 0 || report.Counts.OutputTokens == 0 || report.Counts.EvalDuration == 0 {
		t.Errorf("report %+v", report)
	}
	call := s.Calls()[0]
	want := map[string]any{"num_ctx": 4096.0, "num_predict": 4096.0, "seed": 7.0, "temperature": 0.0, "repeat_penalty": 1.0}
	for key, v := range want {
		if call.Options[key] != v {
			t.Errorf("option %s is %v, want %v", key, call.Options[key], v)
		}
	}
	if call.Prompt != out.Turns[0].Prompt || call.Format != string(out.Turns[0].Format) || !strings.Contains(call.Prompt, document) {
		t.Errorf("the turn does not show what was sent: %+v", call)
	}
}

// recorder keeps the bodies of what is sent.
type recorder struct{ bodies []map[string]any }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		body := map[string]any{}
		copied, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if err := json.NewDecoder(copied).Decode(&body); err != nil {
			return nil, err
		}
		r.bodies = append(r.bodies, body)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Without these Ollama cuts the prompt silently, shifts the window, or runs to ten times the context.
func TestEveryCallRefusesToBeCut(t *testing.T) {
	s := ollamatest.New(ollamatest.Config{})
	seen := &recorder{}
	c, err := ollama.New(ollama.Options{BaseURL: s.Start(t), Transport: seen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	Generate(t.Context(), c, GenerateRequest{Common: common(), Prompt: "Say something."})
	Generate(t.Context(), c, GenerateRequest{Common: common(), Prompt: "Say something.", Schema: json.RawMessage(itemSchema)})
	Plan(t.Context(), c, PlanRequest{Common: common(), Task: plan.Task{Goal: "Write a report."}})
	Evaluate(t.Context(), c, EvaluateRequest{Common: common(), Criteria: []Criterion{{Text: "It is a report."}}, Subject: document})
	Embed(t.Context(), c, EmbedRequest{Model: "nomic-embed-text", Texts: []string{"a"}, NumCtx: 512})
	if len(seen.bodies) != 7 { // a plan and a judge think first
		t.Fatalf("%d requests, want 7", len(seen.bodies))
	}
	for i, b := range seen.bodies {
		embeds := i == len(seen.bodies)-1
		if b["truncate"] != false || (!embeds && b["shift"] != false) || b["keep_alive"] != "10m0s" {
			t.Errorf("request %d: truncate %v, shift %v, keep_alive %v", i, b["truncate"], b["shift"], b["keep_alive"])
		}
		options := b["options"].(map[string]any)
		if options["num_ctx"] == nil || (!embeds && options["num_predict"] == nil) {
			t.Errorf("request %d: options %v", i, options)
		}
	}
}

func TestGenerateText(t *testing.T) {
	_, c := server(t, ollamatest.Config{})
	var text strings.Builder
	out := Generate(t.Context(), c, GenerateRequest{Common: common(), Prompt: "Summarise: " + document, OnText: func(s string) { text.WriteString(s) }})
	if out.Kind != OK || out.Text == "" || out.Value != nil || text.String() != out.Turns[0].Raw || out.Report().Endpoint != "/api/chat" {
		t.Errorf("%+v", out)
	}
	if out.Turns[0].Thinking == "" || strings.Contains(out.Text, out.Turns[0].Thinking) {
		t.Errorf("thoughts %q in text %q", out.Turns[0].Thinking, out.Text)
	}
}

// Each fault of a real server ends in the kind that says what helps.
func TestFaultsBecomeKinds(t *testing.T) {
	for _, c := range []struct {
		fault  ollamatest.FaultKind
		kind   Kind
		advice Advice
	}{
		{ollamatest.EmptyTurn, EmptyTurn, Changed},
		{ollamatest.ThinkingOnly, EmptyTurn, Changed},
		{ollamatest.TextForValue, TextInsteadOfStructure, Changed},
		{ollamatest.SchemaViolation, SchemaViolation, Changed},
		{ollamatest.Truncated, Truncated, Changed},
		{ollamatest.StreamBroken, StreamBroken, Changed},
		{ollamatest.ConnectionReset, StreamBroken, Changed},
		{ollamatest.HTTP500, ServerError, OtherNode},
		{ollamatest.HTTP503, Busy, OtherNode},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			_, client := server(t, ollamatest.Config{Faults: []ollamatest.Fault{{Kind: c.fault, Probability: 1}}})
			out := Generate(t.Context(), client, GenerateRequest{Common: common(), Prompt: document, Schema: json.RawMessage(itemSchema)})
			if out.Kind != c.kind || out.Kind.Advice() != c.advice || out.Value != nil || out.Message == "" {
				t.Errorf("%s (%s) %q value %s, want %s (%s)", out.Kind, out.Kind.Advice(), out.Message, out.Value, c.kind, c.advice)
			}
			if len(out.Turns) != 1 || out.Turns[0].Prompt == "" {
				t.Errorf("the failed turn was not kept: %+v", out.Turns)
			}
		})
	}
}

func TestRequestsThatCannotSucceed(t *testing.T) {
	s, c := server(t, ollamatest.Config{})
	large := json.RawMessage(`{"type":"object","description":"` + strings.Repeat("word ", 20000) + `"}`)
	with := func(change func(*GenerateRequest)) Outcome {
		r := GenerateRequest{Common: common(), Prompt: document}
		change(&r)
		return Generate(t.Context(), c, r)
	}
	for name, out := range map[string]struct {
		got  Outcome
		kind Kind
		word string
	}{
		"unknown model":                    {with(func(r *GenerateRequest) { r.Model = "none:1b" }), ModelMissing, "none:1b"},
		"another digest":                   {with(func(r *GenerateRequest) { r.Digest = "abc" }), ModelMissing, "digest"},
		"too long":                         {with(func(r *GenerateRequest) { r.Prompt = strings.Repeat("word ", 20000) }), InputTooLong, "context"},
		"unknown placeholder":              {with(func(r *GenerateRequest) { r.Prompt = "{{file}}" }), BadRequest, "{{file}}"},
		"empty prompt":                     {with(func(r *GenerateRequest) { r.Prompt = " " }), BadRequest, "empty"},
		"bad schema":                       {with(func(r *GenerateRequest) { r.Schema = json.RawMessage(`{"type":"strin"}`) }), BadSchema, "/type"},
		"a schema for nothing":             {with(func(r *GenerateRequest) { r.Schema = json.RawMessage(`{"enum":[]}`) }), BadSchema, "enum"},
		"a schema of itself":               {with(func(r *GenerateRequest) { r.Schema = json.RawMessage(`{"$ref":"#"}`) }), BadSchema, "itself"},
		"a schema that contradicts itself": {with(func(r *GenerateRequest) { r.Schema = json.RawMessage(`{"type":"string","minLength":3,"maxLength":1}`) }), BadSchema, "minLength"},
		"a schema too deep": {with(func(r *GenerateRequest) {
			r.Schema = json.RawMessage(strings.Repeat(`{"properties":{"a":`, 65) + `{}` + strings.Repeat("}}", 65))
		}), BadSchema, "deeper"},
		"a schema too large": {with(func(r *GenerateRequest) { r.Schema = large }), BadSchema, "the schema takes"},
		"a document too large for a schema": {with(func(r *GenerateRequest) {
			r.Schema, r.Prompt = json.RawMessage(itemSchema), strings.Repeat("word ", 20000)
		}), InputTooLong, "context"},
		"a level for a model without levels": {with(func(r *GenerateRequest) { r.Options.Think = ollama.ThinkHigh }), BadRequest, "think"},
		"an embedding model":                 {with(func(r *GenerateRequest) { r.Model = "nomic-embed-text" }), BadRequest, "support"},
	} {
		if out.got.Kind != out.kind || !strings.Contains(out.got.Message, out.word) || (out.kind != ModelMissing && out.got.Kind.Advice() != Never) {
			t.Errorf("%s: %s %q (%s), want %s about %q", name, out.got.Kind, out.got.Message, out.got.Kind.Advice(), out.kind, out.word)
		}
	}
	for _, call := range s.Calls() {
		if strings.Contains(call.Format, "strin\"") {
			t.Error("a bad schema was sent")
		}
	}
}

func TestUnreachable(t *testing.T) {
	c, err := ollama.New(ollama.Options{BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if out := Generate(t.Context(), c, GenerateRequest{Common: common(), Prompt: "x"}); out.Kind != OllamaUnreachable || out.Kind.Advice() != OtherNode {
		t.Errorf("%s %q", out.Kind, out.Message)
	}
}

// A retry at the same seed and temperature would give the same bytes.
func TestAttemptsVary(t *testing.T) {
	settled := func(o Options, attempt int, format json.RawMessage) ollama.Sampling {
		return turnRequest{common: Common{Options: o, Attempt: attempt}, format: format}.sampling(knowledge{}, ollama.ThinkOff)
	}
	value := json.RawMessage(itemSchema)
	temperature := func(s ollama.Sampling) float64 { return *s.Temperature }
	first, second, third, tenth := settled(Options{Seed: 5}, 1, value), settled(Options{Seed: 5}, 2, value), settled(Options{Seed: 5}, 3, value), settled(Options{Seed: 5}, 10, value)
	if temperature(first) != 0 || temperature(second) != 0.3 || temperature(third) != 0.6 || temperature(tenth) != 0.6 {
		t.Errorf("temperatures %v %v %v %v", temperature(first), temperature(second), temperature(third), temperature(tenth))
	}
	if *first.RepeatPenalty != 1 || *first.PresencePenalty != 0 || *first.FrequencyPenalty != 0 {
		t.Errorf("penalties of a call for a value: %+v", first)
	}
	seeds := []int64{first.Seed, second.Seed, third.Seed, tenth.Seed}
	slices.Sort(seeds)
	if len(slices.Compact(seeds)) != 4 || first.Seed != 5 {
		t.Errorf("seeds %v", seeds)
	}
	hot := 0.9
	if s := settled(Options{Temperature: &hot}, 2, value); temperature(s) != 0.9 {
		t.Errorf("a temperature that was asked for became %v", temperature(s))
	}
	if s := settled(Options{}, 2, nil); s.Temperature != nil || s.Seed == 0 || s.RepeatPenalty != nil {
		t.Errorf("a model of which nothing is known keeps its own settings, got %+v", s)
	}
	if s := settled(Options{Seed: -1}, 1, value); s.Seed < 0 {
		t.Errorf("seed %d would mean random", s.Seed)
	}
}

// piped runs a test under fake time against a server that hangs or crawls.
func piped(t *testing.T, cfg ollamatest.Config) *ollama.Client {
	t.Helper()
	base, web := ollamatest.New(cfg).StartPipe(t)
	c, err := ollama.New(ollama.Options{BaseURL: base, Transport: web.Transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSilenceIsAStall(t *testing.T) {
	hang := ollamatest.Config{Faults: []ollamatest.Fault{{Kind: ollamatest.Hang, Probability: 1}}}
	for name, c := range map[string]struct {
		cfg    ollamatest.Config
		limits Limits
		kind   Kind
		after  time.Duration
	}{
		"no first token":                    {hang, Limits{}, Stalled, 0},
		"no first token, a limit of ours":   {hang, Limits{FirstToken: time.Minute}, Stalled, time.Minute},
		"no next token":                     {ollamatest.Config{DecodeRate: 0.01}, Limits{FirstToken: time.Hour}, Stalled, 100*time.Second + time.Minute},
		"no next token, a limit of ours":    {ollamatest.Config{DecodeRate: 0.01}, Limits{NextToken: 30 * time.Second, FirstToken: time.Hour}, Stalled, 130 * time.Second},
		"slow is not silent":                {ollamatest.Config{DecodeRate: 0.1}, Limits{}, OK, 0},
		"no limit, but the call's deadline": {hang, Limits{FirstToken: -1}, Deadline, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := piped(t, c.cfg)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				r := GenerateRequest{Common: common(), Prompt: document}
				r.Limits = c.limits
				start := time.Now()
				out := Generate(ctx, client, r)
				if out.Kind != c.kind {
					t.Fatalf("%s %q after %s, want %s", out.Kind, out.Message, time.Since(start), c.kind)
				}
				if c.kind == Stalled && !strings.Contains(out.Message, "token came within") {
					t.Errorf("it does not say what was waited for: %s", out.Message)
				}
				if took := time.Since(start); c.after != 0 && took != c.after {
					t.Errorf("after %s, want %s", took, c.after)
				}
			})
		})
	}
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := piped(t, ollamatest.Config{Faults: []ollamatest.Fault{{Kind: ollamatest.Hang, Probability: 1}}})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the run was cancelled")) })
		if out := Generate(ctx, client, GenerateRequest{Common: common(), Prompt: document}); out.Kind != Cancelled || out.Kind.Advice() != Never {
			t.Errorf("%s %q", out.Kind, out.Message)
		}
	})
}

// scripted answers every turn with the next text.
type scripted struct {
	Ollama
	family  string
	first   *ollama.Reply // to the first call instead of a text; may be nil
	answers []string
	sent    []ollama.Request
	chats   int
}

func (s *scripted) Resolve(context.Context, string) (ollama.Model, error) {
	return ollama.Model{Digest: "d", Family: s.family}, nil
}

func (s *scripted) Generate(_ context.Context, r ollama.Request, _ func(ollama.Chunk)) (ollama.Reply, error) {
	s.sent = append(s.sent, r)
	if first := s.first; first != nil {
		s.first = nil
		return *first, nil
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return ollama.Reply{Text: answer, DoneReason: "stop", Counts: ollama.Counts{PromptTokens: 10, OutputTokens: 3}}, nil
}

func (s *scripted) Chat(ctx context.Context, r ollama.Request, f func(ollama.Chunk)) (ollama.Reply, error) {
	s.chats++
	return s.Generate(ctx, r, f)
}

func TestEmbed(t *testing.T) {
	_, c := server(t, ollamatest.Config{})
	out := Embed(t.Context(), c, EmbedRequest{Model: "nomic-embed-text", Texts: []string{"one", "two"}})
	if out.Kind != OK || len(out.Vectors) != 2 || out.Report.Digest == "" || out.Report.Counts.PromptTokens == 0 {
		t.Errorf("%+v", out)
	}
	if out := Embed(t.Context(), c, EmbedRequest{Model: "none", Texts: []string{"one"}}); out.Kind != ModelMissing {
		t.Errorf("%s", out.Kind)
	}
	if out := Embed(t.Context(), c, EmbedRequest{Model: "nomic-embed-text"}); out.Kind != BadRequest {
		t.Errorf("%s", out.Kind)
	}
	if out := Embed(t.Context(), c, EmbedRequest{Model: "nomic-embed-text", Texts: []string{strings.Repeat("word ", 20000)}}); out.Kind != InputTooLong {
		t.Errorf("%s: %s", out.Kind, out.Message)
	}
}

func TestCheckSchema(t *testing.T) {
	if err := CheckSchema(json.RawMessage(itemSchema)); err != nil {
		t.Error(err)
	}
	if err := CheckSchema(json.RawMessage(`{"type":"array","minItems":2,"maxItems":1}`)); err == nil {
		t.Error("a schema that no value satisfies passes")
	}
	if err := CheckSchema(json.RawMessage(`{"properties":{"v":{"type":"strin"}}}`)); err == nil || !strings.Contains(err.Error(), "/properties/v/type") {
		t.Errorf("%v", err)
	}
}
