package panel

import (
	"fmt"
	"slices"
	"strings"
)

// Case is all that a verdict rests on.
type Case struct {
	Criteria   []Criterion
	Code       []Code      // what code has found; it comes before every model
	Candidates []Candidate // in order of preference
	Out        []int       // those of them who gave nothing however often they were asked: others sit in their place, but one judge less is not enough
	Author     string      // the family of the model that wrote the subject, "" where that is not known
	Asked      []Asked     // in the order in which they answered
}

// Code is a criterion that code has judged: a test, an exit code, a size.
type Code struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail,omitempty"`
}

// Next is what follows: a verdict, or another judge.
type Next struct {
	Verdict *Verdict
	Judge   int // index in Candidates, when there is no verdict
	Another int // how many have answered before it
}

// The rules, in the order in which they are tried.
const (
	RuleCode        = "code_failed"       // sent_back: code says so, no model is asked
	RuleEmpty       = "empty_subject"     // sent_back: there is nothing to judge
	RuleNotMet      = "not_met"           // sent_back: a line shows that a criterion is not met
	RuleMissing     = "not_met_unquoted"  // sent_back: two judges, or the only one, say that something is missing
	RuleFlagged     = "flagged"           // needs_human: the subject talks to its judge
	RuleMet         = "all_met"           // passed: by judges of two families
	RuleMetOne      = "all_met_one_judge" // passed: by the only judge that there is
	RuleMetAuthor   = "author_family"     // passed: by the only judge that there is, a relative of the author
	RuleCalibration = "below_calibration" // needs_human: the judges' words are not known to be worth it
	RuleDisagree    = "disagreement"      // needs_human: judges contradict each other
	RuleCannotTell  = "cannot_tell"       // needs_human: nobody can show it
)

// Decide says what follows from what is known.
func Decide(c Case) Next {
	if failed := slices.DeleteFunc(slices.Clone(c.Code), func(k Code) bool { return k.Passed }); len(failed) > 0 {
		return c.end(SentBack, RuleCode, codeReasons(failed))
	}
	if slices.ContainsFunc(c.Asked, func(a Asked) bool { return a.Empty }) {
		return c.end(SentBack, RuleEmpty, []string{"there is nothing in it to judge"})
	}
	panel := Panel(c.Candidates, c.Author)
	voices := len(panel) - c.twins()
	need := min(2, voices)
	t := c.tally()
	more := c.further(voices == 1, t)
	switch {
	case len(t.shown) > 0:
		return c.end(SentBack, RuleNotMet, t.shown)
	case len(t.missingTwice) > 0:
		return c.end(SentBack, RuleMissing, t.missingTwice)
	case more >= 0 && (len(c.Asked) == 0 || !t.settled(need)):
		return Next{Judge: more, Another: len(c.Asked)}
	case len(c.Asked) > 0 && t.settled(need) && len(c.flags()) > 0:
		return c.end(NeedsHuman, RuleFlagged, []string{"it holds " + strings.Join(c.flags(), " and ") + ", so no model's word passes it"})
	case len(c.Asked) > 0 && t.settled(need):
		return c.end(Passed, c.passing(panel, voices), nil)
	case voices == 1 && len(t.missing) > 0:
		return c.end(SentBack, RuleMissing, t.missing)
	default:
		rule, reasons := t.open()
		return c.end(NeedsHuman, rule, reasons)
	}
}

// further is the candidate to ask next, -1 for none. One that is alone is asked once more where it could not tell: another seed
// is the only other opinion that there is.
func (c Case) further(alone bool, t tally) int {
	sitting := c.sitting()
	switch n := len(c.Asked); {
	case len(sitting) == 0:
		return -1
	case n < len(sitting):
		return sitting[n]
	case alone && n == 1 && len(t.unsure) > 0:
		return sitting[0]
	default:
		return -1
	}
}

// sitting is the panel without those who are out.
func (c Case) sitting() []int {
	var left []Candidate
	var which []int
	for i, candidate := range c.Candidates {
		if !slices.Contains(c.Out, i) {
			left, which = append(left, candidate), append(which, i)
		}
	}
	seats := Panel(left, c.Author)
	for i, s := range seats {
		seats[i] = which[s]
	}
	return seats
}

func (c Case) passing(panel []int, voices int) string {
	switch {
	case voices > 1:
		return RuleMet
	case c.Author != "" && c.Candidates[panel[0]].Family == c.Author:
		return RuleMetAuthor
	default:
		return RuleMetOne
	}
}

func (c Case) flags() []string {
	var out []string
	for _, a := range c.Asked {
		for _, f := range a.Flags {
			if f = strings.ReplaceAll(f, "_", " "); !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

func codeReasons(failed []Code) []string {
	var out []string
	for _, k := range failed {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %s", k.Name, k.Detail), ": "))
	}
	return out
}
