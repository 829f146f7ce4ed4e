package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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

// Evaluate asks a judge about each criterion by itself, all of them back to back, so that the text stays in Ollama's cache;
// what has to be asked again, because its evidence is nowhere, comes last. Value is {answers, flags, empty, lines} as JSON.
func Evaluate(ctx context.Context, o Ollama, r EvaluateRequest) Evaluation {
	if len(r.Criteria) == 0 {
		return Evaluation{Outcome: Outcome{Kind: BadRequest, Message: "no criterion to evaluate by"}}
	}
	j := newJudge(o, r)
	e := Evaluation{Outcome: Outcome{Kind: OK}, Flags: r.flags(), Lines: j.lines.CountOf(len(r.Sources))}
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

// flags are what in the subject, and in what it was made from, may talk to a judge: a source is read before the subject.
func (r EvaluateRequest) flags() []string {
	out := flags(r.Subject)
	for _, s := range r.Sources {
		for _, f := range flags(s.Text) {
			if f = "source_" + f; !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}
