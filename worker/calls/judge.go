package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/proto/structure"
	"github.com/loopkeeper/loopkeeper/worker/calls/evidence"
)

// judge asks about one subject.
type judge struct {
	o      Ollama
	r      EvaluateRequest
	lines  evidence.Lines
	names  []string // of the texts, in order
	schema *structure.Schema
	said   [][]said // what was named as evidence, by criterion
}

// inTwoCalls has all criteria thought about before the first is filled in, so that each call finds all but its last lines
// in the cache.
func (j *judge) inTwoCalls(ctx context.Context, e *Evaluation) {
	var thoughts []string
	for _, c := range j.r.Criteria {
		analysis, out := j.question(j.whole(), c, nil).thinkFreely(ctx, j.o, j.r.Common)
		if !e.took(c, out) {
			return
		}
		thoughts = append(thoughts, analysis)
		j.r.Pace.Loaded = true
	}
	for i, c := range j.r.Criteria {
		if !j.answered(e, c, j.question(j.whole(), c, nil).fillIn(ctx, j.o, j.r.Common, thoughts[i])) {
			return
		}
	}
}

func (j *judge) atOnce(ctx context.Context, e *Evaluation) {
	for _, c := range j.r.Criteria {
		if !j.answered(e, c, j.question(j.whole(), c, nil).atOnce(ctx, j.o, j.r.Common)) {
			return
		}
		j.r.Pace.Loaded = true
	}
}

// answered adds the answer to the next criterion.
func (j *judge) answered(e *Evaluation, c Criterion, out Outcome) bool {
	if !e.took(c, out) {
		return false
	}
	a, named, err := j.read(c, out.Value)
	if err != nil { // cannot be: the schema accepted it
		e.Kind, e.Message, e.Value = SchemaViolation, err.Error(), nil
		return false
	}
	e.Answers, j.said = append(e.Answers, a), append(j.said, named)
	return true
}

// again asks once more where all that an answer rests on is nowhere. It comes last, because the excerpt that it shows
// drives the whole text out of the cache.
func (j *judge) again(ctx context.Context, e *Evaluation) {
	for i, c := range j.r.Criteria {
		if !e.Answers[i].groundless() {
			continue
		}
		q := j.question(j.excerpt(c, e.Answers[i], j.said[i]), c, e.Answers[i].Missing)
		out := q.ask(ctx, j.o, j.r.Common, merges(ctx, j.o, j.r.Common))
		if !e.took(c, out) {
			return
		}
		if a, _, err := j.read(c, out.Value); err == nil && a.Counted != CannotTell {
			e.Answers[i] = a
		}
	}
}

// said is evidence as the model names it.
type said struct {
	Line  int    `json:"a_line"`
	Words string `json:"b_words"`
}

func newJudge(o Ollama, r EvaluateRequest) *judge {
	j := &judge{o: o, r: r}
	var texts []evidence.Text
	for i, s := range r.Sources {
		name := s.Name
		if name == "" || name == "subject" {
			name = fmt.Sprintf("source %d", i+1)
		}
		texts = append(texts, evidence.Text{Name: name, Body: s.Text, Shown: neutralise(s.Text)})
	}
	texts = append(texts, evidence.Text{Name: "subject", Body: r.Subject, Shown: neutralise(r.Subject)})
	for _, t := range texts {
		j.names = append(j.names, t.Name)
	}
	j.lines = evidence.Number(asShown, texts...)
	return j
}

// whole is all that a judge reads, most shared first. It is the same bytes for every criterion of the subject.
func (j *judge) whole() string {
	return j.material(j.lines.Show)
}

// excerpt is what a judge reads when it is asked again: fewer lines make it more likely that it copies them right.
func (j *judge) excerpt(c Criterion, a Answer, named []said) string {
	var lines []int
	for _, s := range named {
		lines = append(lines, s.Line)
	}
	shown := j.lines.Excerpt(lines, c.Text+" "+strings.Join(a.Missing, " "))
	return j.material(func(text int) string { return shown[text] })
}

