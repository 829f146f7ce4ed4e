package ollamatest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest/answer"
)

// generation is one call for text, of either endpoint.
type generation struct {
	endpoint  string
	asked     string // model name as the client wrote it
	model     Model
	system    string
	user      string        // what the answer is made from
	prompt    string        // all text, for counting
	messages  []api.Message // of a chat
	tools     api.Tools
	calls     []api.ToolCall // that a player answered with
	images    int
	format    json.RawMessage // nil when free
	think     *api.ThinkValue
	options   map[string]any
	truncate  bool
	shift     bool
	stream    bool
	keepAlive *api.Duration
	empty     bool // load or unload
	started   time.Time
	// build makes a line of the endpoint's own type.
	build func(l line) any
}

// line is what one line of an answer says.
type line struct {
	thinking, content string
	done              bool
	reason            string
	calls             []api.ToolCall
	metrics           api.Metrics
}

func (s *Server) generate(w http.ResponseWriter, r *http.Request) {
	var req api.GenerateRequest
	if !decode(w, r, &req) {
		return
	}
	g := &generation{
		endpoint: "generate", asked: req.Model, system: req.System, user: req.Prompt, prompt: req.System + req.Prompt,
		images: len(req.Images), format: req.Format, think: req.Think, options: req.Options,
		truncate: truthy(req.Truncate), shift: truthy(req.Shift), stream: truthy(req.Stream), keepAlive: req.KeepAlive,
		empty: req.Prompt == "",
		build: func(l line) any {
			return api.GenerateResponse{
				Model: req.Model, CreatedAt: time.Now().UTC(), Response: l.content, Thinking: l.thinking,
				Done: l.done, DoneReason: l.reason, Metrics: l.metrics,
			}
		},
	}
	s.serve(w, r, g)
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var req api.ChatRequest
	if !decode(w, r, &req) {
		return
	}
	if req.Model == "" {
		writeError(w, http.StatusBadRequest, "model is required")
		return
	}
	g := &generation{
		endpoint: "chat", asked: req.Model, format: req.Format, think: req.Think, options: req.Options,
		truncate: truthy(req.Truncate), shift: truthy(req.Shift), stream: truthy(req.Stream), keepAlive: req.KeepAlive,
		empty: len(req.Messages) == 0, messages: req.Messages, tools: req.Tools,
		build: func(l line) any {
			return api.ChatResponse{
				Model: req.Model, CreatedAt: time.Now().UTC(),
				Message: api.Message{Role: "assistant", Content: l.content, Thinking: l.thinking, ToolCalls: l.calls},
				Done:    l.done, DoneReason: l.reason, Metrics: l.metrics,
			}
		},
	}
	var all []string
	for _, m := range req.Messages {
		all = append(all, m.Content)
		g.images += len(m.Images)
		switch m.Role {
		case "system":
			g.system = m.Content
		case "user":
			g.user = m.Content
		}
	}
	g.prompt = strings.Join(all, "\n")
	s.serve(w, r, g)
}

// truthy reads an option whose default is true.
func truthy(b *bool) bool { return b == nil || *b }

// serve does what both endpoints share: refuse, load, unload, answer, and keep the log.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, g *generation) {
	g.started = time.Now()
	m, ok := s.find(g.asked)
	if !ok {
		writeError(w, http.StatusNotFound, "model '%s' not found", g.asked)
		return
	}
	g.model = m
	var fault Fault
	entry := Call{Endpoint: g.endpoint, Model: m.Name, Options: g.options, Format: string(g.format)}
	if !g.empty {
		entry.Prompt, entry.Images, entry.Key = g.prompt, g.images, g.key()
		on := freeCall
		if g.structured() {
			on = valueCall
		}
		fault, entry.Repetition = s.dice.roll(on, m.Name, g.prompt, entry.Key)
		entry.Fault = fault.Kind
	}
	calls := s.calls
	if g.prompt == ProbePrompt {
		calls = s.probes
	}
	n := calls.begin(entry)
	status, reason := 499, "" // what stays when the connection is torn
	defer func() { calls.end(n, status, reason) }()
	out := newLines(w, g.stream)
	reason, err := s.run(r.Context(), out, g, fault)
	status = statusOf(err)
	if err != nil && !errors.Is(err, errBroken) {
		out.fail(status, err)
	}
}

// statusError is an error with the HTTP status that Ollama gives it.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &statusError{status, fmt.Sprintf(format, args...)}
}

// errRunnerDied has Ollama's own text (llm/server.go).
var errRunnerDied = refuse(http.StatusInternalServerError, "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details")

// errBroken ends an answer with status 200 and without a last line.
var errBroken = errors.New("stream broken on purpose")

