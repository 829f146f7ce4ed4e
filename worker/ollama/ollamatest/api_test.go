package ollamatest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollama/ollama/api"
)

func TestEveryAnswerSaysThatItIsSimulated(t *testing.T) {
	base := New(Config{Name: "left", Memory: 8 << 30}).Start(t)
	for path, want := range map[string]string{
		"/": "Ollama is running", "/api/version": `{"version":"0.17.4"}`, "/nowhere": "404 page not found",
		"/control/info": `"simulated":true,"name":"left","version":"0.17.4","memory_bytes":8589934592,"free_bytes":8589934592`,
	} {
		resp, err := http.Get(base + path)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
		if got := resp.Header.Get("Server"); got != "fakeollama" {
			t.Errorf("%s: server %q", path, got)
		}
	}
	must(t, Client(base, nil).Heartbeat(t.Context()))
}

func TestCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := pipe(t, Config{Models: []Model{{Name: "qwen3:8b"}, {Name: "mine", Preset: "llama3.2:3b", NumCtx: 2048}, {Name: "nomic-embed-text"}}})
		list, err := c.List(t.Context())
		must(t, err)
		var names []string
		for _, m := range list.Models {
			names = append(names, m.Name)
			if len(m.Digest) != 64 || m.Size < 1<<20 || m.Details.Family == "" {
				t.Errorf("%+v", m)
			}
		}
		if want := []string{"qwen3:8b", "mine:latest", "nomic-embed-text:latest"}; !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
		show, err := c.Show(t.Context(), &api.ShowRequest{Model: "qwen3:8b"})
		must(t, err)
		// the shape of the real model: 36 layers, 8 of 32 heads for keys and values, 399 tensors (with attn_q_norm and
		// attn_k_norm, which hold next to nothing and are left out here, two a layer)
		if len(show.Tensors) != 399-2*36 {
			t.Errorf("%d tensors", len(show.Tensors))
		}
		for key, want := range map[string]float64{"qwen3.block_count": 36, "qwen3.attention.head_count_kv": 8, "qwen3.context_length": 40960} {
			if show.ModelInfo[key] != want {
				t.Errorf("%s: %v, want %v", key, show.ModelInfo[key], want)
			}
		}
		if n := show.ModelInfo["general.parameter_count"].(float64); math.Abs(n-8.19e9) > 0.01e9 {
			t.Errorf("%g parameters, the real model has 8.19e9", n)
		}
		if show.ModelInfo["tokenizer.ggml.tokens"] != nil || !slices.Contains(show.Capabilities, "thinking") {
			t.Errorf("tokens without verbose, or capabilities %v", show.Capabilities)
		}
		show, err = c.Show(t.Context(), &api.ShowRequest{Model: "mine", Verbose: true})
		must(t, err)
		if tokens, _ := show.ModelInfo["tokenizer.ggml.tokens"].([]any); len(tokens) != 128256 {
			t.Errorf("%d tokens", len(tokens))
		}
		if f := strings.Fields(show.Parameters); !slices.Equal(f, []string{"num_ctx", "2048"}) {
			t.Errorf("parameters %q", show.Parameters)
		}
	})
}

func TestPullInstalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := pipe(t, Config{Models: []Model{}, LoadSpeed: 1 << 30})
		begun := time.Now()
		var statuses []string
		var done, total int64
		must(t, c.Pull(t.Context(), &api.PullRequest{Model: "llama3.1:8b"}, func(p api.ProgressResponse) error {
			if p.Completed < done && p.Total > 0 || p.Completed > p.Total {
				t.Errorf("%d of %d after %d", p.Completed, p.Total, done)
			}
			done, total = max(done, p.Completed), max(total, p.Total)
			statuses = append(statuses, p.Status)
			return nil
		}))
		if statuses[0] != "pulling manifest" || statuses[len(statuses)-1] != "success" || done != total || total < 4<<30 {
			t.Errorf("%v, %d of %d bytes", statuses, done, total)
		}
		if d := time.Since(begun).Round(100 * time.Millisecond); d != 4600*time.Millisecond {
			t.Errorf("4.58 GiB at 1 GiB/s took %v", d)
		}
		must(t, load(c, "llama3.1:8b", nil))
		err := c.Pull(t.Context(), &api.PullRequest{Model: "no-such:1b"}, func(api.ProgressResponse) error { return nil })
		if err == nil || err.Error() != "pull model manifest: file does not exist" {
			t.Errorf("pull of an unknown model: %v", err)
		}
		must(t, c.Delete(t.Context(), &api.DeleteRequest{Model: "llama3.1:8b"}))
		wantStatus(t, load(c, "llama3.1:8b", nil), 404, "model 'llama3.1:8b' not found")
	})
}

