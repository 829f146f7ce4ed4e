package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// defaultNumPredict is how many tokens an answer may have where a request says nothing; it also ends one that loops.
const defaultNumPredict = 4096

// turnRequest is one exchange, ready to be sent.
type turnRequest struct {
	common Common
	prompt string
	images [][]byte
	format json.RawMessage
	onText func(string)
}

// failure is why a turn counts for nothing; nil when it is whole.
type failure struct {
	kind    Kind
	message string
}

func (f *failure) outcome(turns ...Turn) Outcome {
	return Outcome{Kind: f.kind, Message: f.message, Turns: turns}
}

// send runs one turn. The Turn is filled as far as things went.
func send(ctx context.Context, o Ollama, r turnRequest) (Turn, *failure) {
	t := Turn{System: r.common.System, Prompt: r.prompt, Format: r.format}
	t.Report = Report{Model: r.common.Model, Structured: r.format != nil}
	model, failed := resolve(ctx, o, r.common.Model, r.common.Digest)
	if failed != nil {
		return t, failed
	}
	t.Report.Digest = model.Digest
	req := ollama.Request{
		Model: r.common.Model, System: r.common.System, Prompt: r.prompt, Images: r.images, Format: r.format,
		Think: r.common.Options.Think, Sampling: sampling(r.common.Options, r.common.Attempt, r.format != nil),
	}
	run := o.Chat
	t.Report.Endpoint = "/api/chat"
	if r.format != nil {
		run = structured(o, model, &req, &t.Report)
	}
	t.Report.Sampling, t.Report.Think = req.Sampling, req.Think
	reply, err := guarded(ctx, r, r.silence(model), func(ctx context.Context, onChunk func(ollama.Chunk)) (ollama.Reply, error) {
		return run(ctx, req, onChunk)
	})
	t.Raw, t.Thinking = reply.Text, reply.Thinking
	t.Report.DoneReason, t.Report.Counts = reply.DoneReason, reply.Counts
	failed = failureOf(ctx, err)
	if failed != nil && failed.kind == ServerError && !r.common.Pace.Loaded && t.Raw == "" && t.Thinking == "" && ollama.LackedResources(err) {
		failed.kind = OutOfMemory
	}
	return t, failed
}

// structured picks the way on which Ollama 0.17.4 really applies a format: /api/generate with thinking off passed for
// every kind of model but the harmony ones (gpt-oss), which cannot switch thinking off and need /api/chat.
func structured(o Ollama, m ollama.Model, req *ollama.Request, report *Report) func(context.Context, ollama.Request, func(ollama.Chunk)) (ollama.Reply, error) {
	if strings.HasPrefix(m.Family, "gptoss") || strings.HasPrefix(m.Family, "gpt-oss") {
		if req.Think == ollama.ThinkDefault || req.Think == ollama.ThinkOff {
			req.Think = ollama.ThinkLow
		}
		return o.Chat
	}
	if req.Think == ollama.ThinkDefault {
		req.Think = ollama.ThinkOff
	}
	report.Endpoint = "/api/generate"
	return o.Generate
}

// listWait bounds the question which models there are; nothing of it has to be loaded.
const listWait = time.Minute

func resolve(ctx context.Context, o Ollama, name, digest string) (ollama.Model, *failure) {
	ask, cancel := context.WithTimeoutCause(ctx, listWait, &stall{fmt.Sprintf("no list of models came within %s", listWait)})
	defer cancel()
	m, err := o.Resolve(ask, name)
	if err != nil {
		return m, failureOf(ctx, err)
	}
	if digest != "" && m.Digest != digest {
		return m, &failure{ModelMissing, fmt.Sprintf("%s is here with digest %.12s, not %.12s", name, m.Digest, digest)}
	}
	return m, nil
}

// failureOf names what went wrong. An ended context wins: whatever else is reported then is its consequence.
func failureOf(ctx context.Context, err error) *failure {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStalled):
		return &failure{Stalled, err.Error()}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &failure{Deadline, "the deadline of the call passed"}
	case ctx.Err() != nil:
		return &failure{Cancelled, "the call was cancelled"}
	default:
		return &failure{kindOf(ollama.KindOf(err)), err.Error()}
	}
}

// sampling settles what the request left open. The first try of a structured call is greedy. Greedy answers do not
// depend on the seed and sampled ones do, so every later try gets a new seed and at least the next temperature.
func sampling(o Options, attempt int, isStructured bool) ollama.Sampling {
	s := ollama.Sampling{
		NumCtx: o.NumCtx, NumPredict: o.NumPredict, Seed: o.Seed, Temperature: o.Temperature, TopP: o.TopP, TopK: o.TopK,
	}
	if s.NumPredict <= 0 {
		s.NumPredict = defaultNumPredict
		if o.NumCtx > 0 {
			s.NumPredict = min(s.NumPredict, o.NumCtx)
		}
	}
	if isStructured {
		one := 1.0
		s.RepeatPenalty = &one // the default of 1.1 punishes JSON's own punctuation
		if s.Temperature == nil {
			zero := 0.0
			s.Temperature = &zero
		}
	}
	if retry := attempt - 1; retry > 0 {
		s.Seed += int64(retry)
		floor := []float64{0.3, 0.6}[min(retry, 2)-1]
		if s.Temperature != nil && *s.Temperature < floor {
			s.Temperature = &floor
		}
	}
	s.Seed &= 1<<31 - 1 // the runners take 32 bits, and -1 would mean random
	return s
}
