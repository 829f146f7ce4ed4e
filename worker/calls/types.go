package calls

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Ollama is what the calls need of a server; *ollama.Client is one.
type Ollama interface {
	Server(ctx context.Context) (ollama.Server, error)
	Resolve(ctx context.Context, name string) (ollama.Model, error)
	Facts(ctx context.Context, m ollama.Model) (ollama.Facts, error)
	Generate(ctx context.Context, r ollama.Request, onChunk func(ollama.Chunk)) (ollama.Reply, error)
	Chat(ctx context.Context, r ollama.Request, onChunk func(ollama.Chunk)) (ollama.Reply, error)
	Embed(ctx context.Context, model string, texts []string, numCtx int) (ollama.Embedding, error)
}

// Options are the model's settings. A nil pointer leaves a value to us (structured calls) or to the model (free text).
type Options struct {
	NumCtx      int  // tokens; one value per model in a cluster, since a change reloads it; 0 leaves it to the server
	NumPredict  int  // tokens of answer at most; 0: defaultNumPredict
	Room        bool // twice as many, after an answer that was cut off
	Seed        int64
	Temperature *float64
	TopP        *float64
	TopK        *int
	Think       ollama.Think // of calls for text; a call for a value thinks as its mode needs it
}

// Limits say when a silent call counts as stalled. Zero takes the default, negative switches the limit off. The
// deadline of a call is its context's.
type Limits struct {
	FirstToken time.Duration // from sending to the first token; default: 4 times what Pace lets expect, at most 15 min
	NextToken  time.Duration // between tokens; default 1 min
}

// Common is what every generating call carries. Texts are sent most shared first, so that the prefix stays cached.
type Common struct {
	Model   string
	Digest  string // when set, a model of another digest counts as missing
	Attempt int    // 1 for the first try; higher ones vary seed and temperature
	System  string
	Context []string // texts shared by many calls, sent before the prompt, byte for byte the same each time
	Options Options
	Limits  Limits
	Pace    Pace
	Models  *Models     // what has been found out about models; nil: nothing, and values are asked for in the assumed mode
	Mode    modes.Mode  // what somebody else found out about this one; may be zero
	Prompts prompts.Set // texts in the place of the worker's own; zero: none

	// Progress, when set, is told the pieces received so far, about one per token. It is called from the calling goroutine.
	Progress func(tokens int)
}

// GenerateRequest asks for a text, or with a Schema for a value.
type GenerateRequest struct {
	Common
	Prompt string          // may hold {{item}}; any other {{…}} is an error
	Item   *string         // the text that {{item}} stands for; nil: the prompt may not use it. Braces inside are left alone
	Images [][]byte        // for models that see
	Schema json.RawMessage // JSON Schema; nil asks for free text
	// Feedback is why an earlier answer was sent back, each reason checked by code; nil on a first try.
	Feedback []string
	OnText   func(string) // told each piece of text as it comes; may be nil
}

// EmbedRequest asks for vectors.
type EmbedRequest struct {
	Model  string
	Digest string
	Texts  []string
	NumCtx int    // tokens; 0 leaves it to the server
	Limits Limits // FirstToken bounds the whole call; by default there is no upper bound on what many texts may take
	Pace   Pace
}

// Outcome is how a generating call ended. A failure carries all that came back as well.
type Outcome struct {
	Kind    Kind
	Message string          // what went wrong, for a person; empty when OK
	Reasons []string        // every single reason where there are several: schema violations, plan rules
	Text    string          // the answer without thinking; for structured calls what the value was taken from
	Value   json.RawMessage // the validated value, as the model wrote it or repaired; nil for free text and failures
	Notes   []string        // what was bent to get there: "repaired", "value came as thinking"
	Turns   []Turn          // the exchanges with the model, in order: one, or one per criterion of an Evaluate
}

// Turn is one exchange with the model: what was sent and what came back, failures too.
type Turn struct {
	System   string          // as sent
	Prompt   string          // as sent
	Format   json.RawMessage // as sent; nil when there was none
	Raw      string          // the answer as it came
	Thinking string          // the thinking field as it came
	Notes    []string        // what a reader should know about the exchange
	Report   Report
}

// Report says what ran.
type Report struct {
	Model      string
	Digest     string     // empty when the call ended before it was known
	Endpoint   string     // /api/generate, /api/chat or /api/embed
	Structured bool       // a format was sent
	Mode       modes.Mode // that a value was asked for in; zero for text
	Sampling   ollama.Sampling
	Think      ollama.Think
	DoneReason string // stop or length; empty when the answer never was done
	Counts     ollama.Counts
}

// EmbedResult is the vectors, or why there are none.
type EmbedResult struct {
	Kind    Kind
	Message string
	Vectors [][]float32 // one per text, in order
	Report  Report
}

// Report sums up all turns of a call: counts and durations are added, the rest is the last turn's.
func (o Outcome) Report() Report {
	var r Report
	var sum ollama.Counts
	for _, t := range o.Turns {
		r = t.Report
		sum.PromptTokens += r.Counts.PromptTokens
		sum.OutputTokens += r.Counts.OutputTokens
		sum.LoadDuration += r.Counts.LoadDuration
		sum.PromptDuration += r.Counts.PromptDuration
		sum.EvalDuration += r.Counts.EvalDuration
		sum.TotalDuration += r.Counts.TotalDuration
	}
	r.Counts = sum
	return r
}
