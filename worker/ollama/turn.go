package ollama

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ollama/ollama/api"
)

// Think says whether a model that can think should.
type Think string

// The values of Think. The levels are for models that take levels (gpt-oss); others refuse them.
const (
	ThinkDefault Think = "" // as the model has it
	ThinkOff     Think = "off"
	ThinkOn      Think = "on"
	ThinkLow     Think = "low"
	ThinkMedium  Think = "medium"
	ThinkHigh    Think = "high"
)

// Sampling is sent with every turn. A nil pointer leaves the value to the model.
type Sampling struct {
	NumCtx        int      // tokens of context; a change reloads the model; 0 leaves it to the server
	NumPredict    int      // tokens at most; must be above 0, else Ollama runs to ten times the context
	Seed          int64    // same prompt and seed give the same bytes
	Temperature   *float64 // 0 ignores the seed
	TopP          *float64
	TopK          *int
	RepeatPenalty *float64 // the old engine's default of 1.1 punishes JSON's own punctuation

	PresencePenalty  *float64
	FrequencyPenalty *float64
}

// Request is one self-contained turn.
type Request struct {
	Model    string
	System   string
	Prompt   string
	Images   [][]byte
	Format   json.RawMessage // a JSON schema that the server's grammar handles safely; nil for free text
	Think    Think
	Sampling Sampling
}

// Chunk is a piece of a running answer.
type Chunk struct {
	Text     string
	Thinking string
	Tokens   int // pieces received so far, this one included: about one token each
}

// Reply is a whole answer: the server said done.
type Reply struct {
	Text       string
	Thinking   string
	DoneReason string // stop, length, load, unload
	Counts     Counts
}

// Counts is what the server measured.
type Counts struct {
	PromptTokens   int           // of the whole prompt, cached or not
	OutputTokens   int           // of the last pass where thinking and answer are two
	LoadDuration   time.Duration // 0 when the model was loaded
	PromptDuration time.Duration // only this shows that a prefix was cached
	EvalDuration   time.Duration
	TotalDuration  time.Duration
}

// Generate runs one turn over /api/generate. onChunk may be nil; it is called from the calling goroutine. An error
// comes with what had arrived until then.
func (c *Client) Generate(ctx context.Context, r Request, onChunk func(Chunk)) (Reply, error) {
	a := assembler{onChunk: onChunk}
	no := false
	err := c.api.Generate(ctx, &api.GenerateRequest{
		Model: r.Model, System: r.System, Prompt: r.Prompt, Images: images(r.Images), Format: r.Format,
		Think: think(r.Think), Options: r.options(), KeepAlive: &c.keep, Truncate: &no, Shift: &no,
	}, func(g api.GenerateResponse) error {
		a.add(g.Response, g.Thinking, g.Done, g.DoneReason, g.Metrics)
		return nil
	})
	return a.end(ctx, "generate with "+r.Model, err)
}

// Chat runs one turn over /api/chat: the system text and one user message. See Generate.
func (c *Client) Chat(ctx context.Context, r Request, onChunk func(Chunk)) (Reply, error) {
	a := assembler{onChunk: onChunk}
	no := false
	var messages []api.Message
	if r.System != "" {
		messages = append(messages, api.Message{Role: "system", Content: r.System})
	}
	messages = append(messages, api.Message{Role: "user", Content: r.Prompt, Images: images(r.Images)})
	err := c.api.Chat(ctx, &api.ChatRequest{
		Model: r.Model, Messages: messages, Format: r.Format,
		Think: think(r.Think), Options: r.options(), KeepAlive: &c.keep, Truncate: &no, Shift: &no,
	}, func(m api.ChatResponse) error {
		a.add(m.Message.Content, m.Message.Thinking, m.Done, m.DoneReason, m.Metrics)
		return nil
	})
	return a.end(ctx, "chat with "+r.Model, err)
}

// Embedding is the vectors of some texts, in their order.
type Embedding struct {
	Vectors [][]float32
	Counts  Counts // no output tokens, no eval duration
}

// Embed computes vectors; a text longer than the context is InputTooLong.
func (c *Client) Embed(ctx context.Context, name string, texts []string, numCtx int) (Embedding, error) {
	op := "embed with " + name
	no := false
	r, err := c.api.Embed(ctx, &api.EmbedRequest{
		Model: name, Input: texts, KeepAlive: &c.keep, Truncate: &no, Options: options(Sampling{NumCtx: numCtx}),
	})
	if err != nil {
		return Embedding{}, classify(ctx, op, err)
	}
	if len(r.Embeddings) != len(texts) {
		return Embedding{}, &Error{Kind: StreamBroken, Op: op, Message: "not one vector for each text"}
	}
	return Embedding{Vectors: r.Embeddings, Counts: Counts{
		PromptTokens: r.PromptEvalCount, LoadDuration: r.LoadDuration, TotalDuration: r.TotalDuration,
	}}, nil
}