func (j *judge) material(show func(text int) string) string {
	parts := []string{j.r.Prompts.Text(prompts.CheckRole), neutralised(j.r.Context)}
	last := len(j.names) - 1
	for i, name := range j.names[:last] {
		parts = append(parts, fmt.Sprintf("## Source %s, which the subject was made from\n%s", neutralise(name), show(i)))
	}
	return sections(append(parts, "## Subject\n"+show(last))...)
}

func (j *judge) question(material string, c Criterion, missing []string) question {
	texts := j.r.Prompts
	task := "## Criterion\n" + neutralise(strings.TrimSpace(c.Text))
	if c.Absence {
		task += "\n\n" + texts.Text(prompts.CheckAbsence)
	}
	if missing != nil {
		task += "\n\n" + texts.Fill(prompts.CheckAgain, map[string]string{"words": strings.TrimPrefix(bullets("", missing), "\n")})
	}
	offered := map[string]string{"answers": offered(j.r.Reversed)}
	return question{shared: material, think: texts.Fill(prompts.CheckThink, offered), fields: texts.Fill(prompts.CheckFields, offered), task: task,
		schema: j.schema, free: checkThoughts, filled: checkFilled}
}

// answers in the order in which they are offered first.
var answers = []string{Met, NotMet, CannotTell}

var meanings = map[string]string{
	Met:        "the criterion holds, and lines show it",
	NotMet:     "the criterion does not hold, and lines show it",
	CannotTell: "the lines do not show whether it holds",
}

func inOrder(reversed bool) []string {
	out := slices.Clone(answers)
	if reversed {
		slices.Reverse(out)
	}
	return out
}

func offered(reversed bool) string {
	var out []string
	for _, a := range inOrder(reversed) {
		out = append(out, "- "+a+": "+meanings[a])
	}
	return strings.Join(out, "\n")
}

// checkSchema asks for evidence and the counter-argument before the result. The names keep their order even where
// somebody sorts them.
func checkSchema(lines int, reversed bool) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","additionalProperties":false,"required":["a_evidence","b_against","c_reason","d_result"],"properties":{`+
		`"a_evidence":{"type":"array","maxItems":3,"items":{"type":"object","additionalProperties":false,"required":["a_line","b_words"],`+
		`"properties":{"a_line":{"type":"integer","minimum":1,"maximum":%d},"b_words":{"type":"string","minLength":3,"maxLength":80}}}},`+
		`"b_against":{"type":"string","maxLength":200},`+
		`"c_reason":{"type":"string","minLength":10,"maxLength":240},`+
		`"d_result":{"enum":["%s"]}}}`, lines, strings.Join(inOrder(reversed), `","`))
}

// read looks up what an answer rests on.
func (j *judge) read(c Criterion, value json.RawMessage) (Answer, []said, error) {
	var v struct {
		Evidence []said `json:"a_evidence"`
		Against  string `json:"b_against"`
		Reason   string `json:"c_reason"`
		Result   string `json:"d_result"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return Answer{}, nil, err
	}
	a := Answer{Criterion: c.Text, Said: v.Result, Counted: v.Result, Reason: v.Reason, Against: v.Against, Quotes: []Quote{}, Missing: []string{}}
	for _, s := range v.Evidence {
		q, ok := j.lines.Find(s.Line, s.Words)
		quote := Quote{Text: q.Text, In: q.In, Line: q.Line}
		switch {
		case ok && !slices.Contains(a.Quotes, quote):
			a.Quotes = append(a.Quotes, quote)
		case !ok && !slices.Contains(a.Missing, s.Words):
			a.Missing = append(a.Missing, s.Words)
		}
	}
	switch {
	case a.Said == CannotTell || len(a.Quotes) > 0:
	case c.Absence && len(a.Missing) == 0:
		a.Unquoted = true
	default:
		a.Counted = CannotTell
	}
	return a, v.Evidence, nil
}
