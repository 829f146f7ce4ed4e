package panel

import (
	"fmt"
	"slices"
)

// tally is what the answers so far come to, over the criteria that must hold.
type tally struct {
	mets         []int    // per criterion that must hold: judges whose "met" counts
	shown        []string // criteria that a line shows not to be met
	missingTwice []string // criteria that two judges say are not met, without a line
	missing      []string // or one
	idle         []string // judged only by those whose word is not known to be worth it
	unsure       []string // nobody can tell
}

func (c Case) tally() tally {
	var t tally
	for i, k := range c.Criteria {
		if !k.Must {
			continue
		}
		n := c.count(i, k)
		t.shown, t.mets = append(t.shown, n.shown...), append(t.mets, n.mets)
		switch said := fmt.Sprintf("not met: %s", k.Text); {
		case n.missing > 1:
			t.missingTwice = append(t.missingTwice, said)
		case n.missing == 1:
			t.missing = append(t.missing, said)
		case n.idle > 0:
			t.idle = append(t.idle, k.Text)
		case n.unsure > 0:
			t.unsure = append(t.unsure, k.Text)
		}
	}
	return t
}

// count is how the judges answered one criterion.
type count struct {
	shown   []string // not met, and a line shows it
	missing int      // not met, without a line
	mets    int      // met, by judges whose "met" counts
	idle    int      // met, by the others
	unsure  int
}

func (c Case) count(i int, k Criterion) (n count) {
	for j, a := range c.Asked {
		switch answer, worth := a.answer(i, k), a.on(k.Type); {
		case c.twin(j): // one model's word counts once
		case answer.shows(NotMet) && worth.Vetoes():
			n.shown = append(n.shown, why(k, answer))
		case answer.shows(NotMet), answer.saysMissing():
			n.missing++
		case answer.shows(Met) && worth.Counts():
			n.mets++
		case answer.shows(Met):
			n.idle++
		case c.askedAgain(j): // by the same judge: it has had its say
		default:
			n.unsure++
		}
	}
	return n
}

// result is what the answers to one criterion come to.
func (n count) result() string {
	switch {
	case len(n.shown) > 0, n.missing > 1, n.missing == 1 && n.mets == 0:
		return NotMet
	case n.mets > 0 && n.missing == 0:
		return Met
	default:
		return CannotTell
	}
}

// answer is a judge's answer to criterion i; a judge that left it out cannot tell.
func (a Asked) answer(i int, k Criterion) Answer {
	if i < len(a.Answers) && a.Answers[i].Criterion == k.Text {
		return a.Answers[i]
	}
	return Answer{Criterion: k.Text, Said: CannotTell, Counted: CannotTell}
}

// askedAgain says that a later answer of the same judge takes the place of answer j.
func (c Case) askedAgain(j int) bool {
	return j+1 < len(c.Asked) && c.Asked[j].Model == c.Asked[j+1].Model
}

// twin says that judge j is one of the earlier ones under another name: a copy has the same digest.
func (c Case) twin(j int) bool {
	return slices.ContainsFunc(c.Asked[:j], func(a Asked) bool {
		return a.Digest != "" && a.Digest == c.Asked[j].Digest && a.Model != c.Asked[j].Model
	})
}

// twins is how many of those asked are copies of others.
func (c Case) twins() (n int) {
	for j := range c.Asked {
		if c.twin(j) {
			n++
		}
	}
	return n
}

// settled says that enough judges have seen every criterion met, and nobody the contrary.
func (t tally) settled(need int) bool {
	if len(t.missing) > 0 {
		return false
	}
	for _, n := range t.mets {
		if n < need {
			return false
		}
	}
	return true
}

// open says why no conclusion carries.
func (t tally) open() (rule string, reasons []string) {
	switch {
	case len(t.missing) > 0:
		return RuleDisagree, t.missing
	case len(t.idle) > 0:
		return RuleCalibration, prefixed("judged only by judges below their line: ", t.idle)
	case len(t.unsure) > 0:
		return RuleCannotTell, prefixed("no judge can show it: ", t.unsure)
	default: // too few could be asked
		return RuleCannotTell, []string{"too few judges could tell"}
	}
}

func prefixed(with string, list []string) []string {
	var out []string
	for _, l := range list {
		out = append(out, with+l)
	}
	return out
}

// why words a "not met" by what was found, and never by what the judge thinks.
func why(k Criterion, a Answer) string {
	q := a.Quotes[0]
	return fmt.Sprintf("not met: %s (%s, line %d: %q)", k.Text, q.In, q.Line, q.Text)
}
