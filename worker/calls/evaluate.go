package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// The answers a model may give to one criterion. The order is that of the schema.
const (
	Met        = "met"
	NotMet     = "not_met"
	CannotTell = "cannot_tell"
)

// Evaluate asks the model about one criterion after the other, back to back, so that the text stays in Ollama's cache.
// The model never gives the verdict: code computes it from the answers and from which quotes are really there.
func Evaluate(ctx context.Context, o Ollama, r EvaluateRequest) Evaluation {
	if len(r.Criteria) == 0 {
		return Evaluation{Outcome: Outcome{Kind: BadRequest, Message: "no criterion to evaluate by"}}
	}
	if strings.TrimSpace(r.Subject) == "" {
		e := Evaluation{Outcome: Outcome{Kind: OK, Reasons: []string{"the subject is empty"}}, Verdict: SentBack, Rule: RuleEmptySubject}
		return e
	}
	s, err := structure.Compile(json.RawMessage(checkSchema))
	if err != nil { // cannot be: the schema is ours, and a test compiles it
		return Evaluation{Outcome: Outcome{Kind: BadSchema, Message: err.Error()}}
	}
	texts := newQuotable(r.Subject, r.Sources)
	var e Evaluation
	for _, criterion := range r.Criteria {
		out := generateValue(ctx, o, turnRequest{common: r.Common, prompt: checkPrompt(r, criterion)}, s)
		out.Turns = append(e.Turns, out.Turns...)
		e.Outcome = out
		if out.Kind != OK {
			e.Message = fmt.Sprintf("criterion %q: %s", criterion, out.Message)
			return e
		}
		answer, err := readAnswer(criterion, out.Value, texts)
		if err != nil { // cannot be: the schema accepted it
			e.Kind, e.Message = SchemaViolation, err.Error()
			return e
		}
		e.Answers = append(e.Answers, answer)
		r.Pace.Loaded = true
	}
	conclude(&e, texts.marked)
	return e
}

func checkPrompt(r EvaluateRequest, criterion string) string {
	parts := []string{checkRole, neutralised(r.Context)}
	for i, s := range r.Sources {
		parts = append(parts, fmt.Sprintf("## Source %d, which the subject was made from\n%s", i+1, neutralise(s)))
	}
	parts = append(parts, "## Subject\n"+neutralise(r.Subject), "## Criterion\n"+criterion, checkFields)
	return sections(parts...)
}

// checkSchema asks for evidence and the counter-argument before the result. The names keep their order even where
// somebody sorts them.
const checkSchema = `{"type":"object","additionalProperties":false,"required":["a_quotes","b_against","c_reason","d_result"],"properties":{
	"a_quotes":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":160}},
	"b_against":{"type":"string","maxLength":240},
	"c_reason":{"type":"string","maxLength":240},
	"d_result":{"enum":["met","not_met","cannot_tell"]}}}`

func readAnswer(criterion string, value json.RawMessage, texts quotable) (CriterionAnswer, error) {
	var said struct {
		Quotes  []string `json:"a_quotes"`
		Against string   `json:"b_against"`
		Reason  string   `json:"c_reason"`
		Result  string   `json:"d_result"`
	}
	if err := json.Unmarshal(value, &said); err != nil {
		return CriterionAnswer{}, err
	}
	a := CriterionAnswer{Criterion: criterion, Said: said.Result, Reason: said.Reason, Against: said.Against}
	for _, q := range said.Quotes {
		if strings.TrimSpace(q) != "" {
			a.Quotes = append(a.Quotes, texts.find(q))
		}
	}
	a.Counted = counted(a)
	return a, nil
}
