package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// ollamas are what the two workers of the demo wrap.
type ollamas struct {
	urls      [2]string
	model     string
	simulated bool
}

// ollama finds the Ollama of this machine, or starts two stand-ins; why says which and why, for people.
func (w *world) ollama(ctx context.Context) (o ollamas, why string, err error) {
	url := w.a.config.Worker.Ollama
	model, why := usableModel(ctx, url)
	if model != "" {
		return ollamas{urls: [2]string{url, url}, model: model}, fmt.Sprintf("the Ollama at %s has %s; both workers use it", url, model), nil
	}
	o = ollamas{model: standInModel, simulated: true}
	for i, s := range standIns {
		if o.urls[i], err = w.standIn(ctx, s); err != nil {
			return ollamas{}, "", err
		}
	}
	return o, why + ": two stand-ins answer instead, and everything that follows is simulated", nil
}

// askTime is how long an Ollama may take to say what it has.
const askTime = 3 * time.Second

// usableModel returns the smallest model at url that writes text, or why there is none.
func usableModel(ctx context.Context, url string) (model, why string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := ollama.New(ollama.Options{BaseURL: url})
	if err != nil {
		return "", fmt.Sprintf("%s is no Ollama", url)
	}
	defer c.Close()
	server, err := c.Server(ctx)
	if err != nil {
		return "", fmt.Sprintf("no Ollama answers at %s", url)
	}
	if server.Simulated {
		return "", fmt.Sprintf("what answers at %s is a stand-in", url)
	}
	models, err := c.Models(ctx)
	if err != nil {
		return "", fmt.Sprintf("the Ollama at %s does not say what models it has", url)
	}
	slices.SortFunc(models, func(a, b ollama.Model) int { return int(min(max(a.Size-b.Size, -1), 1)) })
	for _, m := range models {
		facts, err := c.Facts(ctx, m)
		if err == nil && slices.Contains(facts.Capabilities, "completion") && facts.ContextLength >= 4096 {
			return m.Name, ""
		}
	}
	return "", fmt.Sprintf("the Ollama at %s has no model that writes text", url)
}

// standInModel is installed on both stand-ins.
const standInModel = "qwen3:8b"

// standIns differ in memory and speed, so that placement has something to decide.
var standIns = [2]struct{ name, memory, rate string }{{"left", "12GiB", "130"}, {"right", "24GiB", "220"}}

// standIn starts one fakeollama and returns its URL.
func (w *world) standIn(ctx context.Context, s struct{ name, memory, rate string }) (string, error) {
	name := "fakeollama"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	program := filepath.Join(filepath.Dir(w.program), name)
	if _, err := os.Stat(program); err != nil {
		return "", apierr.New(apierr.NotFound, "there is no Ollama to use, and no stand-in beside this program: %s", program).
			WithNext("make build  # builds both", "ollama serve", "ollama pull "+standInModel)
	}
	addr, err := w.start(ctx, program, "--listen", "127.0.0.1:0", "--name", s.name, "--memory", s.memory, "--models", standInModel,
		"--slots", "2", "--load-speed", "4GiB", "--prompt-rate", "6000", "--decode-rate", s.rate)
	if err != nil {
		return "", fmt.Errorf("start the stand-in %s: %w", s.name, err)
	}
	return "http://" + addr, nil
}
