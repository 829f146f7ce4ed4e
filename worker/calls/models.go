package calls

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Models is what has been found out about the models of one Ollama. Calls share one; it is safe for concurrent use. A nil
// one knows nothing and finds out nothing.
type Models struct {
	Modes *modes.Book

	mu         sync.Mutex
	sanitisers map[string]sanitiser // by digest
	order      []string             // digests as they came
}

// NewModels knows nothing yet.
func NewModels(log *slog.Logger) *Models {
	return &Models{Modes: modes.NewBook(log), sanitisers: map[string]sanitiser{}}
}

// Bounds of what is kept and waited for.
const (
	maxSanitisers = 64
	factsWait     = 10 * time.Second // for the facts of a model; a call goes on without them
)

// knowledge is what one call knows about its model.
type knowledge struct {
	family     family
	known      bool // the following are
	thinks     bool // it can
	sees       bool // it can be shown images
	context    int  // tokens that it was trained for; the server gives it no more; 0: unknown
	parameters map[string][]string
	sanitiser  sanitiser
}

// about asks for the facts of a model, once per digest. Without them a call is made all the same.
func (s *Models) about(ctx context.Context, o Ollama, m ollama.Model) knowledge {
	k := knowledge{family: familyOf(m)}
	if s == nil {
		return k
	}
	ask, cancel := context.WithTimeout(ctx, factsWait)
	defer cancel()
	f, err := o.Facts(ask, m)
	if err != nil { // whatever it is, the call itself will meet it
		return k
	}
	k.known, k.context, k.parameters = true, f.ContextLength, f.Parameters
	k.thinks, k.sees = slices.Contains(f.Capabilities, "thinking"), slices.Contains(f.Capabilities, "vision")
	k.sanitiser = s.sanitiser(m.Digest, f.Control)
	return k
}

func (s *Models) sanitiser(digest string, control []string) sanitiser {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.sanitisers[digest]; ok {
		return c
	}
	if len(s.order) == maxSanitisers {
		delete(s.sanitisers, s.order[0])
		s.order = s.order[1:]
	}
	c := newSanitiser(control)
	s.sanitisers[digest], s.order = c, append(s.order, digest)
	return c
}

// mode is the way in which a value is asked for. load is how long the model took to load where a probe was what loaded it.
func (s *Models) mode(ctx context.Context, o Ollama, r turnRequest, m ollama.Model, k knowledge) (mode modes.Mode, load time.Duration, _ *failure) {
	if s == nil {
		return modes.Assumed(), 0, nil
	}
	ask, cancel := context.WithTimeoutCause(ctx, listWait, &stall{"no version came within " + listWait.String()})
	server, err := o.Server(ask)
	cancel()
	if err != nil {
		return modes.Mode{}, 0, failureOf(ctx, err)
	}
	learned := r.common.Mode
	r = turnRequest{common: Common{Limits: r.common.Limits, Pace: r.common.Pace, Options: r.common.Options}, prompt: modes.Prompt}
	target := modes.Target{Name: m.Name, Digest: m.Digest, NumCtx: r.common.Options.NumCtx, Levels: k.family.levels}
	loaded := r.common.Pace.Loaded
	mode, err = s.Modes.Find(ctx, server.Version, target, learned, func(ctx context.Context, endpoint string, q ollama.Request) (ollama.Reply, error) {
		reply, err := guarded(ctx, r, r.silence(m), func(ctx context.Context, onChunk func(ollama.Chunk)) (ollama.Reply, error) {
			return over(o, endpoint)(ctx, q, onChunk)
		})
		r.common.Pace.Loaded = r.common.Pace.Loaded || err == nil
		load += reply.Counts.LoadDuration
		return reply, err
	})
	return mode, load, failedTurn(ctx, err, loaded, ollama.Reply{})
}

// over is the call of an endpoint.
func over(o Ollama, endpoint string) func(context.Context, ollama.Request, func(ollama.Chunk)) (ollama.Reply, error) {
	if endpoint == modes.Chat {
		return o.Chat
	}
	return o.Generate
}

// doubt says that an answer was not what its mode promises.
func (s *Models) doubt(r Report) {
	if s != nil {
		s.Modes.Doubt(r.Mode.ServerVersion, r.Digest)
	}
}
