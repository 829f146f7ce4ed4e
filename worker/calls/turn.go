package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// turnRequest is one exchange, ready to be sent.
type turnRequest struct {
	common Common
	prompt string
	images [][]byte
	format json.RawMessage
	onText func(string)
	thinks bool // a call for text that is to think first, where the model can
	budget int  // tokens that a value of the format needs; 0: unknown
}

// failure is why a turn counts for nothing; nil when it is whole.
type failure struct {
	kind    Kind
	message string
}

func (f *failure) outcome(turns ...Turn) Outcome {
	out := Outcome{Kind: f.kind, Message: f.message, Turns: turns}
	for _, t := range turns {
		out.Text, out.Notes = t.Raw, t.Notes
	}
	return out
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
	k := r.common.Models.about(ctx, o, model)
	if r.common.Models != nil && !k.sanitiser.known {
		t.Notes = append(t.Notes, NoteControlUnknown)
	}
	if len(r.images) > 0 && k.known && !k.sees { // Ollama leaves them out without a word, and the model makes something up
		return t, &failure{BadRequest, fmt.Sprintf("%s cannot see images: name a model with vision", r.common.Model)}
	}
	r.prompt = k.sanitiser.clean(r.prompt)
	t.Prompt = r.prompt
	endpoint, think, load := modes.Chat, r.thinkFreely(k), time.Duration(0)
	if r.format != nil {
		if t.Report.Mode, load, failed = r.common.Models.mode(ctx, o, r, model, k); failed != nil {
			return t, failed
		}
		endpoint, think = t.Report.Mode.Endpoint, thinkIn(t.Report.Mode, r.common.Options.Think)
	}
	req := ollama.Request{
		Model: r.common.Model, System: r.common.System, Prompt: r.prompt, Images: r.images, Format: r.format,
		Think: think, Sampling: r.sampling(k, think),
	}
	t.Report.Endpoint, t.Report.Sampling, t.Report.Think = "/api/"+endpoint, req.Sampling, req.Think
	r.common.Pace.Loaded = r.common.Pace.Loaded || load > 0
	reply, err := guarded(ctx, r, r.silence(model), func(ctx context.Context, onChunk func(ollama.Chunk)) (ollama.Reply, error) {
		return over(o, endpoint)(ctx, req, onChunk)
	})
	t.Raw, t.Thinking = reply.Text, reply.Thinking
	t.Report.DoneReason, t.Report.Counts = reply.DoneReason, reply.Counts
	t.Report.Counts.LoadDuration += load
	if failed = failedTurn(ctx, err, r.common.Pace.Loaded, reply); failed == nil {
		failed = cutSilently(reply.Counts.PromptTokens, req, k.context)
	}
	return t, failed
}

// NoteControlUnknown is among the notes of an outcome whose model did not tell its control strings: only those of the common
// families were broken in what it was shown.
const NoteControlUnknown = "the control strings of the model are unknown"

// cutSilently finds a prompt that a server has cut although it was told not to: the criteria are what goes missing. Ollama
// 0.17.4 cuts to the context exactly, which a whole prompt could fill only without any room for an answer; newer ones to
// half of it and two tokens (ollama#17427), which counts where no tokenizer makes so few tokens of so many bytes.
func cutSilently(tokens int, req ollama.Request, trained int) *failure {
	const bytesPerToken, slack = 6, 4
	numCtx, size := req.Sampling.NumCtx, len(req.System)+len(req.Prompt)
	if trained > 0 {
		numCtx = min(numCtx, trained)
	}
	half := numCtx/2 + 2
	switch {
	case numCtx <= 0, tokens <= 0: // unknown
		return nil
	case tokens >= numCtx, tokens >= half-slack && tokens <= half+slack && size/tokens >= bytesPerToken:
		return &failure{InputTooLong, fmt.Sprintf("the server read %d tokens of a prompt of %d bytes: it was cut to a context of %d tokens", tokens, size, numCtx)}
	}
	return nil
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

// failedTurn names what went wrong with a turn. A runner that died before a word came, while its model was being loaded,
// lacked memory where the server says so.
func failedTurn(ctx context.Context, err error, loaded bool, reply ollama.Reply) *failure {
	failed := failureOf(ctx, err)
	if failed != nil && failed.kind == ServerError && !loaded && reply.Text == "" && reply.Thinking == "" && ollama.LackedResources(err) {
		failed.kind = OutOfMemory
	}
	return failed
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
