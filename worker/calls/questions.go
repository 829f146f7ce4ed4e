package calls

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// question is something that a model is to judge. It answers in two calls: it thinks freely first, and then puts the
// answer into fields. To ask for a format at once costs small models most of their judgement (judgement §3). Everything
// comes most shared first: questions about one text that are all thought about, and then all filled in, differ in their
// last lines only, and Ollama finds the rest in its cache.
type question struct {
	shared string // what comes first in both calls
	think  string // how to answer freely
	fields string // what the fields mean
	task   string // what is asked; empty where it is among what is shared
	schema *structure.Schema
	free   int // tokens that the free answer may take, thoughts before it not counted
	filled int // tokens that the fields may take
}

// thinkFreely is the first call. The analysis is empty when there is none, and the outcome says why.
func (q question) thinkFreely(ctx context.Context, o Ollama, c Common) (analysis string, out Outcome) {
	out = generateText(ctx, o, turnRequest{common: c, prompt: sections(q.shared, q.think, q.task), thinks: true, budget: q.free})
	analysis, note := analysisOf(out)
	if analysis != "" {
		out.Kind, out.Message, out.Notes = OK, "", append(out.Notes, note...)
	}
	return analysis, out
}

// fillIn is the second call.
func (q question) fillIn(ctx context.Context, o Ollama, c Common, analysis string) Outcome {
	prompt := sections(q.shared, q.fields, q.task, "## Analysis\n"+neutralise(ending(analysis, c.Options.NumCtx)))
	return generateValue(ctx, o, turnRequest{common: c, prompt: prompt, budget: q.filled}, q.schema)
}

// atOnce is both calls as one, for a model that cannot switch thinking off and so thinks in any call.
func (q question) atOnce(ctx context.Context, o Ollama, c Common) Outcome {
	return generateValue(ctx, o, turnRequest{common: c, prompt: sections(q.shared, q.think, q.fields, q.task), budget: q.free + q.filled}, q.schema)
}

// ask puts one question alone.
func (q question) ask(ctx context.Context, o Ollama, c Common, merged bool) Outcome {
	if merged {
		return q.atOnce(ctx, o, c)
	}
	analysis, said := q.thinkFreely(ctx, o, c)
	if said.Kind != OK {
		return said
	}
	c.Pace.Loaded = true
	out := q.fillIn(ctx, o, c, analysis)
	out.Turns, out.Notes = append(said.Turns, out.Turns...), append(said.Notes, out.Notes...)
	return out
}

// noteThoughts is among the notes of an outcome whose free answer was nothing but thoughts: these were taken for it.
const noteThoughts = "the thoughts were taken for the answer"

// analysisOf is what a free answer says; where a limit cut it off, what there is of it, and where it is nothing but
// thoughts, these. It is empty where nothing came, or the call failed otherwise.
func analysisOf(said Outcome) (analysis string, note []string) {
	switch said.Kind {
	case OK:
		return said.Text, nil
	case Truncated, EmptyTurn:
		if said.Text != "" {
			return said.Text, nil
		}
		if n := len(said.Turns); n > 0 && strings.TrimSpace(said.Turns[n-1].Thinking) != "" {
			return strings.TrimSpace(said.Turns[n-1].Thinking), []string{noteThoughts}
		}
	}
	return "", nil
}

// ending is the end of an analysis, where its conclusion stands, if all of it would take too much of the context.
func ending(analysis string, numCtx int) string {
	most := numCtx * bytesPerToken / 3
	if numCtx <= 0 || len(analysis) <= most {
		return analysis
	}
	rest := analysis[len(analysis)-most:]
	for len(rest) > 0 && !utf8.RuneStart(rest[0]) {
		rest = rest[1:]
	}
	return "…" + rest
}

// merges says whether a model gets both calls of a question as one. What goes wrong here the call itself will meet.
func merges(ctx context.Context, o Ollama, c Common) bool {
	m, failed := resolve(ctx, o, c.Model, c.Digest)
	return failed == nil && familyOf(m).levels
}

// bullets lists texts, each as data.
func bullets(heading string, texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(heading)
	for _, t := range texts {
		fmt.Fprintf(&b, "\n- %s", neutralise(strings.TrimSpace(t)))
	}
	return b.String()
}
