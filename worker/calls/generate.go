package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/proto/structure"
	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// CheckSchema says whether raw is a JSON Schema that Generate can be given; the error names the place in it. It refuses
// what is no schema, what no value can satisfy and what is nested too deep. Whether it fits into a context shows only there.
func CheckSchema(raw json.RawMessage) error {
	_, err := structure.Compile(raw)
	return err
}

// Generate makes one text, or one value that the schema accepts.
func Generate(ctx context.Context, o Ollama, r GenerateRequest) Outcome {
	instruction, err := fill(r.Prompt, r.Item)
	if err != nil {
		return Outcome{Kind: BadRequest, Message: err.Error()}
	}
	if strings.TrimSpace(instruction) == "" {
		return Outcome{Kind: BadRequest, Message: "the prompt is empty"}
	}
	t := turnRequest{common: r.Common, images: r.Images, onText: r.OnText}
	if len(r.Schema) == 0 {
		t.prompt = sections(neutralised(r.Context), instruction, feedback(r.Prompts, r.Feedback))
		return generateText(ctx, o, t)
	}
	s, err := structure.Compile(r.Schema)
	if err != nil {
		return Outcome{Kind: BadSchema, Message: err.Error()}
	}
	note := r.Prompts.Fill(prompts.SchemaNote, map[string]string{"schema": s.Text()}) // the format alone does not get into the prompt
	t.prompt = sections(neutralised(r.Context), note, instruction, feedback(r.Prompts, r.Feedback))
	return blameSchema(generateValue(ctx, o, t, s), len(note), r.Options.NumCtx)
}

// blameSchema finds a prompt that was too long because of its schema, size bytes of it: splitting the document cannot help.
func blameSchema(out Outcome, size, numCtx int) Outcome {
	if out.Kind != InputTooLong || len(out.Turns) == 0 {
		return out
	}
	t := out.Turns[len(out.Turns)-1]
	all := len(t.System) + len(t.Prompt)
	if size*2 <= all {
		return out
	}
	out.Kind = BadSchema
	out.Reasons = append(out.Reasons, out.Message)
	out.Message = fmt.Sprintf("the schema takes %d of the prompt's %d bytes, which do not fit into the context of %d tokens", size, all, numCtx)
	if numCtx == 0 {
		out.Message = fmt.Sprintf("the schema takes %d of the prompt's %d bytes, which do not fit into the model's context", size, all)
	}
	return out
}

// feedback words why an earlier answer was sent back. The answer itself is not shown: a model that sees its own error
// repeats it.
func feedback(texts prompts.Set, reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return texts.Fill(prompts.GenerateFeedback, map[string]string{"reasons": "- " + neutralise(strings.Join(reasons, "\n- "))})
}

func generateText(ctx context.Context, o Ollama, r turnRequest) Outcome {
	t, failed := send(ctx, o, r)
	if failed != nil {
		return failed.outcome(t)
	}
	out := Outcome{Kind: OK, Text: structure.WithoutThinking(t.Raw), Notes: t.Notes, Turns: []Turn{t}}
	switch {
	case t.Report.DoneReason == doneLength:
		out.Kind, out.Message = Truncated, cutMessage(t)
	case out.Text == "":
		out.Kind, out.Message = EmptyTurn, messages[EmptyTurn]
	}
	return out
}

// generateValue asks for a value in the way on which the model's server was seen to apply a format. What is not as the mode
// promises counts where the whole schema accepts it all the same, and has the mode probed again.
func generateValue(ctx context.Context, o Ollama, r turnRequest, s *structure.Schema) Outcome {
	r.format = s.Format()
	if r.budget == 0 { // of somebody else's schema: a bound that it leaves open must not cut what used to fit
		r.budget = max(s.Budget(), defaultNumPredict)
	}
	t, failed := send(ctx, o, r)
	if failed != nil {
		return failed.outcome(t)
	}
	answer, thinking := t.Raw, t.Thinking
	if t.Report.Mode.Field == modes.Thinking {
		answer, thinking = t.Thinking, ""
	}
	e := s.Extract(answer, thinking, t.Report.DoneReason == doneLength)
	kind := kindOfFinding[e.Finding]
	message := messages[kind]
	switch {
	case kind == Truncated:
		message = cutMessage(t)
	case kind == OK && t.Report.Mode.Applied() && slices.Contains(e.Notes, structure.NoteRepaired) && !closed(e.From):
		kind, e.Value, message = Truncated, nil, "the answer ended in the middle of its value, although the model says that it stopped by itself"
	}
	if t.Report.Mode.Known() && (len(e.Notes) > 0 || slices.Contains([]Kind{EmptyTurn, TextInsteadOfStructure, SchemaViolation}, kind)) {
		r.common.Models.doubt(t.Report)
	}
	from := e.From
	if from == "" {
		from = answer
	}
	return Outcome{
		Kind: kind, Message: message, Reasons: e.Reasons, Text: from, Value: e.Value, Notes: append(t.Notes, e.Notes...), Turns: []Turn{t},
	}
}

// cutMessage says what a limit of tokens has left of an answer.
func cutMessage(t Turn) string {
	if strings.TrimSpace(t.Raw) == "" && t.Report.Mode.Field != modes.Thinking {
		return "the answer reached its limit of tokens before it began: thinking used them up"
	}
	return messages[Truncated]
}

// closed says whether every bracket and string of a JSON text ends in it.
func closed(text string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return !quoted && depth <= 0
}

// doneLength is Ollama's done_reason for an answer that a limit ended.
const doneLength = "length"

var kindOfFinding = map[structure.Finding]Kind{
	structure.Value: OK, structure.Nothing: EmptyTurn, structure.NoStructure: TextInsteadOfStructure,
	structure.Refused: SchemaViolation, structure.Cut: Truncated,
}

var messages = map[Kind]string{
	Truncated:              "the answer reached its limit of tokens",
	EmptyTurn:              "the model answered nothing",
	TextInsteadOfStructure: "the answer holds no value of the asked shape",
	SchemaViolation:        "the schema refuses the value",
}

// embedGuarded ends a call that takes far longer than all its texts explain.
func embedGuarded(ctx context.Context, o Ollama, r EmbedRequest, m ollama.Model) (e ollama.Embedding, err error) {
	size := 0
	for _, t := range r.Texts {
		size += len(t)
	}
	s := silence{what: "answer", first: limit(r.Limits.FirstToken, patience*r.Pace.expected(m.Size, size)), awaited: r.Pace.awaited(m.Size, size)}
	_, err = guarded(ctx, turnRequest{}, s, func(ctx context.Context, _ func(ollama.Chunk)) (ollama.Reply, error) {
		e, err = o.Embed(ctx, r.Model, r.Texts, r.NumCtx)
		return ollama.Reply{}, err
	})
	return e, err
}

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
		e, err = embedGuarded(ctx, o, r, m)
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
