package judges

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// The passes in which a judge is asked about a subject.
const (
	First    = "first"    // what the rates come from
	Reversed = "reversed" // the possible answers stand in the other order
	Again    = "again"    // the same with another seed
)

// CannotTell is the third answer.
const CannotTell = "cannot_tell"

// Answer is what one judge answered about one subject.
type Answer struct {
	Judge   string `json:"judge"`
	Digest  string `json:"digest"`
	Family  string `json:"family"`
	Node    string `json:"node"`    // id
	Subject int    `json:"subject"` // index in the set
	Pass    string `json:"pass"`
	Said    string `json:"said"`
	Counted string `json:"counted"` // what code took it for
	Quoted  bool   `json:"quoted"`  // a line that it named holds its words
	Forged  bool   `json:"forged"`  // words that it named stand nowhere
	Failed  string `json:"failed"`  // why there is no answer, "" where there is one
}

// refuses says that the answer keeps a subject from being passed for a reason: a line shows it, or something is said to be missing,
// which no line can show.
func (a Answer) refuses() bool {
	return a.Counted == NotMet || a.Said == NotMet && !a.Forged
}

// abstains says that the answer decides nothing.
func (a Answer) abstains() bool { return a.Counted != Met && !a.refuses() }

// outcome is one of three, for comparing answers with each other.
func (a Answer) outcome() string {
	switch {
	case a.Counted == Met:
		return Met
	case a.refuses():
		return NotMet
	default:
		return CannotTell
	}
}

// Rate is how many of how many.
type Rate struct {
	Hits int `json:"hits"`
	Of   int `json:"of"`
}

func (r *Rate) add(hit bool) {
	r.Of++
	if hit {
		r.Hits++
	}
}

// Share is 0..1, and 0 of nothing.
func (r Rate) Share() float64 {
	if r.Of == 0 {
		return 0
	}
	return float64(r.Hits) / float64(r.Of)
}

// z is the quantile of the normal distribution for 95 %.
const z = 1.959964

// Interval is where the true rate lies with 95 % confidence (Wilson 1927, "Probable inference, the law of succession, and statistical
// inference"): unlike the plain interval it holds near 0 and 1, and for 30 subjects. Of nothing it is 0..1.
func (r Rate) Interval() (low, high float64) {
	if r.Of == 0 {
		return 0, 1
	}
	n, p := float64(r.Of), r.Share()
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// Margin is half the width of the interval.
func (r Rate) Margin() float64 {
	low, high := r.Interval()
	return (high - low) / 2
}

// Measured is how a judge did on a set.
type Measured struct {
	Judge  string `json:"judge"`
	Digest string `json:"digest"`
	Family string `json:"family"`
	Type   string `json:"type,omitempty"` // of the criteria; "" is all of the set together
	// Passed is of the good subjects: its share is the true-positive rate. Found is of the defects: the true-negative rate. A judge
	// that abstains has neither passed nor found anything.
	Passed    Rate            `json:"passed"`
	Found     Rate            `json:"found"`
	Abstained Rate            `json:"abstained"`
	Lines     Rate            `json:"lines"`   // of the answers that take a side: with a line that holds the words
	Flipped   Rate            `json:"flipped"` // of the subjects asked in both orders: another answer
	Same      Rate            `json:"same"`    // of the subjects asked twice: the same answer
	Defects   map[string]Rate `json:"defects"` // found, by kind
	Failed    Rate            `json:"failed"`  // calls without an answer
	missed    map[int]bool
	seen      map[int]bool
}

// Pair is what two judges miss together: defects that both take for met.
type Pair struct {
	Judges [2]string `json:"judges"`
	Type   string    `json:"type,omitempty"`
	Missed Rate      `json:"missed"`
	// Alone is the share that they would miss together if they erred independently of each other.
	Alone float64 `json:"alone"`
}

// Measure computes the rates of each judge: over the whole set, and for each type apart where the set has several. A judge whose name
// stands for two models has two rows.
func Measure(set []Subject, answers []Answer) ([]Measured, []Pair) {
	var out []Measured
	var pairs []Pair
	for _, kind := range typesOf(set) {
		of := map[[2]string]*Measured{}
		for id, mine := range byJudge(answers) {
			m := measure(set, mine, kind)
			m.Judge, m.Digest, m.Family, m.Type = mine[0].Judge, mine[0].Digest, mine[0].Family, kind
			of[id] = &m
		}
		ids := slices.SortedFunc(maps.Keys(of), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
		for i, id := range ids {
			out = append(out, *of[id])
			for _, other := range ids[i+1:] {
				pairs = append(pairs, together(*of[id], *of[other]))
			}
		}
	}
	return out, pairs
}

// typesOf is "" for all, and each type where there are several.
func typesOf(set []Subject) []string {
	types := map[string]bool{}
	for _, s := range set {
		types[s.Type] = true
	}
	if len(types) == 1 {
		return slices.Collect(maps.Keys(types))
	}
	types[""] = true
	return slices.Sorted(maps.Keys(types))
}

func byJudge(answers []Answer) map[[2]string][]Answer {
	digests := map[string]string{} // of calls that failed nothing else is known
	for _, a := range answers {
		if a.Digest != "" {
			digests[a.Judge] = a.Digest
		}
	}
	out := map[[2]string][]Answer{}
	for _, a := range answers {
		id := [2]string{a.Judge, cmp.Or(a.Digest, digests[a.Judge])}
		if a.Digest == "" {
			out[id] = append(out[id], a)
		} else { // so that the first one tells digest and family
			out[id] = slices.Insert(out[id], 0, a)
		}
	}
	return out
}

func measure(set []Subject, answers []Answer, kind string) Measured {
	m := Measured{Defects: map[string]Rate{}, missed: map[int]bool{}, seen: map[int]bool{}}
	passes := map[string]map[int]Answer{First: {}, Reversed: {}, Again: {}}
	for _, a := range answers {
		if a.Subject < 0 || a.Subject >= len(set) || passes[a.Pass] == nil || kind != "" && set[a.Subject].Type != kind {
			continue
		}
		m.Failed.add(a.Failed != "")
		if a.Failed == "" {
			passes[a.Pass][a.Subject] = a
		}
	}
	for i, a := range passes[First] {
		m.count(i, set[i], a)
		if r, ok := passes[Reversed][i]; ok {
			m.Flipped.add(r.outcome() != a.outcome())
		}
		if r, ok := passes[Again][i]; ok {
			m.Same.add(r.outcome() == a.outcome())
		}
	}
	return m
}

func (m *Measured) count(i int, s Subject, a Answer) {
	m.Abstained.add(a.abstains())
	if a.Said == Met || a.Said == NotMet {
		m.Lines.add(a.Quoted)
	}
	if s.Expected == Met {
		m.Passed.add(a.Counted == Met)
		return
	}
	m.Found.add(a.refuses())
	if s.Defect != "" {
		r := m.Defects[s.Defect]
		r.add(a.refuses())
		m.Defects[s.Defect] = r
	}
	m.seen[i], m.missed[i] = true, a.Counted == Met
}

func together(a, b Measured) Pair {
	p := Pair{Judges: [2]string{a.Judge, b.Judge}, Type: a.Type}
	var alone [2]Rate
	for i := range a.seen {
		if !b.seen[i] {
			continue
		}
		p.Missed.add(a.missed[i] && b.missed[i])
		alone[0].add(a.missed[i])
		alone[1].add(b.missed[i])
	}
	p.Alone = alone[0].Share() * alone[1].Share()
	return p
}