func statusOf(err error) int {
	var se *statusError
	switch {
	case err == nil, errors.Is(err, errBroken):
		return http.StatusOK
	case errors.As(err, &se):
		return se.status
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 499
	case errors.Is(err, errMaxQueue):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// structured says whether the call asks for a value.
func (g *generation) structured() bool {
	return len(g.format) > 0 && !slices.Contains([]string{"null", `""`}, string(g.format))
}

// key identifies the content of the call. Streaming and keep-alive change nothing about an answer.
func (g *generation) key() string {
	options, _ := json.Marshal(g.options) // decoded from JSON, so it cannot fail
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%d\x00%s\x00%s\x00%t", g.endpoint, g.model.Name, g.system, g.prompt, g.images, g.format, options, g.thinks())
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// check refuses what Ollama refuses before it schedules.
func (g *generation) check() error {
	if !g.model.can("completion") {
		return refuse(http.StatusBadRequest, "%q does not support %s", g.asked, g.endpoint)
	}
	return g.checkThink()
}

// run carries one call out and returns the done_reason of a whole answer.
func (s *Server) run(ctx context.Context, out *lines, g *generation, fault Fault) (reason string, err error) {
	if g.empty && g.keepAlive != nil && g.keepAlive.Duration == 0 {
		switch stuck, _ := s.dice.roll(unloading, g.model.Name, "", "unload "+g.model.Name); stuck.Kind {
		case HungUnload:
			<-ctx.Done()
			return "", ctx.Err()
		case "":
			s.sched.expireModel(g.model.Name)
		}
		writeJSON(out.w, http.StatusOK, g.build(line{done: true, reason: "unload"}))
		return "unload", nil
	}
	if err := g.check(); err != nil {
		return "", err
	}
	opts, n, err := s.need(g.model, g.options, g.keepAlive)
	if err != nil {
		return "", err
	}
	n.shift = g.shift
	if fault.Kind == HTTP503 {
		return "", errMaxQueue
	}
	r, release, err := s.sched.acquire(ctx, n)
	if err != nil {
		return "", err
	}
	defer release()
	loaded := time.Now()
	if g.empty {
		writeJSON(out.w, http.StatusOK, g.build(line{done: true, reason: "load"}))
		return "load", nil
	}
	cached, free, err := r.lanes.take(ctx, g.prompt)
	if err != nil {
		return "", err
	}
	defer free()
	if err := s.strike(ctx, g, fault); err != nil {
		return "", err
	}
	return s.answer(ctx, out, g, r, opts, fault, cached, loaded)
}

// need turns a request's options into what the scheduler must provide.
func (s *Server) need(m Model, options map[string]any, keepAlive *api.Duration) (api.Options, need, error) {
	opts := api.DefaultOptions()
	opts.NumCtx, opts.Stop = cmp.Or(m.NumCtx, s.cfg.ContextLength), m.Stop
	if err := opts.FromMap(options); err != nil {
		return opts, need{}, err
	}
	opts.NumCtx = max(opts.NumCtx, 4)
	if m.can("vision") {
		opts.NumCtx = max(opts.NumCtx, 2048)
	}
	_, set := options["num_ctx"]
	n := need{model: m, opts: opts.Runner, ctxSet: set || m.NumCtx > 0}
	if keepAlive != nil {
		n.keepAlive = &keepAlive.Duration
		if lost, _ := s.dice.roll(keeping, m.Name, "", "keep "+m.Name); lost.Kind == KeepAliveLost && keepAlive.Duration != 0 {
			n.keepAlive = nil
		}
	}
	return opts, n, nil
}

// strike does what a fault does before the first token.
func (s *Server) strike(ctx context.Context, g *generation, fault Fault) error {
	switch fault.Kind {
	case HTTP500:
		return refuse(http.StatusInternalServerError, "an error was encountered while running the model: unexpected EOF")
	case OutOfMemory:
		victim := g.model.Name
		if s.cfg.modern() {
			victim = "" // a run-time out-of-memory expires all models from 0.30 on
		}
		s.sched.crash(victim)
		return errRunnerDied
	case Hang:
		<-ctx.Done()
		return ctx.Err()
	case Slow:
		return sleep(ctx, fault.Delay)
	}
	return nil
}

// request is what the answer is made from. At temperature 0 the seed does not matter, as with a real model.
func (g *generation) request(opts api.Options, fault Fault) answer.Request {
	req := answer.Request{System: g.system, Prompt: g.user, Seed: int64(opts.Seed), Reject: fault.Kind == Rejected}
	if opts.Temperature == 0 {
		req.Seed = 0
	}
	return req
}
