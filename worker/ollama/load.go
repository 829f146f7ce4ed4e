package ollama

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ollama/ollama/api"
)

// LoadResult is what the server has in memory after a load. Compare Size and SizeVRAM: a model too large for the GPU
// is loaded partly onto the CPU without any error.
type LoadResult struct {
	Loaded   Loaded
	Duration time.Duration // that the server spent loading; 0 when the model was loaded already
}

// Load brings a model into memory with the given context. It stays until Unload, or until nothing has asked for it for the
// client's KeepAlive. Embedding models refuse generation and are loaded by an empty embedding instead.
func (c *Client) Load(ctx context.Context, name string, numCtx int) (LoadResult, error) {
	took, err := c.touch(ctx, "load "+name, name, numCtx, c.keep)
	if err != nil {
		return LoadResult{}, loading(err)
	}
	loaded, err := c.find(ctx, name)
	if err != nil {
		return LoadResult{}, err
	}
	if loaded == nil {
		return LoadResult{}, &Error{Kind: ServerError, Op: "load " + name, Message: "the server said loaded but does not list it"}
	}
	return LoadResult{Loaded: *loaded, Duration: took}, nil
}

// Renew keeps a model in memory for another KeepAlive, and says whether it is there with that context. One that is not is
// left alone: an empty request would load it, and evict what has taken its place.
func (c *Client) Renew(ctx context.Context, name string, numCtx int) (bool, error) {
	loaded, err := c.find(ctx, name)
	if err != nil || loaded == nil || loaded.Context != numCtx {
		return false, err
	}
	_, err = c.touch(ctx, "renew "+name, name, numCtx, c.keep)
	return err == nil, err
}

// unloadPoll is how often Unload looks; Ollama wants to be asked for its list no more often than every few seconds
// in the long run, and an unload is short.
const unloadPoll = 250 * time.Millisecond

// Unload frees a model's memory and returns when the server no longer lists it, which is after its running requests,
// or fails with Busy when that takes longer than wait. Unloading what is not loaded is no error.
func (c *Client) Unload(ctx context.Context, name string, wait time.Duration) error {
	op := "unload " + name
	loaded, err := c.find(ctx, name)
	if err != nil || loaded == nil {
		return err
	}
	if _, err := c.touch(ctx, op, name, loaded.Context, api.Duration{}); err != nil {
		return err
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	tick := time.NewTicker(unloadPoll)
	defer tick.Stop()
	for {
		loaded, err := c.find(ctx, name)
		if err != nil || loaded == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		case <-late.C:
			return &Error{Kind: Busy, Op: op, Message: fmt.Sprintf("still in memory after %s", wait)}
		case <-tick.C:
		}
	}
}

// touch sends the empty request that loads a model, or with keepAlive 0 unloads it.
func (c *Client) touch(ctx context.Context, op, name string, numCtx int, keep api.Duration) (time.Duration, error) {
	embeds, err := c.embedsOnly(ctx, name)
	if err != nil {
		return 0, err
	}
	if embeds {
		r, err := c.api.Embed(ctx, &api.EmbedRequest{
			Model: name, Input: []string{}, KeepAlive: &keep, Options: options(Sampling{NumCtx: numCtx}),
		})
		if err != nil {
			return 0, classify(ctx, op, err)
		}
		return r.LoadDuration, nil
	}
	a := assembler{}
	no := false // as every call says it: from 0.30 on, a call with another shift than the load's loads the model again
	err = c.api.Generate(ctx, &api.GenerateRequest{
		Model: name, KeepAlive: &keep, Options: options(Sampling{NumCtx: numCtx}), Shift: &no,
	}, func(g api.GenerateResponse) error {
		a.add("", "", g.Done, g.DoneReason, g.Metrics)
		return nil
	})
	reply, err := a.end(ctx, op, err)
	return reply.Counts.LoadDuration, err
}

func (c *Client) embedsOnly(ctx context.Context, name string) (bool, error) {
	m, err := c.Resolve(ctx, name)
	if err != nil {
		return false, err
	}
	f, err := c.Facts(ctx, m)
	if err != nil {
		return false, err
	}
	return slices.Contains(f.Capabilities, "embedding") && !slices.Contains(f.Capabilities, "completion"), nil
}

// find returns the loaded model of that name, nil when it is not in memory.
func (c *Client) find(ctx context.Context, name string) (*Loaded, error) {
	all, err := c.Loaded(ctx)
	if err != nil {
		return nil, err
	}
	want := Name(name)
	for _, l := range all {
		if Name(l.Name) == want {
			return &l, nil
		}
	}
	return nil, nil
}
