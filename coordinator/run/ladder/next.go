package ladder

import "slices"

// Try is one that gave nothing usable.
type Try struct {
	Kind   string
	Model  int    // which of the role's models it asked
	Step   Step   // how it came about; "" for the first
	Answer string // hash of what came back, "" for nothing; the same again is a loop
	Faults string // of a plan: hash of the rules that it broke; the same again is none of a repair's business
}

// Next is the next try.
type Next struct {
	Step  Step
	Model int // which of the role's models it asks
}

// After says what follows the tries so far, of which there is at least one; models is how many the role has.
//
// A model that says the same again, and a plan with the same faults again, are not asked the same way a third time: whatever
// keeps the model, and the history, is passed over.
func After(tries []Try, models int) Next {
	last := tries[len(tries)-1]
	stuck, sameFaults := repeats(tries)
	rungs, known := ladders[last.Kind]
	if !known {
		rungs = others
	}
	for _, r := range rungs {
		switch {
		case r.bound > 0 && used(tries, last.Kind, r.step) >= r.bound,
			r.step == Model && last.Model+1 >= models,
			r.step == Repair && (stuck || sameFaults),
			stuck && r.bound > 0 && (r.step == Room || r.step == Mode):
			continue
		case r.step == Model:
			return Next{Step: Model, Model: last.Model + 1}
		}
		return Next{Step: r.step, Model: last.Model}
	}
	return Next{Step: End, Model: last.Model}
}

// used counts how often a step was taken after a failure of that kind.
func used(tries []Try, kind string, s Step) int {
	n := 0
	for i := 1; i < len(tries); i++ {
		if tries[i].Step == s && tries[i-1].Kind == kind {
			n++
		}
	}
	return n
}

// repeats says whether the last answer, or the last list of faults, was there before.
func repeats(tries []Try) (answer, faults bool) {
	last := tries[len(tries)-1]
	earlier := tries[:len(tries)-1]
	same := func(of func(Try) string) bool {
		return of(last) != "" && slices.ContainsFunc(earlier, func(t Try) bool { return of(t) == of(last) && t.Kind == last.Kind })
	}
	return same(func(t Try) string { return t.Answer }), same(func(t Try) string { return t.Faults })
}

// Most is how many tries a kind of failure is worth where nobody says: the first, and every bounded rung of its ladder but the
// last, which is a person. 0 is for kinds that have no such number.
func Most(kind string) int {
	n := 0
	for _, r := range ladders[kind] {
		if r.bound == 0 {
			return 0
		}
		if r.step != Person {
			n += r.bound
		}
	}
	if n == 0 {
		return 0
	}
	return n + 1
}
