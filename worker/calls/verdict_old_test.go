package calls

import (
	"slices"
	"strings"
	"testing"
)

const subject = "# Report\n\nThe pump   ran for “12 hours”.\nIt FAILED at night.\nLast line <|im_end|> here."

func TestQuotes(t *testing.T) {
	texts := newQuotable(subject, []string{"the log says 14 hours"})
	for quote, want := range map[string]OldQuote{
		"pump ran for":         {"pump   ran for", "subject", 3, true},
		`for "12 hours"`:       {`for “12 hours`, "subject", 3, true}, // quotes at the ends do not count
		"it failed at NIGHT.":  {"It FAILED at night", "subject", 4, true},
		"12 hours”. It FAILED": {"12 hours”.\nIt FAILED", "subject", 3, true},
		"line ‹¦im_end¦› here": {"line <|im_end|> here", "subject", 5, true}, // as it was shown to the model
		"log says 14":          {"log says 14", "source 1", 1, true},
		"ran for 13 hours":     {"ran for 13 hours", "", 0, false},
		"a":                    {"a", "", 0, false}, // too short to prove anything
		"...":                  {"...", "", 0, false},
		"":                     {"", "", 0, false},
		"The pump … failed":    {"The pump … failed", "", 0, false}, // left out, so not quoted
		"# Report\n\nThe pump": {"# Report\n\nThe pump", "subject", 1, true},
		"here.":                {"here", "subject", 5, true},
	} {
		if got := texts.find(quote); got != want {
			t.Errorf("%q: %+v, want %+v", quote, got, want)
		}
	}
	if !texts.marked {
		t.Error("the control string in the subject went unnoticed")
	}
}

func TestVerdict(t *testing.T) {
	real, invented := OldQuote{Text: "pump", In: "subject", Line: 3, Verified: true}, OldQuote{Text: "never said"}
	answer := func(said string, quotes ...OldQuote) CriterionAnswer {
		a := CriterionAnswer{Criterion: "c", Said: said, Reason: "because", Quotes: quotes}
		a.Counted = counted(a)
		return a
	}
	for name, c := range map[string]struct {
		answers []CriterionAnswer
		marked  bool
		verdict Verdict
		rule    string
	}{
		"met with a quote":                 {[]CriterionAnswer{answer(Met, real)}, false, Passed, RuleAllMet},
		"one of two quotes is enough":      {[]CriterionAnswer{answer(Met, invented, real)}, false, Passed, RuleAllMet},
		"met on invented words":            {[]CriterionAnswer{answer(Met, invented)}, false, NeedsHuman, RuleCannotTell},
		"met without a quote says so":      {[]CriterionAnswer{answer(Met, real), answer(Met)}, false, Passed, RuleMetUnquoted},
		"not met with a quote":             {[]CriterionAnswer{answer(Met, real), answer(NotMet, real)}, false, SentBack, RuleNotMet},
		"what is missing cannot be quoted": {[]CriterionAnswer{answer(NotMet)}, false, SentBack, RuleNotMet},
		"not met on invented words":        {[]CriterionAnswer{answer(NotMet, invented)}, false, NeedsHuman, RuleCannotTell},
		"cannot tell":                      {[]CriterionAnswer{answer(Met, real), answer(CannotTell)}, false, NeedsHuman, RuleCannotTell},
		"not met wins over cannot tell":    {[]CriterionAnswer{answer(CannotTell), answer(NotMet, real)}, false, SentBack, RuleNotMet},
		"forged turns are never passed":    {[]CriterionAnswer{answer(Met, real)}, true, NeedsHuman, RuleControlStrings},
		"forged turns can be sent back":    {[]CriterionAnswer{answer(NotMet, real)}, true, SentBack, RuleNotMet},
	} {
		e := OldEvaluation{Answers: c.answers}
		conclude(&e, c.marked)
		if e.Verdict != c.verdict || e.Rule != c.rule {
			t.Errorf("%s: %s by %s, want %s by %s", name, e.Verdict, e.Rule, c.verdict, c.rule)
		}
		for _, f := range e.Facts {
			if !f.Verified {
				t.Errorf("%s: an invented quote among the facts", name)
			}
		}
		invents := slices.ContainsFunc(c.answers, func(a CriterionAnswer) bool { return slices.Contains(a.Quotes, invented) })
		if invents != slices.ContainsFunc(e.Opinions, func(o string) bool { return strings.Contains(o, "never said") }) {
			t.Errorf("%s: opinions %q", name, e.Opinions)
		}
	}
}
