package panel

import "slices"

// Candidate is a model that may judge.
type Candidate struct {
	Model       string
	Family      string
	Calibration                        // on criteria of any type
	Types       map[string]Calibration // on those of one type, where that was measured by itself
}

// on is how the judge did on criteria of a type.
func (c Candidate) on(kind string) Calibration {
	if by, ok := c.Types[kind]; ok {
		return by
	}
	return c.Calibration
}

// least is what the judge's word is worth on the criterion on which it is worth least, of those that must hold.
func (c Candidate) least(criteria []Criterion) Calibration {
	out, rank := c.Calibration, 3
	for _, k := range criteria {
		on := c.on(k.Type)
		if r := slices.Index([]string{advisory, none, good}, on.Word()); k.Must && r < rank {
			out, rank = on, r
		}
	}
	return out
}

// Calibration is how a judge did on subjects whose answers are known. The zero value is a judge that nobody measured.
type Calibration struct {
	N   int     // subjects of each kind, good and defect
	TPR float64 // share of the good that it passed
	TNR float64 // share of the defects that it found
}

// The lines that a measured judge has to reach. With 30 subjects of each kind they are known to some ±0.15.
const (
	VetoTPR   = 0.85 // below it a "not met" alone sends nothing back: too many false alarms
	CountsTNR = 0.8  // below it a "met" counts for nothing: too much is waved through
)

// Least is how many subjects of each kind a judge has to be measured on before that says anything: of one or two, a single answer
// decides.
const Least = 10

// Known says whether the judge was measured.
func (c Calibration) Known() bool { return c.N >= Least }

// Vetoes says whether its "not met" decides.
func (c Calibration) Vetoes() bool { return !c.Known() || c.TPR >= VetoTPR }

// Counts says whether its "met" counts.
func (c Calibration) Counts() bool { return !c.Known() || c.TNR >= CountsTNR }

const (
	none     = "none"
	good     = "good"
	advisory = "advisory"
)

// Word is how verdicts name it: none, good or advisory.
func (c Calibration) Word() string {
	switch {
	case !c.Known():
		return none
	case c.Vetoes() && c.Counts():
		return good
	default:
		return advisory
	}
}

// Most is how many judges are asked at most: nine are worth little more than two.
const Most = 3

// Panel is who may be asked, in that order: first one who is not of the author's family, then one of another family than the
// first, and so on. Without one who is not the author's relative, the first of its relatives judges alone.
func Panel(candidates []Candidate, author string) []int {
	var out []int
	taken := map[string]bool{}
	for _, sameFamily := range []bool{false, true} { // the third may share a family with the first, but no model
		for i, c := range candidates {
			if len(out) == Most || author != "" && c.Family == author || slices.Contains(out, i) || taken[c.Family] && !sameFamily {
				continue
			}
			if sameFamily && (len(out) < 2 || slices.ContainsFunc(out, func(o int) bool { return candidates[o].Model == c.Model })) {
				continue
			}
			out, taken[c.Family] = append(out, i), true
		}
	}
	if len(out) == 0 && len(candidates) > 0 {
		return []int{0}
	}
	return out
}
