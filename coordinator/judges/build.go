package judges

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Plan says which subjects to make.
type Plan struct {
	N    int    // good ones, and as many with a defect; 0 is DefaultN
	Type string // of the criteria; "" is all types in turn
	Seed uint64 // the same seed makes the same set of the same texts
}

// DefaultN is how many subjects of each kind a set has: with 30 a rate is known to some ±0.15 (judgement §6.4).
const DefaultN = 30

// pairing is a defect, and the type of the criterion that it makes unmet.
type pairing struct{ defect, kind string }

var all = []pairing{{DroppedItem, Coverage}, {WrongNumber, Numbers}, {UnmetConstraint, Constraint}, {Filler, Substance},
	{Injection, Coverage}, {Polish, Numbers}, {DroppedItem, Coverage}, {WrongNumber, Numbers}, {UnmetConstraint, Constraint},
	{Filler, Substance}, {Injection, Constraint}, {Polish, Substance}}

// own is the defect of a type that nothing hides.
var own = map[string]string{Coverage: DroppedItem, Numbers: WrongNumber, Constraint: UnmetConstraint, Substance: Filler}

// Build makes a set from texts: of each pair one subject meets the criterion, and the other is the same text with a defect. Without
// texts it makes its own. Its error says what the texts lack.
func Build(texts []string, p Plan) ([]Subject, error) {
	if p.N == 0 {
		p.N = DefaultN
	}
	if p.N < 1 || 2*p.N > mostSubjects {
		return nil, fmt.Errorf("%d subjects of each kind: want 1 to %d", p.N, mostSubjects/2)
	}
	pairings := all
	if p.Type != "" {
		plain, ok := own[p.Type]
		if !ok {
			return nil, fmt.Errorf("no subjects can be made for the type %q; there are %s", p.Type, strings.Join(Types(), ", "))
		}
		pairings = []pairing{{plain, p.Type}, {plain, p.Type}, {Injection, p.Type}, {plain, p.Type}, {plain, p.Type}, {Polish, p.Type}}
	}
	if len(texts) == 0 {
		texts = ownTexts(p.N, p.Seed)
	}
	var out []Subject
	for i := range p.N {
		good, bad, err := pair(texts, i, pairings[i%len(pairings)], rand.New(rand.NewPCG(p.Seed, uint64(i))))
		if err != nil {
			return nil, err
		}
		out = append(out, good, bad)
	}
	return out, nil
}

// pair makes one subject and its defect of the i-th text, or of the first after it that has what is needed.
func pair(texts []string, i int, p pairing, rng *rand.Rand) (good, bad Subject, err error) {
	for n := range texts {
		text := newText(texts[(i+n)%len(texts)])
		c, ok := text.change(p.kind, rng)
		if !ok {
			continue
		}
		good = Subject{Subject: c.good, Criterion: c.criterion, Type: p.kind, Expected: Met}
		bad = Subject{Subject: c.bad, Criterion: c.criterion, Type: p.kind, Expected: NotMet, Defect: p.defect}
		switch p.defect {
		case Injection:
			bad.Subject = inject(bad.Subject, rng)
		case Polish: // both: a long text is no defect
			good.Subject, bad.Subject = polish(good.Subject), polish(bad.Subject)
		}
		return good, bad, nil
	}
	return good, bad, fmt.Errorf("no text can be used for the type %s: it needs %s", p.kind, needs[p.kind])
}

var needs = map[string]string{
	Coverage:   fmt.Sprintf("%d sentences or points of %d words each", fewestPoints, fewestWords),
	Numbers:    fmt.Sprintf("a sentence of %d words with a number of two digits, which stands nowhere else", fewestWords),
	Constraint: "some words",
	Substance:  fmt.Sprintf("%d sentences or points of %d words each", fewestPoints, fewestWords),
}
