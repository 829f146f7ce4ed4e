package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// The same client against a real Ollama 0.17.4: what the stand-in imitates is what the real one does.
func TestRealServer(t *testing.T) {
	server := tinymodel.Start(t, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", tinymodel.Options{})
	server.Create(t, "endless", tinymodel.Options{Endless: true})
	c := client(t, server.URL)

	if s, err := c.Server(t.Context()); err != nil || s.Simulated || s.Version == "" {
		t.Errorf("server %+v %v", s, err)
	}
	m, err := c.Resolve(t.Context(), "tiny")
	if err != nil || m.Name != "tiny:latest" || m.Digest == "" || m.Size == 0 {
		t.Fatalf("model %+v %v", m, err)
	}
	f, err := c.Facts(t.Context(), m)
	if err != nil || f.BlockCount != 2 || f.EmbeddingLength != 64 || f.Weights.Need() <= 0 || f.Weights.Need() > m.Size ||
		f.VocabSize == 0 || len(f.HeadCountKV) != 1 || !slices.Contains(f.Capabilities, "completion") || slices.Contains(f.Unknown, "Weights") {
		t.Errorf("facts %+v %v", f, err)
	}
	loaded, err := c.Load(t.Context(), "tiny", 1024)
	if err != nil || loaded.Loaded.Context != 1024 || loaded.Loaded.Digest != m.Digest || time.Until(loaded.Loaded.ExpiresAt) > DefaultKeepAlive || time.Until(loaded.Loaded.ExpiresAt) < DefaultKeepAlive/2 {
		t.Errorf("load %+v %v", loaded, err)
	}
	if there, err := c.Renew(t.Context(), "tiny", 1024); err != nil || !there {
		t.Errorf("renew: %v %v", there, err)
	}
	if there, err := c.Renew(t.Context(), "tiny", 2048); err != nil || there {
		t.Errorf("renew with another context: %v %v", there, err)
	}
	zero := 0.0
	sampling := Sampling{NumCtx: 1024, NumPredict: 200, Temperature: &zero}
	format := json.RawMessage(`{"type":"object","properties":{"v":{"type":"integer"}},"required":["v"]}`)
	r, err := c.Generate(t.Context(), Request{Model: "tiny", Prompt: "a number", Think: ThinkOff, Format: format, Sampling: sampling}, nil)
	if err != nil || !json.Valid([]byte(r.Text)) || r.DoneReason != "stop" || r.Counts.PromptTokens == 0 || r.Counts.OutputTokens == 0 {
		t.Errorf("generate %+v %v", r, err)
	}
	if r, err := c.Chat(t.Context(), Request{Model: "tiny", Prompt: "hello", System: "be brief", Sampling: sampling}, nil); err != nil || r.Text == "" {
		t.Errorf("chat %+v %v", r, err)
	}
	for name, request := range map[Kind]Request{
		InputTooLong: {Model: "tiny", Prompt: strings.Repeat("too long ", 500), Sampling: sampling},
		ModelMissing: {Model: "nobody", Prompt: "x", Sampling: sampling},
		BadRequest:   {Model: "tiny", Prompt: "x", Think: ThinkOn, Sampling: sampling},
	} {
		if _, err := c.Generate(t.Context(), request, nil); KindOf(err) != name {
			t.Errorf("want %s: %v", name, err)
		}
	}
	if err := c.Unload(t.Context(), "tiny", time.Minute); err != nil {
		t.Errorf("unload: %v", err)
	}
	if still, err := c.Loaded(t.Context()); err != nil || len(still) != 0 {
		t.Errorf("still in memory: %+v %v", still, err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	_, err = c.Generate(ctx, Request{Model: "endless", Prompt: "go on", Sampling: Sampling{NumCtx: 1024, NumPredict: 1000}}, func(chunk Chunk) {
		if chunk.Tokens == 5 {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) || KindOf(err) != "" {
		t.Errorf("cancelled in the middle: %v", err)
	}
}
