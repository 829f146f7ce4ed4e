package serve

import (
	"context"
	"slices"
	"sync"
	"time"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// factsTimeout bounds how long reading one model's facts may take. It is far beyond a look: an answer with a large
// vocabulary takes seconds on a busy machine, and one that is cut off would be asked for again for ever.
const factsTimeout = time.Minute

// learner has the facts of models read beside the looks, one round at a time.
type learner struct {
	client *ollama.Client

	mu    sync.Mutex
	round chan struct{} // closed when the round under way has ended; nil when there is none
}

// begin starts a round over the models that are not known, unless one is under way, and returns a channel that is closed
// at its end; nil when there is nothing to learn. A model that cannot be read is asked for again in a later round.
func (l *learner) begin(ctx context.Context, models []ollama.Model, work *sync.WaitGroup) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := slices.DeleteFunc(slices.Clone(models), func(m ollama.Model) bool {
		_, ok := l.client.Known(m)
		return ok
	})
	if l.round != nil || len(missing) == 0 {
		return l.round
	}
	round := make(chan struct{})
	l.round = round
	work.Go(func() {
		for _, m := range missing {
			ask, cancel := context.WithTimeout(ctx, factsTimeout)
			_, _ = l.client.Facts(ask, m) // what it could not read stays unknown, which the report says
			cancel()
		}
		l.mu.Lock()
		l.round = nil
		l.mu.Unlock()
		close(round)
	})
	return round
}

// listModels lists what Ollama holds, waiting for facts no longer than ctx; what is not known by then comes in a later
// report.
func (m *monitor) listModels(ctx context.Context, r *workerv1.NodeReport) error {
	list, err := m.o.Ollama.Models(ctx)
	if err != nil {
		return err
	}
	if round := m.learner.begin(m.run, list, &m.work); round != nil {
		select {
		case <-round:
		case <-ctx.Done():
		}
	}
	r.Models = nil
	for _, model := range list {
		e := &workerv1.Model{Name: model.Name, Digest: model.Digest, FileBytes: uint64(model.Size), ParameterSize: model.ParameterSize, Quantization: model.Quantisation,
			Family: model.Family}
		if mode, ok := m.modes.Lookup(r.GetOllama().GetVersion(), model.Digest); ok {
			e.Mode = modeMessage(mode)
		}
		if f, ok := m.o.Ollama.Known(model); ok {
			e.Capabilities = f.Capabilities
			e.Embedding = slices.Contains(f.Capabilities, "embedding") && !slices.Contains(f.Capabilities, "completion")
			e.Shape = Shape(f)
		}
		r.Models = append(r.Models, e)
	}
	return nil
}
