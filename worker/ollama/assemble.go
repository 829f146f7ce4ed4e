package ollama

import (
	"context"
	"fmt"
	"strings"

	"github.com/ollama/ollama/api"
)

// assembler puts the lines of one stream together.
type assembler struct {
	onChunk        func(Chunk)
	text, thinking strings.Builder
	tokens         int
	done           bool
	reason         string
	counts         Counts
}

func (a *assembler) add(text, thinking string, done bool, reason string, m api.Metrics) {
	a.text.WriteString(text)
	a.thinking.WriteString(thinking)
	if text != "" || thinking != "" {
		a.tokens++
		if a.onChunk != nil {
			a.onChunk(Chunk{Text: text, Thinking: thinking, Tokens: a.tokens})
		}
	}
	if done {
		a.done, a.reason = true, reason
		a.counts = Counts{
			PromptTokens: m.PromptEvalCount, OutputTokens: m.EvalCount, LoadDuration: m.LoadDuration,
			PromptDuration: m.PromptEvalDuration, EvalDuration: m.EvalDuration, TotalDuration: m.TotalDuration,
		}
	}
}

// end is whole only with a done line: the api package hides a connection that broke, and the server itself drops a
// stream without done when one token repeats too often.
func (a *assembler) end(ctx context.Context, op string, err error) (Reply, error) {
	reply := Reply{Text: a.text.String(), Thinking: a.thinking.String(), DoneReason: a.reason, Counts: a.counts}
	switch {
	case err != nil:
		return reply, classify(ctx, op, err)
	case a.done:
		return reply, nil
	case ctx.Err() != nil:
		return reply, fmt.Errorf("%s: %w", op, context.Cause(ctx))
	default:
		return reply, &Error{Kind: StreamBroken, Op: op, Message: fmt.Sprintf("the stream ended after %d pieces without done", a.tokens)}
	}
}

func images(bodies [][]byte) []api.ImageData {
	var out []api.ImageData
	for _, b := range bodies {
		out = append(out, b)
	}
	return out
}

func think(t Think) *api.ThinkValue {
	switch t {
	case ThinkDefault:
		return nil
	case ThinkOff, ThinkOn:
		return &api.ThinkValue{Value: t == ThinkOn}
	default:
		return &api.ThinkValue{Value: string(t)}
	}
}

// options of a turn. With a format the model's own stop strings are switched off: one that occurs inside a value would end
// the answer there, with done_reason stop, and the grammar ends a value by itself.
func (r Request) options() map[string]any {
	m := options(r.Sampling)
	if r.Format != nil {
		m["stop"] = []string{}
	}
	return m
}

func options(s Sampling) map[string]any {
	m := map[string]any{}
	if s.NumCtx > 0 {
		m["num_ctx"] = s.NumCtx
	}
	if s.NumPredict > 0 {
		m["num_predict"], m["seed"] = s.NumPredict, s.Seed
	}
	if s.Temperature != nil {
		m["temperature"] = *s.Temperature
	}
	if s.TopP != nil {
		m["top_p"] = *s.TopP
	}
	if s.TopK != nil {
		m["top_k"] = *s.TopK
	}
	if s.RepeatPenalty != nil {
		m["repeat_penalty"] = *s.RepeatPenalty
	}
	if s.PresencePenalty != nil {
		m["presence_penalty"] = *s.PresencePenalty
	}
	if s.FrequencyPenalty != nil {
		m["frequency_penalty"] = *s.FrequencyPenalty
	}
	return m
}
