package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// checked names an item of a step whose value the script judges.
type checked struct{ pos, item int }

// asked notes that a value is given to the script's check, with the answer that it gave before, if any.
func (r *record) asked(d run.Delivery) {
	if d.Check && d.Given != nil {
		r.answers[checked{d.Pos, d.Item}] = *d.Given
	}
}

// answered compares the script's answers with the recorded ones and keeps those that are new.
func (r *record) answered(given []script.Checked, out *reaction) error {
	for _, c := range given {
		of := checked{c.Pos, c.Item}
		answer := run.CheckAnswer{Pos: c.Pos, Item: c.Item, Checked: run.Checked{Passed: c.Passed, Reasons: c.Reasons}}
		if c.Failure != nil {
			answer.Reasons = []string{"the check failed: " + c.Failure.Error()}
		}
		if was, recorded := r.answers[of]; recorded {
			if !was.Equal(answer.Checked) {
				return of.diverged(was, showAnswer(answer.Checked))
			}
			delete(r.answers, of)
			continue
		}
		out.checks = append(out.checks, answer)
		if c.Failure != nil { // it says nothing about the value, so that no other try of the model helps
			out.failed = append(out.failed, run.Reject{Pos: c.Pos, Item: c.Item,
				Failure: run.Failure{Kind: run.KindCheckFailed, Message: answer.Reasons[0], Advice: run.Never}})
		}
	}
	return nil
}

// unanswered is the divergence of a script that did not judge again what it had judged, nil when there is none.
func (r *record) unanswered(got string) error {
	left := slices.SortedFunc(maps.Keys(r.answers), func(a, b checked) int { return cmp.Or(a.pos-b.pos, a.item-b.item) })
	if len(left) == 0 {
		return nil
	}
	return left[0].diverged(r.answers[left[0]], got)
}

func (c checked) diverged(was run.Checked, got string) error {
	return &divergence{Pos: c.pos, Expected: fmt.Sprintf("the check of item %d to say %s", c.item, showAnswer(was)), Got: got}
}

func showAnswer(c run.Checked) string {
	text, _ := json.Marshal(c) // texts and a truth always marshal
	return string(text)
}
