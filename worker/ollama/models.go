package ollama

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ollama/ollama/api"
)

// Model is a model that the server holds on its own disk.
type Model struct {
	Name          string // as Ollama lists it, with tag
	Digest        string // SHA-256 of the manifest, hex; two servers may have different digests under one name
	Size          int64  // bytes of all blobs
	Family        string // such as qwen3
	ParameterSize string // such as 8.2B
	Quantisation  string // such as Q4_K_M
}

// Models lists what the server holds. Remote (cloud) models are left out: nothing of ours may leave the house.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	list, err := c.api.List(ctx)
	if err != nil {
		return nil, classify(ctx, "list models", err)
	}
	models := make([]Model, 0, len(list.Models))
	for _, m := range list.Models {
		if m.RemoteHost != "" || m.RemoteModel != "" {
			continue
		}
		models = append(models, Model{
			Name: m.Name, Digest: m.Digest, Size: m.Size,
			Family: m.Details.Family, ParameterSize: m.Details.ParameterSize, Quantisation: m.Details.QuantizationLevel,
		})
	}
	return models, nil
}

// Resolve finds the model under a name, with or without tag. It is ModelMissing when there is none.
func (c *Client) Resolve(ctx context.Context, name string) (Model, error) {
	models, err := c.Models(ctx)
	if err != nil {
		return Model{}, err
	}
	want := Name(name)
	for _, m := range models {
		if Name(m.Name) == want {
			return m, nil
		}
	}
	return Model{}, &Error{
		Kind: ModelMissing, Op: "find model " + want, Status: http.StatusNotFound,
		Message: fmt.Sprintf("%s has no model %q", c.base.Host, want),
	}
}

// Loaded is a model in memory.
type Loaded struct {
	Name      string
	Digest    string
	Size      int64     // bytes reserved in all, a prediction of the server, not a measurement
	SizeVRAM  int64     // bytes of it on GPUs; less than Size means partly on the CPU
	Context   int       // tokens per slot
	ExpiresAt time.Time // stale while the model is busy; far in the future when kept for ever
}

// Loaded lists the models in memory; one that is still loading is absent. Ollama up to 0.17.4 reads this list without
// a lock: poll it every few seconds at most.
func (c *Client) Loaded(ctx context.Context) ([]Loaded, error) {
	list, err := c.api.ListRunning(ctx)
	if err != nil {
		return nil, classify(ctx, "list loaded models", err)
	}
	loaded := make([]Loaded, 0, len(list.Models))
	for _, m := range list.Models {
		loaded = append(loaded, Loaded{
			Name: m.Name, Digest: m.Digest, Size: m.Size, SizeVRAM: m.SizeVRAM,
			Context: m.ContextLength, ExpiresAt: m.ExpiresAt,
		})
	}
	return loaded, nil
}

// Progress is one line of a running pull.
type Progress struct {
	Status    string // Ollama's words, such as "pulling manifest", "success"
	Digest    string // of the layer under way; empty between layers
	Completed int64  // bytes of that layer so far
	Total     int64  // bytes of that layer; 0 when not told
}

// Pull downloads a model; the context is the only limit. It is whole only when the server said success.
func (c *Client) Pull(ctx context.Context, name string, progress func(Progress)) error {
	op := "pull " + name
	last := ""
	err := c.api.Pull(ctx, &api.PullRequest{Model: name}, func(p api.ProgressResponse) error {
		last = p.Status
		if progress != nil {
			progress(Progress{Status: p.Status, Digest: p.Digest, Completed: p.Completed, Total: p.Total})
		}
		return nil
	})
	if err == nil && last != "success" {
		err = &Error{Kind: StreamBroken, Op: op, Message: fmt.Sprintf("the download ended after %q", last)}
	}
	return classify(ctx, op, err)
}