func TestErrors(t *testing.T) {
	base := New(Config{Memory: 24 << 30}).Start(t)
	long := strings.Repeat("many words ", 4096)
	for _, c := range []struct {
		name, path, body string
		status           int
		text             string
	}{
		{"no model", "generate", `{"model":"nope:1b","prompt":"x"}`, 404, "model 'nope:1b' not found"},
		{"no model to chat", "chat", `{"model":"nope","messages":[]}`, 404, "model 'nope' not found"},
		{"no model to show", "show", `{"model":"nope"}`, 404, "model 'nope' not found"},
		{"no model to embed", "embed", `{"model":"nope","input":"x"}`, 404, "model 'nope' not found"},
		{"model left out", "chat", `{}`, 400, "model is required"},
		{"no body", "generate", ``, 400, "missing request body"},
		{"broken body", "generate", `{"model":`, 400, "unexpected EOF"},
		{"embedding model chats", "chat", `{"model":"nomic-embed-text","messages":[{"role":"user","content":"x"}]}`, 400, `"nomic-embed-text" does not support chat`},
		{"embedding model generates", "generate", `{"model":"nomic-embed-text","prompt":"x"}`, 400, `"nomic-embed-text" does not support generate`},
		{"no thinking", "chat", `{"model":"llama3.2:3b","think":true,"messages":[{"role":"user","content":"x"}]}`, 400, `"llama3.2:3b" does not support thinking`},
		{"think level", "generate", `{"model":"qwen3:8b","think":"low","prompt":"x"}`, 400, `think value "low" is not supported for this model`},
		{"too long", "generate", `{"model":"llama3.2:3b","truncate":false,"options":{"num_ctx":4096},"prompt":"` + long + `"}`, 400, "the input length exceeds the context length"},
		{"too long to embed", "embed", `{"model":"nomic-embed-text","truncate":false,"input":"` + long + `"}`, 400, "the input length exceeds the context length"},
		{"format is a word", "generate", `{"model":"llama3.2:3b","format":"xml","prompt":"x"}`, 500, `invalid format: "\"xml\""; expected "json" or a valid JSON Schema object`},
		{"schema not accepted", "generate", `{"model":"llama3.2:3b","format":{"type":"strin"},"prompt":"x"}`, 500, "invalid JSON schema in format"},
		{"schema kills the runner", "generate", `{"model":"llama3.2:3b","format":{"type":"string","maxLength":2001},"prompt":"x"}`, 500, errRunnerDied.Error()},
		{"wrong option", "generate", `{"model":"llama3.2:3b","options":{"num_ctx":"big"},"prompt":"x"}`, 500, `option "num_ctx" must be of type integer`},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, err := http.Post(base+"/api/"+c.path, "application/json", strings.NewReader(c.body))
			must(t, err)
			defer resp.Body.Close()
			var got struct{ Error string }
			must(t, json.NewDecoder(resp.Body).Decode(&got))
			if resp.StatusCode != c.status || got.Error != c.text {
				t.Errorf("%d %q, want %d %q", resp.StatusCode, got.Error, c.status, c.text)
			}
		})
	}
}

// The daemon dies of a pattern that its parser does not survive: the connection breaks, every model is gone.
func TestDeadlyPattern(t *testing.T) {
	s := New(Config{Memory: 24 << 30})
	c := Client(s.Start(t), nil)
	must(t, load(c, "qwen3:8b", nil))
	_, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: "x", Format: json.RawMessage(`{"type":"string","pattern":"^(?:a|b)$"}`)})
	var se api.StatusError
	if err == nil || errors.As(err, &se) {
		t.Errorf("got %v, want a broken connection", err)
	}
	wantLoaded(t, s)
}

const material = "Summarise it.\n\nThe parser reads old files. It was fixed in March by two people. The writer is atomic, and a power cut loses nothing."

// chatOnce returns the last line of a chat, with all the text, and how many lines came.
func chatOnce(t *testing.T, c *api.Client, req *api.ChatRequest) (api.ChatResponse, int) {
	t.Helper()
	var last api.ChatResponse
	var content, thinking strings.Builder
	n := 0
	must(t, c.Chat(t.Context(), req, func(r api.ChatResponse) error {
		content.WriteString(r.Message.Content)
		thinking.WriteString(r.Message.Thinking)
		last = r
		n++
		return nil
	}))
	last.Message.Content, last.Message.Thinking = content.String(), thinking.String()
	return last, n
}

func chatRequest(model, format string, think *bool) *api.ChatRequest {
	req := &api.ChatRequest{Model: model, Messages: []api.Message{{Role: "user", Content: material}}, Options: numCtx(4096)}
	if format != "" {
		req.Format = json.RawMessage(format)
	}
	if think != nil {
		req.Think = &api.ThinkValue{Value: *think}
	}
	return req
}

