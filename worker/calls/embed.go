package calls

import (
	"context"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Embed computes one vector per text. A text longer than the context is InputTooLong, never cut.
func Embed(ctx context.Context, o Ollama, r EmbedRequest) EmbedResult {
	out := EmbedResult{Report: Report{Model: r.Model, Endpoint: "/api/embed", Sampling: ollama.Sampling{NumCtx: r.NumCtx}}}
	if len(r.Texts) == 0 {
		out.Kind, out.Message = BadRequest, "no text to embed"
		return out
	}
	m, failed := resolve(ctx, o, r.Model, r.Digest)
	if failed == nil {
		out.Report.Digest = m.Digest
		var e ollama.Embedding
		var err error
		e, err = o.Embed(ctx, r.Model, r.Texts, r.NumCtx)
		failed = failureOf(ctx, err)
		out.Vectors, out.Report.Counts = e.Vectors, e.Counts
	}
	if failed != nil {
		out.Kind, out.Message, out.Vectors = failed.kind, failed.message, nil
		return out
	}
	out.Kind = OK
	return out
}
