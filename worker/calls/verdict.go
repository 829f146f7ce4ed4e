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
	RuleAllMet         = "all_met"         // passed
)

// counted says what an answer counts as. Models wave things through and make evidence up, so met needs a quote that is
// there. not_met needs one, too, if it quotes at all; one without any quote stands, for what is missing cannot be quoted.
func counted(a CriterionAnswer) string {
	verified := slices.ContainsFunc(a.Quotes, func(q Quote) bool { return q.Verified })
	switch {
	case verified, a.Said == NotMet && len(a.Quotes) == 0:
		return a.Said
	default:
		return CannotTell
	}
}

// conclude computes the verdict and sorts what was said into facts and opinions.
func conclude(e *Evaluation, marked bool) {
	var notMet, open []string
	for _, a := range e.Answers {
		switch a.Counted {
		case NotMet:
			notMet = append(notMet, fmt.Sprintf("not met: %s", a.Criterion))
		case CannotTell:
			open = append(open, fmt.Sprintf("%s, so it cannot be told: %s", whyOpen(a), a.Criterion))
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
	default:
		e.Verdict, e.Rule, e.Reasons = Passed, RuleAllMet, nil
	}
}

func whyOpen(a CriterionAnswer) string {
	switch {
	case a.Said == CannotTell:
		return "the model cannot tell"
	case len(a.Quotes) == 0:
		return fmt.Sprintf("the model said %s without a quote", a.Said)
	default:
		return fmt.Sprintf("the model said %s with quotes that are nowhere", a.Said)
	}
}

func sortEvidence(e *Evaluation, a CriterionAnswer) {
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