func TestStreamAndWholeAnswerAgree(t *testing.T) {
	c := Client(New(Config{}).Start(t), nil)
	req := chatRequest("llama3.2:3b", "", nil)
	streamed, n := chatOnce(t, c, req)
	off := false
	req.Stream = &off
	whole, one := chatOnce(t, c, req)
	if one != 1 || n != streamed.EvalCount+1 {
		t.Errorf("%d lines whole, %d lines for %d tokens", one, n, streamed.EvalCount)
	}
	if whole.Message.Content != streamed.Message.Content || whole.Message.Content == "" {
		t.Errorf("%q and %q", whole.Message.Content, streamed.Message.Content)
	}
	for _, r := range []api.ChatResponse{streamed, whole} {
		if !r.Done || r.DoneReason != "stop" || r.PromptEvalCount == 0 || r.TotalDuration <= 0 || r.LoadDuration <= 0 || r.PromptEvalDuration <= 0 || r.EvalDuration <= 0 {
			t.Errorf("last line %+v", r)
		}
	}
}

// Where text and value land with thinking and format (research: judgement §2.1).
func TestThinkingAndFormat(t *testing.T) {
	models := append(SmallPresets(), Model{Name: "parser", Preset: "qwen3:8b", Kind: KindParser})
	c := Client(New(Config{Memory: 80 << 30, Models: models}).Start(t), nil)
	schema := `{"type":"object","required":["summary"],"properties":{"summary":{"type":"string"}}}`
	yes, no := true, false
	for _, row := range []struct {
		name, endpoint, model, format string
		think                         *bool
		thinking, content             string // thought, value, text or ""
	}{
		{"plain model", "chat", "llama3.2:3b", schema, nil, "", "value"},
		{"free thought", "chat", "qwen3:8b", "", nil, "thought", "text"},
		{"told not to think", "chat", "qwen3:8b", "", &no, "", "text"},
		{"two passes", "chat", "qwen3:8b", schema, &yes, "thought", "value"},
		{"two passes by default", "chat", "qwen3:8b", schema, nil, "thought", "value"},
		{"value without thought", "chat", "qwen3:8b", schema, &no, "", "value"},
		{"parser model loses the format", "chat", "parser", schema, &no, "", "text"},
		{"parser model, two passes", "chat", "parser", schema, nil, "thought", "value"},
		{"generate without thought", "generate", "qwen3:8b", schema, &no, "", "value"},
		{"generate hides the value", "generate", "qwen3:8b", schema, nil, "value", ""},
		{"parser model generates", "generate", "parser", schema, &no, "", "value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			req := chatRequest(row.model, row.format, row.think)
			var thinking, content string
			if row.endpoint == "chat" {
				last, _ := chatOnce(t, c, req)
				thinking, content = last.Message.Thinking, last.Message.Content
			} else {
				off := false
				last, err := say(c, &api.GenerateRequest{Model: req.Model, Prompt: material, Format: req.Format, Think: req.Think, Options: req.Options, Stream: &off})
				must(t, err)
				thinking, content = last.Thinking, last.Response
			}
			for what, got := range map[string]struct{ text, want string }{"thinking": {thinking, row.thinking}, "content": {content, row.content}} {
				kind := "text"
				switch {
				case got.text == "":
					kind = ""
				case json.Valid([]byte(got.text)):
					kind = "value"
				case what == "thinking":
					kind = "thought"
				}
				if kind != got.want {
					t.Errorf("%s is %q: %s", what, kind, got.text)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	c := Client(New(Config{}).Start(t), nil)
	off := false
	generate := func(options map[string]any, prompt string, shift *bool) api.GenerateResponse {
		t.Helper()
		last, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: prompt, Options: options, Shift: shift, Stream: &off})
		must(t, err)
		return last
	}
	free := generate(numCtx(4096), material, nil)
	cut := generate(map[string]any{"num_ctx": 4096, "num_predict": 5}, material, nil)
	if cut.DoneReason != "length" || cut.EvalCount != 5 || !strings.HasPrefix(free.Response, cut.Response) {
		t.Errorf("num_predict 5: %d tokens, %s: %q", cut.EvalCount, cut.DoneReason, cut.Response)
	}
	long := strings.Repeat("The same words come again and again here. ", 100) // 4200 characters
	truncated := generate(numCtx(64), long, nil)
	if truncated.PromptEvalCount != 64 || truncated.DoneReason != "stop" {
		t.Errorf("a prompt too long counts %d tokens, want the window of 64", truncated.PromptEvalCount)
	}
	window := generate(numCtx(48), material, &off) // the prompt leaves less than the answer takes
	if window.DoneReason != "length" || window.EvalCount+window.PromptEvalCount != 48 {
		t.Errorf("without shift: %d + %d tokens in a window of 48, %s", window.PromptEvalCount, window.EvalCount, window.DoneReason)
	}
}

// Rates, load time, prefix cache and slots, in fake time.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := pipe(t, Config{Memory: 24 << 30, LoadLatency: 3 * time.Second, PromptRate: 100, DecodeRate: 20, Models: with("llama3.2:3b")})
		req := &api.GenerateRequest{Model: "llama3.2:3b", Prompt: material, Options: numCtx(4096)}
		cold, err := say(c, req)
		must(t, err)
		seconds := func(n int, rate float64) time.Duration {
			return time.Duration(float64(n) / rate * float64(time.Second)).Round(time.Millisecond)
		}
		if cold.LoadDuration != 3*time.Second || cold.PromptEvalDuration.Round(time.Millisecond) != seconds(cold.PromptEvalCount, 100) ||
			cold.EvalDuration.Round(time.Millisecond) != seconds(cold.EvalCount, 20) {
			t.Errorf("%d prompt tokens, %d tokens: %+v", cold.PromptEvalCount, cold.EvalCount, cold.Metrics)
		}
		warm, err := say(c, req)
		must(t, err)
		if warm.LoadDuration != 1 || warm.PromptEvalCount != cold.PromptEvalCount || warm.PromptEvalDuration > 20*time.Millisecond {
			t.Errorf("the same prompt again: %+v", warm.Metrics)
		}
	})
}

