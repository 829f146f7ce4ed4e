package ollamatest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest/answer"
)

// tokenRunes is how many characters make a token here; real tokenizers average about four for English.
const tokenRunes = 4

// tokens cuts text into tokens; joined they are the text again.
func tokens(text string) []string {
	var out []string
	start, n := 0, 0
	for i := range text {
		if n == tokenRunes {
			out = append(out, text[start:i])
			start, n = i, 0
		}
		n++
	}
	if n > 0 {
		out = append(out, text[start:])
	}
	return out
}

// output is an answer before it is sent.
type output struct {
	thinking, content []string // tokens
	evaluated         int      // eval_count
	reason            string   // done_reason
	ending            FaultKind
}

// answer sends the answer at the configured rates.
func (s *Server) answer(ctx context.Context, out *lines, g *generation, r *runner, opts api.Options, fault Fault, cached int, loaded time.Time) (string, error) {
	prompt := len(tokens(g.prompt))
	if prompt > r.context {
		if !g.truncate && fault.Kind != SilentCut {
			return "", refuse(http.StatusBadRequest, "the input length exceeds the context length")
		}
		prompt = r.context
		if s.cfg.modern() { // ollama#17427
			prompt = r.context/2 + 2
		}
	}
	o, err := s.compose(g, opts, fault, r.context-prompt)
	if err != nil {
		return "", s.harm(ctx, g, err)
	}
	prefill := time.Now()
	fresh := max(prompt-cached/tokenRunes, 1)
	if err := sleep(ctx, forTokens(fresh, s.promptRate(g.model), r.slowdown)); err != nil {
		return "", err
	}
	slowdown := r.slowdown
	if fault.Kind == GPULost {
		slowdown = s.cfg.Slowdown
	}
	decoding := time.Now()
	var all line
	for i, piece := range append(o.thinking, o.content...) {
		due := decoding.Add(forTokens(i+1, s.decodeRate(g.model), slowdown))
		if err := sleep(ctx, time.Until(due)); err != nil {
			return "", err
		}
		l := line{content: piece}
		if i < len(o.thinking) {
			l = line{thinking: piece}
		}
		all.thinking += l.thinking
		all.content += l.content
		if g.stream {
			out.send(g.build(l))
		}
	}
	return finish(out, g, o, all, api.Metrics{
		TotalDuration: atLeast(time.Since(g.started)), LoadDuration: atLeast(loaded.Sub(g.started)),
		PromptEvalCount: prompt, PromptEvalDuration: atLeast(decoding.Sub(prefill)),
		EvalCount: o.evaluated, EvalDuration: atLeast(time.Since(decoding)),
	})
}

// finish sends the last line, or breaks off where a fault wants it.
func finish(out *lines, g *generation, o output, all line, m api.Metrics) (string, error) {
	last := line{done: true, reason: o.reason, metrics: m, calls: g.calls}
	if !g.stream {
		last.thinking, last.content = all.thinking, all.content
	}
	switch o.ending {
	case ConnectionReset:
		panic(http.ErrAbortHandler) // net/http tears the connection without a word
	case StreamBroken, RepeatAbort:
		if !g.stream {
			out.send(g.build(all)) // 200 with done false, as Ollama answers when it drops a repeating stream
			out.flush()
		}
		return "", errBroken
	}
	out.send(g.build(last))
	out.flush()
	return o.reason, nil
}

// compose makes the answer: what the model would say, what the fault makes of it, and what num_predict and the window
// leave of it. room is how many tokens the window has left.
func (s *Server) compose(g *generation, opts api.Options, fault Fault, room int) (output, error) {
	thinking, content, err := s.say(g, opts, fault)
	if err != nil {
		return output{}, err
	}
	o := output{thinking: tokens(thinking), content: tokens(content), reason: "stop", ending: fault.Kind}
	limit := len(o.thinking) + len(o.content)
	if opts.NumPredict > 0 {
		limit = opts.NumPredict
	}
	if !g.shift {
		limit = min(limit, max(room, 1))
	}
	o.cut(limit, g.twoPasses())
	switch fault.Kind {
	case Truncated:
		o.content, o.reason = o.content[:len(o.content)/2], "length"
	case StreamBroken, ConnectionReset:
		o.content = o.content[:len(o.content)/2]
	case RepeatAbort:
		o.content = append(o.content[:len(o.content)/2], slices.Repeat([]string{"\n"}, 31)...)
	}
	o.evaluated = len(o.thinking) + len(o.content)
	for _, c := range g.calls {
		o.evaluated += len(tokens(c.Function.Name + c.Function.Arguments.String()))
	}
	if g.twoPasses() {
		o.evaluated = len(o.content) // only the second pass is reported
	}
	return o, nil
}

