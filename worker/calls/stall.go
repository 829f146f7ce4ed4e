package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// How long a call may be silent. The assumed rates are those of a slow machine, so that what is slow but works is never
// ended: a disk of a small board, and a prompt read by a processor alone.
const (
	assumedLoadRate   = 0.2e9 // bytes a second
	assumedPromptRate = 50    // tokens a second
	bytesPerToken     = 3     // English has four, other scripts and code fewer
	bytesPerImage     = 1000 * bytesPerToken
	unexpected        = time.Minute // what a load and a prompt do not explain: waiting for a slot, an eviction
	patience          = 4           // times what is expected
	mostFirstToken    = 15 * time.Minute
	defaultNextToken  = time.Minute
)

// Pace is what is known about how fast a model gets to its first token. The zero value knows nothing.
type Pace struct {
	Loaded     bool    // with the context that is asked for
	LoadRate   float64 // bytes a second, as measured; 0: unknown
	PromptRate float64 // tokens a second, as measured; 0: unknown
}

// expected is how long a model of size bytes may take, with such a prompt, on a machine that is slow but works.
func (p Pace) expected(size int64, promptBytes int) time.Duration {
	prompt, load := p.PromptRate, p.LoadRate
	if prompt <= 0 {
		prompt = assumedPromptRate
	}
	if load <= 0 {
		load = assumedLoadRate
	}
	seconds := float64(promptBytes) / bytesPerToken / prompt
	if !p.Loaded {
		seconds += float64(size) / load
	}
	const most = 30 * 24 * 3600 // keeps a duration from overflowing
	return unexpected + time.Duration(min(seconds, most)*float64(time.Second))
}

// firstToken is how long the first token may take.
func (p Pace) firstToken(size int64, promptBytes int) time.Duration {
	return min(patience*p.expected(size, promptBytes), mostFirstToken)
}

// errStalled ends a silent call.
var errStalled = errors.New("stalled")

// stall says what did not come.
type stall struct{ message string }

func (s *stall) Error() string { return s.message }
func (s *stall) Unwrap() error { return errStalled }

// silence is how long a call may wait for its first token, and for each further one.
type silence struct {
	first, next time.Duration
	what        string // that comes first
	awaited     string // what has to happen before
}

func (r turnRequest) silence(m ollama.Model) silence {
	size := len(r.common.System) + len(r.prompt) + bytesPerImage*len(r.images)
	s := silence{what: "first token", next: limit(r.common.Limits.NextToken, defaultNextToken), awaited: r.common.Pace.awaited(m.Size, size)}
	s.first = limit(r.common.Limits.FirstToken, r.common.Pace.firstToken(m.Size, size))
	return s
}

// awaited words what has to happen before the first token.
func (p Pace) awaited(size int64, promptBytes int) string {
	prompt := fmt.Sprintf("a prompt of about %d tokens", promptBytes/bytesPerToken)
	if p.Loaded {
		return prompt + " for a model that was loaded"
	}
	return fmt.Sprintf("%s and the load of %.1f GB", prompt, float64(size)/1e9)
}

// guarded ends a call that goes silent, and passes the pieces on.
func guarded(ctx context.Context, r turnRequest, s silence, run func(context.Context, func(ollama.Chunk)) (ollama.Reply, error)) (ollama.Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(s.first, func() { cancel(errStalled) })
	defer timer.Stop()
	came := 0
	reply, err := run(ctx, func(c ollama.Chunk) {
		timer.Reset(s.next)
		came = c.Tokens
		if r.common.Progress != nil {
			r.common.Progress(c.Tokens)
		}
		if r.onText != nil && c.Text != "" {
			r.onText(c.Text)
		}
	})
	switch {
	case err == nil || !errors.Is(context.Cause(ctx), errStalled):
		return reply, err
	case came == 0:
		return reply, &stall{fmt.Sprintf("no %s came within %s: it waited for %s", s.what, s.first.Round(time.Second), s.awaited)}
	default:
		return reply, &stall{fmt.Sprintf("no further token came within %s, after %d", s.next.Round(time.Second), came)}
	}
}

func limit(given, otherwise time.Duration) time.Duration {
	switch {
	case given == 0:
		return otherwise
	case given < 0:
		return time.Duration(1<<63 - 1)
	default:
		return given
	}
}