func TestSlots(t *testing.T) {
	for slots, want := range map[int]float64{1: 4, 2: 2, 4: 1} {
		synctest.Test(t, func(t *testing.T) {
			_, c := pipe(t, Config{Memory: 24 << 30, Slots: slots, DecodeRate: 10, Models: with("llama3.2:3b")})
			must(t, load(c, "llama3.2:3b", nil))
			begun := time.Now()
			single, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: material, Options: numCtx(4096)})
			must(t, err)
			one := time.Since(begun)
			begun = time.Now()
			done := make(chan error, 4)
			for range 4 {
				go func() {
					_, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: material, Options: numCtx(4096)})
					done <- err
				}()
			}
			for range 4 {
				must(t, <-done)
			}
			if got := float64(time.Since(begun)) / float64(one); math.Abs(got-want) > 0.01 {
				t.Errorf("%d slots: four calls took %.2f times as long as one of %d tokens, want %g", slots, got, single.EvalCount, want)
			}
		})
	}
}

// A client that goes away frees the slot at once, and the log says so.
func TestDisconnectCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := pipe(t, Config{Memory: 24 << 30, DecodeRate: 1, Models: with("llama3.2:3b")})
		ctx, cancel := context.WithCancel(t.Context())
		lines := 0
		err := c.Generate(ctx, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: material, Options: numCtx(4096)}, func(api.GenerateResponse) error {
			if lines++; lines == 3 {
				cancel()
			}
			return nil
		})
		if lines != 3 {
			t.Errorf("%d lines came, then %v", lines, err)
		}
		synctest.Wait()
		if calls := s.Calls(); calls[0].Status != 499 || calls[0].DoneReason != "" || calls[0].Ended.IsZero() {
			t.Errorf("%+v", calls[0])
		}
		begun := time.Now()
		_, err = say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: "short", Options: map[string]any{"num_ctx": 4096, "num_predict": 1}})
		must(t, err)
		if d := time.Since(begun); d != time.Second {
			t.Errorf("the next call waited: %v", d)
		}
	})
}

func TestEmbed(t *testing.T) {
	c := Client(New(Config{}).Start(t), nil)
	embed := func(input any, dimensions int) *api.EmbedResponse {
		t.Helper()
		r, err := c.Embed(t.Context(), &api.EmbedRequest{Model: "nomic-embed-text", Input: input, Dimensions: dimensions})
		must(t, err)
		return r
	}
	if r := embed("", 0); len(r.Embeddings) != 0 {
		t.Errorf("a load returned %d vectors", len(r.Embeddings))
	}
	r := embed([]string{"a red house", "the red house", "accounting rules"}, 0)
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	v := r.Embeddings
	if len(v) != 3 || len(v[0]) != 768 || math.Abs(dot(v[0], v[0])-1) > 1e-5 || r.PromptEvalCount == 0 {
		t.Fatalf("%d vectors of %d", len(v), len(v[0]))
	}
	if dot(v[0], v[1]) <= dot(v[0], v[2]) {
		t.Error("texts that share words are not nearer than texts that do not")
	}
	if r := embed("a red house", 64); len(r.Embeddings[0]) != 64 {
		t.Errorf("%d dimensions", len(r.Embeddings[0]))
	}
}
