package calls

import (
	"context"
	"strings"
)

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
		t.prompt = sections(neutralised(r.Context), instruction, feedback(r.Feedback))
		return generateText(ctx, o, t)
	}
	s, err := compileSchema(r.Schema)
	if err != nil {
		return Outcome{Kind: BadSchema, Message: err.Error()}
	}
	t.prompt = sections(neutralised(r.Context), schemaNote(s.tree.encode()), instruction, feedback(r.Feedback))
	return generateValue(ctx, o, t, s)
}

// feedback words why an earlier answer was sent back. The answer itself is not shown: a model that sees its own error
// repeats it.
func feedback(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return generateFeedback + "\n- " + neutralise(strings.Join(reasons, "\n- "))
}

func generateText(ctx context.Context, o Ollama, r turnRequest) Outcome {
	t, failed := send(ctx, o, r)
	if failed != nil {
		out := failed.outcome(t)
		out.Text = t.Raw
		return out
	}
	out := Outcome{Kind: OK, Text: withoutThinking(t.Raw), Turns: []Turn{t}}
	switch {
	case t.Report.DoneReason == doneLength:
		out.Kind, out.Message = Truncated, "the answer reached its limit of tokens"
	case out.Text == "":
		out.Kind, out.Message = EmptyTurn, "the model answered nothing"
	}
	return out
}

func generateValue(ctx context.Context, o Ollama, r turnRequest, s *schema) Outcome {
	r.format = s.format
	t, failed := send(ctx, o, r)
	if failed != nil {
		out := failed.outcome(t)
		out.Text = t.Raw
		return out
	}
	e := extract(s, t.Raw, t.Thinking, t.Report.DoneReason)
	return Outcome{
		Kind: e.kind, Message: explain(e.kind), Reasons: e.reasons, Text: firstNonEmpty(e.from, t.Raw),
		Value: e.value, Notes: e.notes, Turns: []Turn{t},
	}
}

// explain words a kind that an extraction ends with.
func explain(k Kind) string {
	switch k {
	case Truncated:
		return "the answer was cut off"
	case EmptyTurn:
		return "the model answered nothing"
	case TextInsteadOfStructure:
		return "the answer holds no value of the asked shape"
	case SchemaViolation:
		return "the schema refuses the value"
	default:
		return ""
	}
}
