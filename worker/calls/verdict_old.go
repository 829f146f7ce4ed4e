package calls

import (
	"fmt"
	"slices"
)

// Rules of a verdict, in the order in which they are tried.
const (
	RuleEmptySubject   = "empty_subject"   // nothing to judge: sent_back, no model is asked
	RuleNotMet         = "not_met"         // a criterion is not met: sent_back
	RuleCannotTell     = "cannot_tell"     // an answer has no ground to stand on: needs_human
	RuleControlStrings = "control_strings" // the subject carries strings that forge turns: never passed by a model alone
	RuleMetUnquoted    = "met_unquoted"    // all criteria are met, but one of them by the model's word alone: passed, and said so
	RuleAllMet         = "all_met"         // all criteria are met, each with a quote that is there: passed
)

// counted says what an answer counts as. Models make evidence up, so an answer whose quotes are all nowhere counts as
// cannot_tell. One without any quote stands, because what is absent cannot be quoted.
func counted(a CriterionAnswer) string {
	if len(a.Quotes) == 0 || isGrounded(a) {
		return a.Said
	}
	return CannotTell
}

func isGrounded(a CriterionAnswer) bool {
	return slices.ContainsFunc(a.Quotes, func(q OldQuote) bool { return q.Verified })
}

// conclude computes the verdict and sorts what was said into facts and opinions.
func conclude(e *OldEvaluation, marked bool) {
	var notMet, open, unquoted []string
	for _, a := range e.Answers {
		switch a.Counted {
		case NotMet:
			notMet = append(notMet, fmt.Sprintf("not met: %s", a.Criterion))
		case CannotTell:
			open = append(open, fmt.Sprintf("%s: %s", whyOpen(a), a.Criterion))
		default:
			if !isGrounded(a) {
				unquoted = append(unquoted, fmt.Sprintf("met by the model's word alone, without a quote: %s", a.Criterion))
			}
		}
		sortEvidence(e, a)
	}
	e.Value, e.Text, e.Notes = nil, "", nil
	switch {
	case notMet != nil:
		e.Verdict, e.Rule, e.Reasons = SentBack, RuleNotMet, append(notMet, open...)
	case open != nil:
		e.Verdict, e.Rule, e.Reasons = NeedsHuman, RuleCannotTell, open
	case marked:
		e.Verdict, e.Rule, e.Reasons = NeedsHuman, RuleControlStrings, []string{"the subject holds control strings of chat templates"}
	case unquoted != nil:
		e.Verdict, e.Rule, e.Reasons = Passed, RuleMetUnquoted, unquoted
	default:
		e.Verdict, e.Rule, e.Reasons = Passed, RuleAllMet, nil
	}
}

func whyOpen(a CriterionAnswer) string {
	if a.Said == CannotTell {
		return "the model cannot tell"
	}
	return fmt.Sprintf("the model said %s with quotes that are nowhere", a.Said)
}

func sortEvidence(e *OldEvaluation, a CriterionAnswer) {
	for _, q := range a.Quotes {
		if q.Verified {
			e.Facts = append(e.Facts, q)
		} else {
			e.Opinions = append(e.Opinions, fmt.Sprintf("%s: quoted, but it is nowhere: %q", a.Criterion, q.Text))
		}
	}
	for _, said := range []string{a.Reason, a.Against} {
		if said != "" {
			e.Opinions = append(e.Opinions, a.Criterion+": "+said)
		}
	}
}
