package run

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/ladder"
)

// tries is what an open item went through.
type tries struct {
	phase     Phase
	ready     time.Time // since when it could run, or will be able to
	work      int       // attempts that counted
	lost      [2]int    // attempts that did not count, by phase: a node lost them
	before    [2]int    // those that counted before the present model's first, by phase
	avoid     []string  // nodes to try last
	feedback  []string
	failedOn  string // the node of the last failure
	check     int    // where among the deliveries its check is
	model     int    // which of the step's models does the work
	judging   *judging
	question  *Question // to a person, before its tool may act
	permitted bool      // the person said yes

	// While it is in trouble:
	failures []ladder.Try  // since the last success, of the work or of the judge in the seat
	step     ladder.Step   // how the next attempt differs from the last one
	room     bool          // it has twice the tokens, as long as the model stays
	rejected *RejectedPlan // of a repair
}

// RejectedPlan is a plan that breaks rules, and which.
type RejectedPlan struct {
	Plan    json.RawMessage `json:"plan"`    // as the model wrote it
	Reasons []string        `json:"reasons"` // each "rule: message"
}

// counted is which attempt this is of those that count, from 1. One that a node lost is tried again, as if it had never been: with the
// same seed, and so to the same result as in a run that nothing disturbed.
func (it *Item) counted(a AttemptID) int {
	if it.tries == nil {
		return a.Number
	}
	return a.Number - it.tries.lost[phaseIndex(a.Phase)]
}

// try is which try of its model it is, from 1: the first is made without temperature.
func (it *Item) try(a AttemptID) int {
	if it.tries == nil {
		return a.Number
	}
	return it.counted(a) - it.tries.before[phaseIndex(a.Phase)]
}

// anew counts tries from here on: another model, or another result to judge, has its own first.
func (it *Item) anew(p Phase) {
	i := phaseIndex(p)
	it.tries.before[i] = it.Sent[i] - it.tries.lost[i]
}

// well forgets the trouble.
func (t *tries) well() { t.failures, t.step, t.room, t.rejected = nil, "", false, nil }

// climb is the next step of the ladder after a failure that counts, see afterFailure.
func (st *Step) climb(it *Item, p Phase, failed ladder.Try) ladder.Next {
	n := len(st.Models)
	if st.judges(p) { // another judge is the panel's business
		n, failed.Model = 1, 0
	}
	return ladder.After(append(it.tries.failures[:len(it.tries.failures):len(it.tries.failures)], failed), n)
}

// take notes how the next attempt differs from the one that failed.
func (st *Step) take(it *Item, p *AttemptFailed) {
	t := it.tries
	if p.Counted && steps[st.Kind].work == model {
		t.failures = append(t.failures, failedTry(it, p))
	}
	if p.Step == "" {
		return
	}
	t.step, t.rejected = p.Step, nil
	switch p.Step {
	case ladder.Room:
		t.room = true
	case ladder.Repair:
		t.rejected = p.Rejected
	case ladder.Model:
		st.turn(it, p.Phase, p.Model)
	}
}

// turn gives an item to another model.
func (st *Step) turn(it *Item, p Phase, to int) {
	t := it.tries
	t.room, t.rejected = false, nil
	it.anew(p)
	if !st.judges(p) {
		t.model = to
		return
	}
	j := t.seats(st)
	j.out = append(j.out, j.seat)
	j.seat = to
	t.failures, t.step = nil, ""
}

// failedTry is an attempt that failed as the ladder counts it.
func failedTry(it *Item, p *AttemptFailed) ladder.Try {
	f := ladder.Try{Kind: p.Cause.Kind, Model: it.tries.model, Step: it.tries.step, Answer: p.Raw}
	if p.Rejected != nil {
		f.Faults = faults(p.Rejected.Reasons)
	}
	return f
}

// faults names the rules that a plan breaks, the same for the same rules.
func faults(reasons []string) string {
	var rules []string
	for _, r := range reasons {
		rule, _, _ := strings.Cut(r, ":")
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	return strings.Join(slices.Compact(rules), " ")
}