// cut keeps limit tokens. With two passes each has the whole limit, and a first one that is used up ends the answer.
func (o *output) cut(limit int, twoPasses bool) {
	if len(o.thinking) > limit {
		o.thinking, o.content, o.reason = o.thinking[:limit], nil, "length"
		return
	}
	if !twoPasses {
		limit -= len(o.thinking)
	}
	if len(o.content) > limit {
		o.content, o.reason = o.content[:limit], "length"
	}
}

// twoPasses: chat with format and thinking runs first free, then with the grammar (research: judgement §2.1).
func (g *generation) twoPasses() bool {
	return g.endpoint == "chat" && g.structured() && g.thinks()
}

// say is what the model would answer, struck by the fault.
func (s *Server) say(g *generation, opts api.Options, fault Fault) (thinking, content string, err error) {
	if said, ok := s.played(g, opts); ok {
		g.calls = said.Calls
		return said.Thinking, said.Content, nil
	}
	req := g.request(opts, fault)
	if g.thinks() {
		thinking = answer.Thoughts(req)
	}
	if content, err = s.content(g, req); err != nil {
		return "", "", err
	}
	switch fault.Kind {
	case EmptyTurn:
		return "", "\n\n", nil
	case ThinkingOnly:
		return answer.Thoughts(req), "", nil
	case TextForValue:
		return thinking, answer.Text(req), nil
	case SchemaViolation:
		return thinking, `{"unexpected":true}`, nil
	case MisplacedValue:
		return content, "", nil
	}
	thinking, content = g.route(thinking, content)
	return thinking, g.stopped(content, opts.Stop), nil
}

func (s *Server) content(g *generation, req answer.Request) (string, error) {
	if !g.structured() || g.unapplied(s.cfg) {
		return answer.Text(req), nil
	}
	schema := g.schema(s.cfg)
	switch {
	case string(schema) == `"json"`:
		schema = []byte(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
	case schema[0] != '{':
		return "", refuse(http.StatusInternalServerError, `invalid format: %q; expected "json" or a valid JSON Schema object`, schema)
	}
	value, err := answer.Value(req, schema)
	return string(value), err
}

// harm does to the server what the schema would do to a real one; 0.30 and newer refuse all of them.
func (s *Server) harm(ctx context.Context, g *generation, err error) error {
	var r *answer.Refusal
	if !errors.As(err, &r) {
		return err
	}
	switch {
	case s.cfg.modern() || r.Harm == answer.Refuses:
		return refuse(http.StatusInternalServerError, "invalid JSON schema in format")
	case r.Harm == answer.Hangs:
		<-ctx.Done()
		return ctx.Err()
	case r.Harm == answer.KillsRunner:
		s.sched.crash(g.model.Name)
		return errRunnerDied
	}
	s.sched.crash("")
	panic(http.ErrAbortHandler) // the daemon is gone, and with it the connection
}

func (s *Server) promptRate(m Model) float64 { return orDefault(m.PromptRate, s.cfg.PromptRate) }
func (s *Server) decodeRate(m Model) float64 { return orDefault(m.DecodeRate, s.cfg.DecodeRate) }

func orDefault(own, common float64) float64 {
	if own > 0 {
		return own
	}
	return common
}

// forTokens is the time n tokens take; a rate of 0 takes none.
func forTokens(n int, rate, slowdown float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / rate * slowdown * float64(time.Second))
}

// atLeast keeps a duration from being left out of the JSON.
func atLeast(d time.Duration) time.Duration { return max(d, 1) }
