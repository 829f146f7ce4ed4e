package ollamatest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe starts a server that works under fake time, and Ollama's own client for it.
func pipe(t *testing.T, cfg Config) (*Server, *api.Client) {
	t.Helper()
	s := New(cfg)
	return s, Client(s.StartPipe(t))
}

func with(names ...string) []Model {
	models := []Model{}
	for _, n := range names {
		models = append(models, Model{Name: n})
	}
	return models
}

func numCtx(n int) map[string]any { return map[string]any{"num_ctx": n} }

func keep(d time.Duration) *api.Duration { return &api.Duration{Duration: d} }

// load loads a model with a context of 4096 and returns the error, if any.
func load(c *api.Client, model string, keepAlive *api.Duration) error {
	return loadWith(context.Background(), c, model, numCtx(4096), keepAlive)
}

func loadWith(ctx context.Context, c *api.Client, model string, options map[string]any, keepAlive *api.Duration) error {
	req := &api.GenerateRequest{Model: model, Options: options, KeepAlive: keepAlive}
	return c.Generate(ctx, req, func(r api.GenerateResponse) error {
		if !r.Done || r.DoneReason != "load" {
			return errors.New("not the answer to a load: " + r.DoneReason)
		}
		return nil
	})
}

// say makes a call that generates and returns the last line.
func say(c *api.Client, req *api.GenerateRequest) (last api.GenerateResponse, err error) {
	var text string
	err = c.Generate(context.Background(), req, func(r api.GenerateResponse) error {
		text += r.Response
		last = r
		return nil
	})
	last.Response = text
	return last, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantStatus checks the status and the text of an error.
func wantStatus(t *testing.T, err error, status int, text string) {
	t.Helper()
	var se api.StatusError
	if !errors.As(err, &se) || se.StatusCode != status || se.ErrorMessage != text {
		t.Errorf("got %#v, want status %d %q", err, status, text)
	}
}

var _ http.Handler = (*Server)(nil)
