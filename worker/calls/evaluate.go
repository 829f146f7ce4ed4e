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

// The answers a model may give to one criterion. The order is that of the schema.
const (
	Met        = "met"
	NotMet     = "not_met"
	CannotTell = "cannot_tell"
)

// EvaluateRequest asks a judge about a text. Each criterion is a question of its own.
type EvaluateRequest struct {
	Common
	Criteria []Criterion // at least one
	Subject  string
	Sources  []Source // what the subject was made from; evidence may come from there, too
	Reversed bool     // the answers are offered in the other order, for a second judge
}

// Criterion is one question about the subject.
type Criterion struct {
	Text    string
	Absence bool // it is about something that must not be there: no line can show that
}

// Source is a text that the subject was made from.
type Source struct {
	Name string // empty: "source 1" and on
	Text string
}

// Evaluation is what one judge says. The verdict is not among it: that is computed from what all judges say.
type Evaluation struct {
	Outcome
	Answers []Answer // one per criterion, in order; none where the subject is empty
	Flags   []string // what is suspicious about the subject
	Empty   bool     // the subject holds nothing to judge: nobody was asked
	Lines   int      // of the subject
}

// Answer is what a judge says to one criterion, and what code makes of it.
type Answer struct {
	Criterion string  `json:"criterion"`
	Said      string  `json:"said"`    // Met, NotMet or CannotTell
	Counted   string  `json:"counted"` // Said, or CannotTell where no evidence carries it
	Reason    string  `json:"reason"`  // the model's words: a lead
	Against   string  `json:"against"` // the model's words: a lead
	Quotes    []Quote `json:"quotes"`
	// Missing are words that the model says stand on a line, and that are nowhere near it.
	Missing  []string `json:"missing"`
	Unquoted bool     `json:"unquoted,omitempty"` // it counts without a line, as it may with an absence
}

// Quote is evidence that code found, in the text's own words.
type Quote struct {
	Text string `json:"quote"`
	In   string `json:"in"`   // "subject", or the name of a source
	Line int    `json:"line"` // in it, from 1
}

// What an answer may take, in tokens: the free one, and the fields (judgement §6).
const (
	checkThoughts = 1000
	checkFilled   = 450
)

// Evaluate asks a judge about one criterion after the other, back to back, so that the text stays in Ollama's cache; what
// has to be asked again, because its evidence is nowhere, comes last. Value is {answers, flags, empty, lines} as JSON.
func Evaluate(ctx context.Context, o Ollama, r EvaluateRequest) Evaluation {
	if len(r.Criteria) == 0 {
		return Evaluation{Outcome: Outcome{Kind: BadRequest, Message: "no criterion to evaluate by"}}
	}
	j := newJudge(o, r)
	e := Evaluation{Outcome: Outcome{Kind: OK}, Flags: flags(r.Subject), Lines: j.lines.CountOf(len(r.Sources))}
	if evidence.IsEmpty(r.Subject) {
		e.Empty, e.Lines = true, 0
		return e.sealed()
	}
	schema, err := structure.Compile(checkSchema(j.lines.Count(), r.Reversed))
	if err != nil { // cannot be: the schema is ours, and a test compiles it
		return Evaluation{Outcome: Outcome{Kind: BadSchema, Message: err.Error()}}
	}
	j.schema = schema
	if merges(ctx, o, r.Common) {
		j.atOnce(ctx, &e)
	} else {
		j.inTwoCalls(ctx, &e)
	}
	if e.Kind == OK {
		j.again(ctx, &e)
	}
	if e.Kind != OK {
		return e
	}
	return e.sealed()
}

// took adds what came of one call; false when it failed, which ends the evaluation.
func (e *Evaluation) took(c Criterion, out Outcome) bool {
	out.Turns, out.Notes = append(e.Turns, out.Turns...), append(e.Notes, out.Notes...)
	e.Outcome = out
	if out.Kind != OK {
		e.Message, e.Value = fmt.Sprintf("criterion %q: %s", c.Text, e.Message), nil
	}
	return out.Kind == OK
}

// sealed puts the value of an evaluation together.
func (e Evaluation) sealed() Evaluation {
	value := struct {
		Answers []Answer `json:"answers"`
		Flags   []string `json:"flags"`
		Empty   bool     `json:"empty"`
		Lines   int      `json:"lines"`
	}{append([]Answer{}, e.Answers...), append([]string{}, e.Flags...), e.Empty, e.Lines}
	raw, err := json.Marshal(value)
	if err != nil { // cannot be: texts and numbers
		e.Kind, e.Message = SchemaViolation, err.Error()
	}
	e.Value, e.Text, e.Reasons = raw, "", nil
	e.Notes = slices.Compact(slices.Sorted(slices.Values(e.Notes)))
	return e
}

// groundless says whether all that an answer rests on is nowhere.
func (a Answer) groundless() bool {
	return a.Said != CannotTell && a.Counted == CannotTell && len(a.Missing) > 0
}

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
