package tinymodel

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// A model's whole life on the server: loaded by an empty prompt, listed with its context, described, unloaded.
func TestRealOllamaLoadsListsShowsAndUnloads(t *testing.T) {
	server := Start(t, ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
	server.Create(t, "tiny", Options{})
	client, ctx := server.Client, t.Context()

	if version, err := client.Version(ctx); err != nil || version != "0.17.4" {
		t.Errorf("the server says version %q, %v", version, err)
	}
	setResident(t, client, "tiny", -1)
	loaded, err := client.ListRunning(ctx)
	if err != nil || len(loaded.Models) != 1 {
		t.Fatalf("after loading: %+v, %v", loaded, err)
	}
	if m := loaded.Models[0]; m.Name != "tiny:latest" || m.ContextLength != 1024 || m.Size == 0 {
		t.Errorf("loaded is %s with %d tokens of context in %d bytes", m.Name, m.ContextLength, m.Size)
	}
	shown, err := client.Show(ctx, &api.ShowRequest{Model: "tiny", Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := shown.ModelInfo["llama.embedding_length"]; got != float64(width) || len(shown.Tensors) != 3+9*defaultLayers {
		t.Errorf("shown are width %v and %d tensors", got, len(shown.Tensors))
	}
	setResident(t, client, "tiny", 0)
	waitUntilEmpty(t, client)
}

// A cancelled answer frees the only slot: the next request is answered, though the first would never have ended.
func TestRealOllamaCancelFreesTheSlot(t *testing.T) {
	server := Start(t, ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA"), Env: []string{"OLLAMA_NUM_PARALLEL=1"}})
	server.Create(t, "endless", Options{Endless: true})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pieces, done := 0, false
	err := server.Client.Generate(ctx, &api.GenerateRequest{
		Model: "endless", Prompt: "Go on.", Options: map[string]any{"num_ctx": 4096, "num_predict": 100_000},
	}, func(r api.GenerateResponse) error {
		if pieces++; pieces == 20 {
			cancel()
		}
		done = done || r.Done
		return nil
	})
	// The client returns nil when its context ends between two pieces, so only a missing end tells.
	if (err != nil && !errors.Is(err, context.Canceled)) || pieces < 20 || done {
		t.Fatalf("after %d pieces: done %t, %v", pieces, done, err)
	}
	limited := &api.GenerateRequest{Model: "endless", Prompt: "Go on.", Options: map[string]any{"num_ctx": 4096, "num_predict": 10}}
	var last api.GenerateResponse
	if err := server.Client.Generate(t.Context(), limited, func(r api.GenerateResponse) error { last = r; return nil }); err != nil {
		t.Fatal(err)
	}
	if last.DoneReason != "length" || last.EvalCount != 10 {
		t.Errorf("the next answer ended by %q after %d tokens", last.DoneReason, last.EvalCount)
	}
}

// A server that crashed comes back at its address with its models.
func TestRealOllamaComesBack(t *testing.T) {
	binary := os.Getenv("LOOPKEEPER_TEST_OLLAMA")
	first := Start(t, ServerOptions{Binary: binary})
	first.Create(t, "tiny", Options{})
	first.Kill()
	if err := first.Client.Heartbeat(t.Context()); err == nil {
		t.Fatal("a killed server answers")
	}
	second := Start(t, ServerOptions{Binary: binary, Models: first.Models, Address: strings.TrimPrefix(first.URL, "http://")})
	if second.URL != first.URL {
		t.Errorf("it came back at %s, not at %s", second.URL, first.URL)
	}
	models, err := second.Client.List(t.Context())
	if err != nil || len(models.Models) != 1 {
		t.Fatalf("it came back with %+v, %v", models, err)
	}
}

// setResident loads a model for keepAlive seconds: -1 for ever, 0 unloads it.
func setResident(t *testing.T, client *api.Client, model string, keepAlive time.Duration) {
	t.Helper()
	request := &api.GenerateRequest{
		Model: model, KeepAlive: &api.Duration{Duration: keepAlive}, Options: map[string]any{"num_ctx": 1024},
	}
	if err := client.Generate(t.Context(), request, func(api.GenerateResponse) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// waitUntilEmpty asks until nothing is loaded: the server answers an unload before the runner has ended.
func waitUntilEmpty(t *testing.T, client *api.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		loaded, err := client.ListRunning(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(loaded.Models) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("still loaded: %+v", loaded.Models)
		}
	}
}
